/* buffers.c - a send and a receive buffer for each device, registered with NCCL where -R asks for it. */
#include "run.h"

#include <stdlib.h>

static enum perf_status allocate(struct perf_run *run, struct perf_device *device, char **buffer_out)
{
    void *memory = NULL;
    cudaError_t error;
    ncclResult_t result;

    if (run->options.registration > 0) {
        result = ncclMemAlloc(&memory, device->bytes);
        if (result != ncclSuccess)
            return perf_fail_nccl("ncclMemAlloc", result, NULL);
    } else {
        error = cudaMalloc(&memory, device->bytes);
        if (error != cudaSuccess)
            return perf_fail_cuda("cudaMalloc", error);
    }
    *buffer_out = memory;
    return PERF_OK;
}

/* Device memory that the host may touch, as the CPU device's, says so by a host pointer equal to it. */
static bool is_host_accessible(const void *memory)
{
    struct cudaPointerAttributes attributes;

    if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    return attributes.hostPointer == memory;
}

static ncclResult_t register_one(struct perf_run *run, struct perf_device *device, char *buffer,
                                 void **handle)
{
    if (run->options.registration == 1)
        return ncclCommRegister(device->comm, buffer, device->bytes, handle);
    return ncclCommWindowRegister(device->comm, buffer, device->bytes, (ncclWindow_t *)(void *)handle,
                                  NCCL_WIN_COLL_SYMMETRIC);
}

/* Windows are made by all ranks together, so those of one thread go into a group. */
static enum perf_status register_all(struct perf_run *run, struct perf_device *devices, int count)
{
    const char *what = run->options.registration == 1 ? "ncclCommRegister" : "ncclCommWindowRegister";
    ncclResult_t result = ncclGroupStart(), end;

    for (int i = 0; i < count && result == ncclSuccess; i++) {
        cudaSetDevice(devices[i].device);
        result = register_one(run, &devices[i], devices[i].send, &devices[i].send_registration);
        if (result == ncclSuccess)
            result = register_one(run, &devices[i], devices[i].recv, &devices[i].recv_registration);
    }
    end = ncclGroupEnd();
    if (result == ncclSuccess)
        result = end;
    return result == ncclSuccess ? PERF_OK : perf_fail_nccl(what, result, devices[0].comm);
}

enum perf_status perf_buffers_open(struct perf_run *run, struct perf_device *devices, int count)
{
    enum perf_status status = PERF_OK;

    if (run->options.device_api > 0) /* before the windows that these kernels would need */
        status = perf_fail(PERF_UNSUPPORTED, "-D %d needs kernels over ncclDevCommCreate: not implemented",
                           run->options.device_api);
    for (int i = 0; i < count && status == PERF_OK; i++) {
        cudaError_t error = cudaSetDevice(devices[i].device);

        if (error != cudaSuccess)
            return perf_fail_cuda("cudaSetDevice", error);
        devices[i].bytes = run->options.max_bytes + 8 * (size_t)run->options.unalign;
        if (devices[i].bytes == 0)
            devices[i].bytes = 16; /* so that size 0 has pointers, too */
        status = allocate(run, &devices[i], &devices[i].send);
        if (status == PERF_OK)
            status = allocate(run, &devices[i], &devices[i].recv);
        if (status == PERF_OK)
            devices[i].is_host_accessible =
                is_host_accessible(devices[i].send) && is_host_accessible(devices[i].recv);
    }
    if (status == PERF_OK && run->options.registration > 0)
        status = register_all(run, devices, count);
    return status;
}

static ncclResult_t deregister_one(struct perf_run *run, struct perf_device *device, void **handle)
{
    void *registration = *handle;

    *handle = NULL;
    if (!registration || !device->comm)
        return ncclSuccess;
    if (run->options.registration == 1)
        return ncclCommDeregister(device->comm, registration);
    return ncclCommWindowDeregister(device->comm, (ncclWindow_t)registration);
}

static void release(struct perf_run *run, char **buffer)
{
    if (*buffer && run->options.registration > 0)
        ncclMemFree(*buffer);
    else if (*buffer)
        cudaFree(*buffer);
    *buffer = NULL;
}

enum perf_status perf_buffers_close(struct perf_run *run)
{
    ncclResult_t result = ncclSuccess;

    for (int i = 0; i < run->device_count; i++) {
        struct perf_device *device = &run->devices[i];

        cudaSetDevice(device->device);
        if (result == ncclSuccess)
            result = deregister_one(run, device, &device->send_registration);
        if (result == ncclSuccess)
            result = deregister_one(run, device, &device->recv_registration);
        release(run, &device->send);
        release(run, &device->recv);
    }
    return result == ncclSuccess ? PERF_OK : perf_fail_nccl("ncclCommDeregister", result, NULL);
}
