/*
 * memory.c - device memory: cudaMalloc and its relatives, and what an address is.
 *
 * Everything comes from the device's arena. Managed memory too: both sides can reach all of it anyway, so it
 * differs only in what is said of it, and that is noted in a range.
 */
#include "runtime.h"

#include <string.h>

#define PITCH_ALIGNMENT 512

static cudaError_t allocate(void **out, size_t bytes, struct rondo_call *call_out)
{
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, call_out);

    if (error != cudaSuccess)
        return error;
    if (!out)
        return rondo_runtime_fail(cudaErrorInvalidValue,
                                  "allocate %zu bytes: where to put the address is NULL", bytes);
    ncclResult_t rc = call_out->cpu->device.allocate(call_out->device, bytes, out);
    return rondo_runtime_translate_memory(rc, cudaErrorInvalidValue);
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    struct rondo_call call;

    return rondo_runtime_record(allocate(devPtr, size, &call));
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    struct rondo_call call;
    size_t row = 0, bytes = 0;
    cudaError_t error = cudaErrorInvalidValue;

    if (pitch && !__builtin_add_overflow(width, (size_t)PITCH_ALIGNMENT - 1, &row)) {
        row = row / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
        if (!__builtin_mul_overflow(row, height, &bytes))
            error = allocate(devPtr, bytes, &call);
    }
    if (error == cudaSuccess)
        *pitch = row;
    return rondo_runtime_record(error);
}

static cudaError_t allocate_managed(void **out, size_t bytes, unsigned flags)
{
    struct rondo_call call;
    void *pointer = NULL;

    if (!out || bytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cudaErrorInvalidValue;
    cudaError_t error = allocate(&pointer, bytes, &call);
    if (error != cudaSuccess)
        return error;
    ncclResult_t rc = call.context->range_add(&(struct rondo_range){
        .base = pointer, .bytes = bytes, .kind = RONDO_RANGE_MANAGED, .flags = flags, .device = call.device});
    if (rc != ncclSuccess) {
        call.cpu->device.release(pointer);
        return rondo_runtime_translate_memory(rc, cudaErrorInvalidValue);
    }
    *out = pointer;
    return cudaSuccess;
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    return rondo_runtime_record(allocate_managed(devPtr, size, flags));
}

/* The allocation that begins at pointer. */
static cudaError_t find_allocation(const struct rondo_call *call, void *pointer,
                                   struct rondo_pointer_info *info_out)
{
    ncclResult_t rc = call->cpu->device.query_pointer(pointer, info_out);

    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidValue);
    if (info_out->kind == RONDO_MEMORY_DEVICE && info_out->base == pointer)
        return cudaSuccess;
    if (info_out->kind == RONDO_MEMORY_DEVICE)
        return rondo_runtime_fail(cudaErrorInvalidValue,
                                  "free %p: it lies inside the allocation that begins at %p", pointer,
                                  info_out->base);
    if (info_out->kind == RONDO_MEMORY_HOST)
        return rondo_runtime_fail(cudaErrorInvalidValue, "free %p: it is host memory; use cudaFreeHost",
                                  pointer);
    return rondo_runtime_fail(cudaErrorInvalidValue, "free %p: no device allocation is there", pointer);
}

static cudaError_t release_allocation(const struct rondo_call *call, void *pointer)
{
    struct rondo_range range;

    call->context->range_take(pointer, RONDO_RANGE_MANAGED, &range);
    return rondo_runtime_translate(call->cpu->device.release(pointer), cudaErrorInvalidValue);
}

static cudaError_t free_memory(void *pointer)
{
    struct rondo_pointer_info info;
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess || !pointer)
        return error;
    error = find_allocation(&call, pointer, &info);
    if (error != cudaSuccess)
        return error;
    ncclResult_t rc = call.cpu->device_synchronize(info.device); /* work that uses it may be queued */
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidValue);
    return release_allocation(&call, pointer);
}

cudaError_t cudaFree(void *devPtr)
{
    return rondo_runtime_record(free_memory(devPtr));
}

