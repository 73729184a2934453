/*
 * streams.c - streams and the host functions queued on them.
 */
#include "runtime.h"

#include <stdlib.h>

#define STREAM_PRIORITY_LEAST 0
#define STREAM_PRIORITY_GREATEST (-5)

/* NULL, cudaStreamLegacy and cudaStreamPerThread are streams of the current device that nobody made. */
static bool is_default_stream(cudaStream_t stream)
{
    return (uintptr_t)stream <= (uintptr_t)cudaStreamPerThread;
}

static cudaError_t create_stream(cudaStream_t *out, unsigned flags, int priority)
{
    struct rondo_call call;
    void *stream = NULL;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    if (!out || (flags & ~(unsigned)cudaStreamNonBlocking) != 0)
        return cudaErrorInvalidValue;
    if (priority > STREAM_PRIORITY_LEAST)
        priority = STREAM_PRIORITY_LEAST;
    if (priority < STREAM_PRIORITY_GREATEST)
        priority = STREAM_PRIORITY_GREATEST;
    ncclResult_t rc = call.cpu->stream_create_with_priority(
        call.device, flags & cudaStreamNonBlocking ? RONDO_STREAM_NON_BLOCKING : RONDO_STREAM_BLOCKING,
        priority, &stream);
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidValue);
    *out = stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    return rondo_runtime_record(create_stream(pStream, cudaStreamDefault, STREAM_PRIORITY_LEAST));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    return rondo_runtime_record(create_stream(pStream, flags, STREAM_PRIORITY_LEAST));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
    return rondo_runtime_record(create_stream(pStream, flags, priority));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess && leastPriority)
        *leastPriority = STREAM_PRIORITY_LEAST;
    if (error == cudaSuccess && greatestPriority)
        *greatestPriority = STREAM_PRIORITY_GREATEST;
    return rondo_runtime_record(error);
}

static cudaError_t destroy_stream(cudaStream_t stream)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    if (is_default_stream(stream))
        return rondo_runtime_fail(cudaErrorInvalidResourceHandle,
                                  "destroy a default stream (%p): nobody made it", (void *)stream);
    return rondo_runtime_translate(call.cpu->device.stream_destroy(stream), cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return rondo_runtime_record(destroy_stream(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess)
        error = rondo_runtime_translate(call.cpu->device.synchronize(call.device, stream),
                                        cudaErrorInvalidResourceHandle);
    return rondo_runtime_record(error);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    struct rondo_call call;
    bool is_done = false;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess)
        error = rondo_runtime_translate(call.cpu->device.query(call.device, stream, &is_done),
                                        cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess && !is_done)
        error = cudaErrorNotReady;
    return rondo_runtime_record(error);
}

static cudaError_t stream_facts(cudaStream_t stream, int *device_out, unsigned *flags_out, int *priority_out)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    if (is_default_stream(stream)) {
        *device_out = call.device;
        *flags_out = cudaStreamDefault;
        *priority_out = STREAM_PRIORITY_LEAST;
        return cudaSuccess;
    }
    return rondo_runtime_translate(call.cpu->stream_info(stream, device_out, flags_out, priority_out),
                                   cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
    int device = 0, value = 0;
    unsigned flags = 0;
    cudaError_t error = priority ? stream_facts(hStream, &device, &flags, &value) : cudaErrorInvalidValue;

    if (error == cudaSuccess)
        *priority = value;
    return rondo_runtime_record(error);
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
    int device = 0, priority = 0;
    unsigned value = 0;
    cudaError_t error = flags ? stream_facts(hStream, &device, &value, &priority) : cudaErrorInvalidValue;

    if (error == cudaSuccess)
        *flags = value & RONDO_STREAM_NON_BLOCKING ? cudaStreamNonBlocking : cudaStreamDefault;
    return rondo_runtime_record(error);
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
    int value = 0, priority = 0;
    unsigned flags = 0;
    cudaError_t error = device ? stream_facts(hStream, &value, &flags, &priority) : cudaErrorInvalidValue;

    if (error == cudaSuccess)
        *device = value;
    return rondo_runtime_record(error);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess && !fn)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        error = rondo_runtime_queue_host_function(&call, stream, fn, userData);
    return rondo_runtime_record(error);
}

struct callback {
    cudaStreamCallback_t function;
    cudaStream_t stream;
    void *argument;
};

static void run_callback(void *owned)
{
    struct callback callback = *(struct callback *)owned;

    free(owned);
    callback.function(callback.stream, cudaSuccess, callback.argument);
}

static cudaError_t add_callback(cudaStream_t stream, cudaStreamCallback_t function, void *argument)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    struct callback *callback = malloc(sizeof(*callback));
    if (!callback)
        return rondo_runtime_fail(cudaErrorMemoryAllocation, "queue a callback: no memory for %zu bytes",
                                  sizeof(*callback));
    *callback = (struct callback){.function = function, .stream = stream, .argument = argument};
    error = rondo_runtime_queue_host_function(&call, stream, run_callback, callback);
    if (error != cudaSuccess)
        free(callback);
    return error;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                  unsigned int flags)
{
    return rondo_runtime_record(callback && flags == 0 ? add_callback(stream, callback, userData)
                                                       : cudaErrorInvalidValue);
}
