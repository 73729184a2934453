/*
 * events.c - events. A handle is the device layer's event; that it is alive is looked up before every use.
 */
#include "runtime.h"

#define EVENT_FLAGS (cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess)

static cudaError_t create_event(cudaEvent_t *out, unsigned flags)
{
    struct rondo_call call;
    struct rondo_event *event = NULL;
    bool has_timing = (flags & cudaEventDisableTiming) == 0;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    if (!out || (flags & ~(unsigned)EVENT_FLAGS) != 0 || ((flags & cudaEventInterprocess) != 0 && has_timing))
        return cudaErrorInvalidValue;
    ncclResult_t rc = call.cpu->event_create_timed(call.device, has_timing, &event);
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidValue);
    rc = call.context->event_add(
        event, &(struct rondo_event_facts){.device = call.device, .has_timing = has_timing});
    if (rc != ncclSuccess) {
        call.cpu->device.event_destroy(event);
        return cudaErrorMemoryAllocation;
    }
    *out = (cudaEvent_t)(void *)event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return rondo_runtime_record(create_event(event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    return rondo_runtime_record(create_event(event, flags));
}

/* Enter a call on an event that must be alive. */
static cudaError_t enter_event(cudaEvent_t handle, struct rondo_call *call_out,
                               struct rondo_event **event_out, struct rondo_event_facts *facts_out)
{
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, call_out);

    if (error != cudaSuccess)
        return error;
    *event_out = (struct rondo_event *)(void *)handle;
    if (!call_out->context->event_find(*event_out, facts_out))
        return rondo_runtime_fail(cudaErrorInvalidResourceHandle,
                                  "use the event %p: there is none, or it was destroyed", (void *)handle);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    struct rondo_call call;
    struct rondo_event *inner;
    struct rondo_event_facts facts;
    cudaError_t error = enter_event(event, &call, &inner, &facts);

    if (error == cudaSuccess && !call.context->event_take(inner))
        error = cudaErrorInvalidResourceHandle; /* another thread destroyed it meanwhile */
    if (error == cudaSuccess)
        call.cpu->device.event_destroy(inner);
    return rondo_runtime_record(error);
}

/* The device a stream belongs to. */
static cudaError_t stream_device(const struct rondo_call *call, cudaStream_t stream, int *device_out)
{
    if ((uintptr_t)stream <= (uintptr_t)cudaStreamPerThread) {
        *device_out = call->device;
        return cudaSuccess;
    }
    return rondo_runtime_translate(call->cpu->device.stream_device(stream, device_out),
                                   cudaErrorInvalidResourceHandle);
}

static cudaError_t record_event(cudaEvent_t handle, cudaStream_t stream)
{
    struct rondo_call call;
    struct rondo_event *event;
    struct rondo_event_facts facts;
    int device = 0;
    cudaError_t error = enter_event(handle, &call, &event, &facts);

    if (error == cudaSuccess)
        error = stream_device(&call, stream, &device);
    if (error != cudaSuccess)
        return error;
    if (device != facts.device)
        return rondo_runtime_fail(
            cudaErrorInvalidResourceHandle,
            "record an event of device %d on a stream of device %d: they must be of one device", facts.device,
            device);
    return rondo_runtime_translate(call.cpu->device.event_record(event, device, stream),
                                   cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return rondo_runtime_record(record_event(event, stream));
}

/* cudaEventRecordExternal only means something in a capture, and there is none. */
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return rondo_runtime_record(flags == cudaEventRecordDefault ? record_event(event, stream)
                                                                : cudaErrorInvalidValue);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    struct rondo_call call;
    struct rondo_event *inner;
    struct rondo_event_facts facts;
    bool is_done = false;
    cudaError_t error = enter_event(event, &call, &inner, &facts);

    if (error == cudaSuccess)
        error = rondo_runtime_translate(call.cpu->device.event_query(inner, &is_done),
                                        cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess && !is_done)
        error = cudaErrorNotReady;
    return rondo_runtime_record(error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    struct rondo_call call;
    struct rondo_event *inner;
    struct rondo_event_facts facts;
    cudaError_t error = enter_event(event, &call, &inner, &facts);

    if (error == cudaSuccess)
        error = rondo_runtime_translate(call.cpu->event_synchronize(inner), cudaErrorInvalidResourceHandle);
    return rondo_runtime_record(error);
}

static cudaError_t elapsed_time(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    struct rondo_call call;
    struct rondo_event *first, *second;
    struct rondo_event_facts facts;
    cudaError_t error = enter_event(start, &call, &first, &facts);

    if (error == cudaSuccess)
        error = enter_event(end, &call, &second, &facts);
    if (error != cudaSuccess)
        return error;
    if (!ms)
        return cudaErrorInvalidValue;
    return rondo_runtime_translate(call.cpu->event_elapsed(first, second, ms),
                                   cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return rondo_runtime_record(elapsed_time(ms, start, end));
}

static cudaError_t wait_event(cudaStream_t stream, cudaEvent_t handle, unsigned flags)
{
    struct rondo_call call;
    struct rondo_event *event;
    struct rondo_event_facts facts;
    cudaError_t error = enter_event(handle, &call, &event, &facts);

    if (error != cudaSuccess)
        return error;
    if (flags != cudaEventWaitDefault) /* External only means something in a capture */
        return cudaErrorInvalidValue;
    return rondo_runtime_translate(call.cpu->device.stream_wait(call.device, stream, event),
                                   cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return rondo_runtime_record(wait_event(stream, event, flags));
}
