/*
 * driver.c - the sliver of libcuda that programs reach by its name: versions, devices, primary contexts,
 * pointers.
 *
 * A device's primary context is an address that stands for it; nothing is behind it, as the CPU device's
 * state belongs to the process.
 */
#include "contexts.h"
#include "driver_names.h"
#include "registry.h"

#include "base/error.h"
#include "hostcuda/cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static char contexts[RONDO_CONTEXTS]; /* context d is the address of byte d */
static unsigned retains[RONDO_CONTEXTS];
static pthread_mutex_t retain_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_initialized;

static CUresult translate(ncclResult_t rc)
{
    switch (rc) {
    case ncclSuccess:
        return CUDA_SUCCESS;
    case ncclInvalidArgument:
        return CUDA_ERROR_INVALID_VALUE;
    case ncclUnhandledCudaError:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case ncclSystemError:
        return CUDA_ERROR_OPERATING_SYSTEM;
    case ncclInProgress:
        return CUDA_ERROR_NOT_READY;
    default:
        return CUDA_ERROR_UNKNOWN;
    }
}

/* As the real driver: nothing but versions and texts before cuInit. device < 0: asks for none, and uses none.
 */
static CUresult check_state(int device, bool uses_context)
{
    uint32_t abi;
    const struct rondo_context *context = rondo_hostcuda_context(RONDO_CONTEXT_ABI, &abi);
    int count = 0;

    switch (context->state(-1)) {
    case RONDO_CONTEXT_FORKED:
        return CUDA_ERROR_NOT_INITIALIZED;
    case RONDO_CONTEXT_UNLOADING:
        return CUDA_ERROR_DEINITIALIZED;
    case RONDO_CONTEXT_READY:
        break;
    }
    if (!atomic_load(&is_initialized))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (device == -1)
        return CUDA_SUCCESS;
    ncclResult_t rc = context->cpu()->device.count(&count);
    if (rc != ncclSuccess)
        return translate(rc);
    if (device < 0 || device >= count || device >= RONDO_CONTEXTS)
        return CUDA_ERROR_INVALID_DEVICE;
    if (uses_context)
        context->state(device);
    return CUDA_SUCCESS;
}

static CUresult device_properties(CUdevice device, struct rondo_device_properties *properties_out)
{
    CUresult result = device < 0 ? CUDA_ERROR_INVALID_DEVICE : check_state(device, false);

    if (result != CUDA_SUCCESS)
        return result;
    return translate(rondo_cpu_instance()->device.properties(device, properties_out));
}

CUresult cuInit(unsigned int Flags)
{
    uint32_t abi;
    int count = 0;

    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (rondo_hostcuda_context(RONDO_CONTEXT_ABI, &abi)->state(-1) == RONDO_CONTEXT_FORKED)
        return CUDA_ERROR_NOT_INITIALIZED;
    ncclResult_t rc = rondo_cpu_instance()->device.count(&count);
    if (rc != ncclSuccess)
        return translate(rc);
    if (count == 0)
        return CUDA_ERROR_NO_DEVICE;
    atomic_store(&is_initialized, true); /* pairs with the load in check_state; order does not matter */
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = RONDO_CUDA_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = rondo_driver_error_text((int)error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    if (!pStr)
        return CUDA_ERROR_INVALID_VALUE;
    *pStr = rondo_driver_error_name((int)error);
    return *pStr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = check_state(-1, false);

    if (result != CUDA_SUCCESS)
        return result;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    return translate(rondo_cpu_instance()->device.count(count));
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = ordinal < 0 ? CUDA_ERROR_INVALID_DEVICE : check_state(ordinal, false);

    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    struct rondo_device_properties properties;
    CUresult result = device_properties(dev, &properties);

    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        snprintf(name, (size_t)len, "%s", properties.name);
    return result;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    struct rondo_device_properties properties;
    CUresult result = device_properties(dev, &properties);

    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(uuid->bytes, properties.uuid, sizeof(uuid->bytes));
    return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    struct rondo_device_properties properties;
    CUresult result = device_properties(dev, &properties);

    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *bytes = properties.memory_bytes;
    return result;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    CUresult result = dev < 0 ? CUDA_ERROR_INVALID_DEVICE : check_state(dev, false);

    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? translate(rondo_context_attribute(dev, (int)attrib, pi)) : result;
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    struct rondo_device_properties properties;
    CUresult result = device_properties(dev, &properties);

    if (!pciBusId || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (strlen(properties.busid) >= (size_t)len)
        return CUDA_ERROR_INVALID_VALUE;
    strcpy(pciBusId, properties.busid);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult result = dev < 0 ? CUDA_ERROR_INVALID_DEVICE : check_state(dev, false);

    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    *flags = 0;
    *active = rondo_context_is_active(dev);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult result = dev < 0 ? CUDA_ERROR_INVALID_DEVICE : check_state(dev, true);

    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&retain_lock);
    retains[dev]++;
    pthread_mutex_unlock(&retain_lock);
    *pctx = (CUcontext)&contexts[dev];
    return CUDA_SUCCESS;
}

/* The count is kept to refuse one release too many; the context itself stays, as the runtimes of the process
 * use it. */
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    CUresult result = dev < 0 ? CUDA_ERROR_INVALID_DEVICE : check_state(dev, false);

    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&retain_lock);
    if (retains[dev] == 0)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else
        retains[dev]--;
    pthread_mutex_unlock(&retain_lock);
    return result;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult result = check_state(-1, false);
    int device = 0;

    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    ncclResult_t rc = rondo_cpu_instance()->device.get_current(&device);
    if (rc != ncclSuccess)
        return translate(rc);
    bool has_context = !rondo_context_is_detached() && rondo_context_is_active(device);
    *pctx = has_context ? (CUcontext)&contexts[device] : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    CUresult result = check_state(-1, false);
    uintptr_t device = (uintptr_t)ctx - (uintptr_t)contexts;
    uint32_t abi;

    if (result != CUDA_SUCCESS)
        return result;
    if (!ctx) {
        rondo_context_detach();
        return CUDA_SUCCESS;
    }
    if (device >= RONDO_CONTEXTS || !rondo_context_is_active((int)device))
        return CUDA_ERROR_INVALID_CONTEXT;
    return translate(rondo_hostcuda_context(RONDO_CONTEXT_ABI, &abi)->bind((int)device));
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext context = NULL;
    CUresult result = cuCtxGetCurrent(&context);

    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = (CUdevice)((char *)context - contexts);
    return CUDA_SUCCESS;
}
