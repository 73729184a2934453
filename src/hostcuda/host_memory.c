/*
 * host_memory.c - host memory that the device may use: of our own making (pinned), or the caller's
 * (registered).
 *
 * The device can use any memory of the process. What these calls add is that it is known as such afterwards,
 * with the flags it was made with.
 */
#include "runtime.h"

#define ALLOC_FLAGS (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)
#define REGISTER_FLAGS \
    (cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterIoMemory | cudaHostRegisterReadOnly)

static cudaError_t allocate_host(void **out, size_t bytes, unsigned flags)
{
    struct rondo_call call;
    void *pointer = NULL;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    if (!out || (flags & ~(unsigned)ALLOC_FLAGS) != 0)
        return cudaErrorInvalidValue;
    if (bytes == 0) {
        *out = NULL;
        return cudaSuccess;
    }
    ncclResult_t rc = call.cpu->host_allocate(bytes, &pointer);
    if (rc != ncclSuccess)
        return rondo_runtime_translate_memory(rc, cudaErrorInvalidValue);
    rc = call.context->range_add(&(struct rondo_range){
        .base = pointer, .bytes = bytes, .kind = RONDO_RANGE_PINNED, .flags = flags, .device = call.device});
    if (rc != ncclSuccess) {
        call.cpu->host_release(pointer);
        return rondo_runtime_translate_memory(rc, cudaErrorInvalidValue);
    }
    *out = pointer;
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    return rondo_runtime_record(allocate_host(pHost, size, flags));
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    return rondo_runtime_record(allocate_host(ptr, size, cudaHostAllocDefault));
}

static cudaError_t free_host(void *pointer)
{
    struct rondo_range range;
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess || !pointer)
        return error;
    if (!call.context->range_find(pointer, &range) || range.kind != RONDO_RANGE_PINNED ||
        range.base != pointer)
        return rondo_runtime_fail(cudaErrorInvalidValue,
                                  "free host memory at %p: no cudaHostAlloc or cudaMallocHost "
                                  "gave that address",
                                  pointer);
    ncclResult_t rc = call.cpu->device_synchronize(range.device); /* work that uses it may be queued */
    if (rc == ncclSuccess && !call.context->range_take(pointer, RONDO_RANGE_PINNED, &range))
        return cudaErrorInvalidValue; /* another thread freed it meanwhile */
    if (rc == ncclSuccess)
        rc = call.cpu->host_release(pointer);
    return rondo_runtime_translate(rc, cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void *ptr)
{
    return rondo_runtime_record(free_host(ptr));
}

static cudaError_t register_host(void *pointer, size_t bytes, unsigned flags)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    if (!pointer || bytes == 0 || (flags & ~(unsigned)REGISTER_FLAGS) != 0 ||
        (uintptr_t)pointer + bytes < bytes)
        return cudaErrorInvalidValue;
    ncclResult_t rc = call.context->range_add(&(struct rondo_range){.base = pointer,
                                                                    .bytes = bytes,
                                                                    .kind = RONDO_RANGE_REGISTERED,
                                                                    .flags = flags,
                                                                    .device = call.device});
    if (rc == ncclInvalidUsage)
        return cudaErrorHostMemoryAlreadyRegistered;
    return rondo_runtime_translate_memory(rc, cudaErrorInvalidValue);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    return rondo_runtime_record(register_host(ptr, size, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
    struct rondo_range range;
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess && !ptr)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && !call.context->range_take(ptr, RONDO_RANGE_REGISTERED, &range))
        error = rondo_runtime_fail(cudaErrorHostMemoryNotRegistered,
                                   "unregister host memory at %p: no registered range begins there", ptr);
    return rondo_runtime_record(error);
}

static cudaError_t find_host_range(void *pointer, struct rondo_range *range_out)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error != cudaSuccess)
        return error;
    if (!call.context->range_find(pointer, range_out) || range_out->kind == RONDO_RANGE_MANAGED)
        return rondo_runtime_fail(cudaErrorInvalidValue,
                                  "look up host memory at %p: it is neither of cudaHostAlloc "
                                  "nor registered",
                                  pointer);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    struct rondo_range range;
    cudaError_t error = pDevice && flags == 0 ? find_host_range(pHost, &range) : cudaErrorInvalidValue;

    if (error == cudaSuccess)
        *pDevice = pHost;
    return rondo_runtime_record(error);
}

cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
    struct rondo_range range;
    cudaError_t error = pFlags ? find_host_range(pHost, &range) : cudaErrorInvalidValue;

    if (error == cudaSuccess && range.kind != RONDO_RANGE_PINNED)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *pFlags = range.flags | cudaHostAllocMapped; /* under unified addressing all of it is */
    return rondo_runtime_record(error);
}
