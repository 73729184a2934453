/*
 * devices.c - counting, choosing and describing devices, and what holds for a whole device.
 */
#include "runtime.h"

#include <stdio.h>
#include <string.h>

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    if (!runtimeVersion)
        return rondo_runtime_record(cudaErrorInvalidValue);
    *runtimeVersion = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return rondo_runtime_record(cudaErrorInvalidValue);
    *driverVersion = RONDO_CUDA_DRIVER_VERSION;
    return cudaSuccess;
}

static cudaError_t get_device_count(int *count)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_LIBRARY, &call);

    if (error != cudaSuccess)
        return error;
    if (!count)
        return cudaErrorInvalidValue;
    ncclResult_t rc = call.cpu->device.count(count);
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInitializationError);
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    return rondo_runtime_record(get_device_count(count));
}

cudaError_t cudaGetDevice(int *device)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && !device)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *device = call.device;
    return rondo_runtime_record(error);
}

static cudaError_t set_device(int device)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_LIBRARY, &call);

    if (error == cudaSuccess)
        error = rondo_runtime_check_device(&call, device);
    if (error != cudaSuccess)
        return error;
    return rondo_runtime_translate(call.context->bind(device), cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int device)
{
    return rondo_runtime_record(set_device(device));
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    (void)deviceFlags; /* how a thread waits is decided by the device layer */
    if (error == cudaSuccess && flags > 1)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = rondo_runtime_check_device(&call, device);
    if (error == cudaSuccess)
        call.context->state(device);
    return rondo_runtime_record(error);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && (flags & ~(unsigned)cudaDeviceMask) != 0)
        error = cudaErrorInvalidValue;
    return rondo_runtime_record(error); /* how a thread waits is decided by the device layer */
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && !flags)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
    return rondo_runtime_record(error);
}

/* Every device is as good as another; the list only has to name devices that exist. */
cudaError_t cudaSetValidDevices(int *device_arr, int len)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && (len < 0 || (len > 0 && !device_arr)))
        error = cudaErrorInvalidValue;
    for (int i = 0; error == cudaSuccess && i < len; i++)
        error = rondo_runtime_check_device(&call, device_arr[i]);
    return rondo_runtime_record(error);
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && (!device || !prop))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *device = 0; /* all are alike */
    return rondo_runtime_record(error);
}

static cudaError_t get_attribute(int *value, enum cudaDeviceAttr attr, int device)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && !value)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = rondo_runtime_check_device(&call, device);
    if (error != cudaSuccess)
        return error;
    return rondo_runtime_translate(call.context->attribute(device, (int)attr, value), cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    return rondo_runtime_record(get_attribute(value, attr, device));
}

static cudaError_t get_pci_bus_id(char *pciBusId, int len, int device)
{
    struct rondo_device_properties properties;
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && (!pciBusId || len <= 0))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = rondo_runtime_check_device(&call, device);
    if (error != cudaSuccess)
        return error;
    ncclResult_t rc = call.cpu->device.properties(device, &properties);
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidDevice);
    if (strlen(properties.busid) >= (size_t)len)
        return rondo_runtime_fail(cudaErrorInvalidValue, "write the bus id %s of device %d into %d bytes",
                                  properties.busid, device, len);
    strcpy(pciBusId, properties.busid);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    return rondo_runtime_record(get_pci_bus_id(pciBusId, len, device));
}

/* "domain:bus:slot.function", or without domain or function, as sysfs and users write it. */
static bool parse_bus_id(const char *text, unsigned *domain_out, unsigned *bus_out, unsigned *slot_out)
{
    int used = 0;

    *domain_out = 0;
    if (sscanf(text, "%x:%x:%x%n", domain_out, bus_out, slot_out, &used) != 3 &&
        (*domain_out = 0, sscanf(text, "%x:%x%n", bus_out, slot_out, &used) != 2))
        return false;
    return text[used] == '\0' || (text[used] == '.' && text[used + 1] == '0' && text[used + 2] == '\0');
}

static cudaError_t get_by_pci_bus_id(int *device_out, const char *text)
{
    struct rondo_call call;
    unsigned domain, bus, slot;
    int count = 0;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error != cudaSuccess)
        return error;
    if (!device_out || !text)
        return cudaErrorInvalidValue;
    if (!parse_bus_id(text, &domain, &bus, &slot))
        return rondo_runtime_fail(cudaErrorInvalidValue,
                                  "read the bus id \"%.40s\": it is not of the form "
                                  "domain:bus:device.function",
                                  text);
    ncclResult_t rc = call.cpu->device.count(&count);
    for (int device = 0; rc == ncclSuccess && device < count; device++) {
        int values[3] = {-1, -1, -1};
        const int ids[3] = {cudaDevAttrPciDomainId, cudaDevAttrPciBusId, cudaDevAttrPciDeviceId};

        for (int i = 0; i < 3 && rc == ncclSuccess; i++)
            rc = call.context->attribute(device, ids[i], &values[i]);
        if (rc == ncclSuccess && values[0] == (int)domain && values[1] == (int)bus &&
            values[2] == (int)slot) {
            *device_out = device;
            return cudaSuccess;
        }
    }
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidValue);
    return rondo_runtime_fail(cudaErrorInvalidDevice,
                              "find the device with bus id \"%.40s\": none of the %d has it", text, count);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    return rondo_runtime_record(get_by_pci_bus_id(device, pciBusId));
}

/* Limits of device code, of which none runs: fixed answers, and settings are taken only if they change
 * nothing. */
static bool limit_value(enum cudaLimit limit, size_t *value_out)
{
    switch (limit) {
    case cudaLimitStackSize:
        *value_out = 1024;
        return true;
    case cudaLimitPrintfFifoSize:
        *value_out = 1u << 20;
        return true;
    case cudaLimitMallocHeapSize:
        *value_out = 8u << 20;
        return true;
    default:
        return false;
    }
}

cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && !pValue)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && !limit_value(limit, pValue))
        error = cudaErrorUnsupportedLimit;
    return rondo_runtime_record(error);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    struct rondo_call call;
    size_t current = 0;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && (!limit_value(limit, &current) || value > current))
        error = rondo_runtime_fail(cudaErrorUnsupportedLimit,
                                   "set limit %d of the device to %zu: the CPU device runs "
                                   "no kernels that it could apply to",
                                   (int)limit, value);
    return rondo_runtime_record(error);
}

cudaError_t cudaDeviceSynchronize(void)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess)
        error = rondo_runtime_translate(call.cpu->device_synchronize(call.device), cudaErrorInvalidValue);
    return rondo_runtime_record(error);
}

cudaError_t cudaDeviceReset(void)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess)
        error = rondo_runtime_translate(call.context->reset(call.device), cudaErrorInvalidValue);
    return rondo_runtime_record(error);
}

/* No profiler can be attached; starting and stopping none succeeds. */
cudaError_t cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    return cudaSuccess;
}