/* Memory is there at once, which satisfies any order of the stream. */
static cudaError_t allocate_async(void **out, size_t bytes, cudaStream_t stream)
{
    struct rondo_call call;
    int device = 0;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    if ((uintptr_t)stream > 2) {
        ncclResult_t rc = call.cpu->device.stream_device(stream, &device);
        if (rc != ncclSuccess)
            return rondo_runtime_translate(rc, cudaErrorInvalidResourceHandle);
    }
    return allocate(out, bytes, &call);
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    return rondo_runtime_record(allocate_async(devPtr, size, hStream));
}

static void release_in_order(void *pointer)
{
    struct rondo_call call;

    if (rondo_runtime_enter(RONDO_NEED_LIBRARY, &call) == cudaSuccess)
        release_allocation(&call, pointer); /* it was there when this was queued; a failure leaves its text */
}

static cudaError_t free_async(void *pointer, cudaStream_t stream)
{
    struct rondo_pointer_info info;
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess || !pointer)
        return error;
    error = find_allocation(&call, pointer, &info);
    if (error != cudaSuccess)
        return error;
    return rondo_runtime_translate(call.cpu->host_function(call.device, stream, release_in_order, pointer),
                                   cudaErrorInvalidResourceHandle);
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    return rondo_runtime_record(free_async(devPtr, hStream));
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    struct rondo_call call;
    uint64_t free_bytes = 0, total_bytes = 0;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && (!free || !total))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = rondo_runtime_translate(call.cpu->memory_info(call.device, &free_bytes, &total_bytes),
                                        cudaErrorInvalidValue);
    if (error == cudaSuccess) {
        *free = free_bytes;
        *total = total_bytes;
    }
    return rondo_runtime_record(error);
}

static cudaError_t describe_pointer(struct cudaPointerAttributes *out, const void *pointer)
{
    struct rondo_pointer_info info;
    struct rondo_range range;
    struct rondo_call call;
    void *address = (void *)(uintptr_t)pointer; /* the answer's fields are not const */
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error != cudaSuccess)
        return error;
    if (!out)
        return cudaErrorInvalidValue;
    memset(out, 0, sizeof(*out));
    if (call.context->range_find(pointer, &range)) {
        out->type = range.kind == RONDO_RANGE_MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
        out->device = range.device;
        out->devicePointer = out->hostPointer = address;
        return cudaSuccess;
    }
    ncclResult_t rc = call.cpu->device.query_pointer(pointer, &info);
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidValue);
    switch (info.kind) {
    case RONDO_MEMORY_DEVICE:
        out->type = cudaMemoryTypeDevice;
        out->device = info.device;
        out->devicePointer = address;
        break;
    case RONDO_MEMORY_HOST:
        out->type = cudaMemoryTypeHost;
        out->device = call.device;
        out->devicePointer = out->hostPointer = address;
        break;
    case RONDO_MEMORY_UNKNOWN:
    case RONDO_MEMORY_VACANT:
        out->type = cudaMemoryTypeUnregistered;
        out->device = cudaInvalidDeviceId;
        out->hostPointer = address;
        break;
    }
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    return rondo_runtime_record(describe_pointer(attributes, ptr));
}

/* Advice and prefetching: the memory is where both sides want it already. Only the arguments are checked. */
static cudaError_t check_managed(const void *pointer, size_t bytes)
{
    struct rondo_range range;
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error != cudaSuccess)
        return error;
    if (!call.context->range_find(pointer, &range) || range.kind != RONDO_RANGE_MANAGED)
        return rondo_runtime_fail(cudaErrorInvalidValue,
                                  "advise on %zu bytes at %p: they are not of cudaMallocManaged", bytes,
                                  pointer);
    return rondo_runtime_check_span(&call, pointer, bytes, "managed memory");
}

#if CUDART_VERSION < 13000
cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice, int device)
{
    (void)advice;
    (void)device;
    return rondo_runtime_record(check_managed(devPtr, count));
}

cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, int dstDevice, cudaStream_t stream)
{
    (void)dstDevice;
    (void)stream;
    return rondo_runtime_record(check_managed(devPtr, count));
}
#else
cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    (void)advice;
    (void)location;
    return rondo_runtime_record(check_managed(devPtr, count));
}

cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream)
{
    (void)location;
    (void)flags;
    (void)stream;
    return rondo_runtime_record(check_managed(devPtr, count));
}
#endif
