/*
 * error_names.c - names and texts of the runtime's errors, from errors.def.
 */
#include "runtime.h"

struct error_row {
    cudaError_t error;
    const char *name;
    const char *text;
};

static const struct error_row errors[] = {
#define RONDO_CUDA_ERROR(id, driver_name, text) {id, #id, text},
#include "errors.def"
#undef RONDO_CUDA_ERROR
};

static const struct error_row *find_error(cudaError_t error)
{
    static const struct error_row unknown = {cudaErrorUnknown, "unrecognized error code",
                                             "unrecognized error code"};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error)
            return &errors[i];
    }
    return &unknown;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return find_error(error)->name;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return find_error(error)->text;
}
