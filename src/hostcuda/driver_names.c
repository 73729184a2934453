/*
 * driver_names.c - names and texts of error numbers, and functions found by their name, as cuGetProcAddress
 * wants them.
 */
#include "driver_names.h"

#include "hostcuda/cuda.h"
#include "hostcuda/driver_errors.h"

#include <stdint.h>
#include <string.h>

struct error_row {
    int number;
    const char *name;
    const char *text;
};

static const struct error_row errors[] = {
#define RONDO_CUDA_ERROR(id, driver_name, text) {id, driver_name, text},
#include "errors.def"
#undef RONDO_CUDA_ERROR
};

static const struct error_row *find_error(int error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].number == error && errors[i].name[0] != '\0')
            return &errors[i];
    }
    return NULL;
}

const char *rondo_driver_error_name(int error)
{
    const struct error_row *row = find_error(error);

    return row ? row->name : NULL;
}

const char *rondo_driver_error_text(int error)
{
    const struct error_row *row = find_error(error);

    return row ? row->text : NULL;
}

struct function_row {
    const char *name; /* without version */
    void *address;
};

/* A version suffix is not part of the name a program asks for; each function has one version here. */
static const struct function_row functions[] = {
    {"cuInit", (void *)cuInit},
    {"cuDriverGetVersion", (void *)cuDriverGetVersion},
    {"cuGetErrorString", (void *)cuGetErrorString},
    {"cuGetErrorName", (void *)cuGetErrorName},
    {"cuDeviceGetCount", (void *)cuDeviceGetCount},
    {"cuDeviceGet", (void *)cuDeviceGet},
    {"cuDeviceGetName", (void *)cuDeviceGetName},
    {"cuDeviceGetUuid", (void *)cuDeviceGetUuid_v2},
    {"cuDeviceTotalMem", (void *)cuDeviceTotalMem_v2},
    {"cuDeviceGetAttribute", (void *)cuDeviceGetAttribute},
    {"cuDeviceGetPCIBusId", (void *)cuDeviceGetPCIBusId},
    {"cuDevicePrimaryCtxGetState", (void *)cuDevicePrimaryCtxGetState},
    {"cuDevicePrimaryCtxRetain", (void *)cuDevicePrimaryCtxRetain},
    {"cuDevicePrimaryCtxRelease", (void *)cuDevicePrimaryCtxRelease_v2},
    {"cuCtxGetCurrent", (void *)cuCtxGetCurrent},
    {"cuCtxSetCurrent", (void *)cuCtxSetCurrent},
    {"cuCtxGetDevice", (void *)cuCtxGetDevice},
    {"cuPointerGetAttribute", (void *)cuPointerGetAttribute},
    {"cuPointerGetAttributes", (void *)cuPointerGetAttributes},
    {"cuGetProcAddress", (void *)cuGetProcAddress_v2},
};

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, unsigned long long flags,
                             CUdriverProcAddressQueryResult *symbolStatus)
{
    (void)cudaVersion; /* every function here is older than CUDA 12 */
    (void)flags;       /* none takes a stream */
    if (!symbol || !pfn)
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = NULL;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strcmp(functions[i].name, symbol) == 0)
            *pfn = functions[i].address;
    }
    if (symbolStatus)
        *symbolStatus = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *pfn || symbolStatus ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
