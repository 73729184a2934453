/* stream.c - on which stream a batch runs, and what has to wait for what. */
#include "stream.h"

#include "base/error.h"
#include "device/device.h"

/* NULL, legacy and per thread: each device has these. */
#define LAST_DEFAULT_STREAM 2u

ncclResult_t rondo_stream_check(const struct ncclComm *comm, void *stream, const char *function)
{
    int device;
    ncclResult_t rc;

    if (comm->ops->is_synchronous || (uintptr_t)stream <= LAST_DEFAULT_STREAM)
        return ncclSuccess;
    rc = comm->ops->stream_device(stream, &device);
    if (rc != ncclSuccess)
        return rc;
    if (device != comm->device)
        return rondo_fail(
            ncclInvalidArgument,
            "%s: stream %p is of device %d, but rank %d's communicator is on device %d; make the "
            "stream while device %d is current",
            function, stream, device, comm->rank, comm->device, comm->device);
    return ncclSuccess;
}

/* The communicator's own queue, unordered with any other. */
static ncclResult_t open_private(struct ncclComm *comm)
{
    return comm->stream ? ncclSuccess : comm->ops->stream_create(comm->device, &comm->stream);
}

/* Let waiter wait for what signaller has queued so far. */
static ncclResult_t order(struct ncclComm *comm, void *waiter, void *signaller)
{
    struct rondo_event *event;
    ncclResult_t rc = comm->ops->event_create(comm->device, &event);

    if (rc != ncclSuccess)
        return rc;
    rc = comm->ops->event_record(event, comm->device, signaller);
    if (rc == ncclSuccess)
        rc = comm->ops->stream_wait(comm->device, waiter, event);
    comm->ops->event_destroy(event);
    return rc;
}

static ncclResult_t check_capture(struct ncclComm *comm, void *stream)
{
    uint64_t capture = 0;
    ncclResult_t rc = comm->ops->capture_state(comm->device, stream, &capture);

    if (rc == ncclSuccess && capture != 0)
        rc = rondo_fail(ncclInvalidUsage,
                        "communicate on a stream that is being captured into a graph: not in this version");
    return rc;
}

/* Whether an earlier batch of the group runs on the same stream: its kernels would wait for ours behind them
 * for ever. */
static bool is_taken(const struct rondo_batch *batches, size_t index)
{
    const struct rondo_batch *batch = &batches[index];

    for (size_t i = 0; i < index; i++) {
        if (batches[i].comm->device == batch->comm->device && batches[i].stream == batch->streams[0])
            return true;
    }
    return false;
}

static ncclResult_t join_batch(struct rondo_batch *batches, size_t index)
{
    struct rondo_batch *batch = &batches[index];
    struct ncclComm *comm = batch->comm;
    ncclResult_t rc = ncclSuccess;

    batch->stream = batch->streams[0];
    if (comm->ops->is_synchronous)
        return ncclSuccess;
    for (size_t s = 0; s < batch->stream_count && rc == ncclSuccess; s++)
        rc = check_capture(comm, batch->streams[s]);
    if (rc != ncclSuccess)
        return rc;
    if (is_taken(batches, index)) {
        rc = open_private(comm);
        batch->stream = comm->stream;
    }
    for (size_t s = 0; s < batch->stream_count && rc == ncclSuccess; s++) {
        if (batch->streams[s] != batch->stream)
            rc = order(comm, batch->stream, batch->streams[s]);
    }
    if (rc == ncclSuccess && comm->last_event && comm->last_stream != batch->stream &&
        rondo_comm_is_busy(comm))
        rc = comm->ops->stream_wait(comm->device, batch->stream, comm->last_event);
    return rc;
}

ncclResult_t rondo_stream_join(struct rondo_batch *batches, size_t count)
{
    ncclResult_t rc = ncclSuccess;

    for (size_t i = 0; i < count && rc == ncclSuccess; i++)
        rc = join_batch(batches, i);
    return rc;
}

static ncclResult_t fork_batch(struct rondo_batch *batch)
{
    struct ncclComm *comm = batch->comm;
    ncclResult_t rc = ncclSuccess;

    if (!comm->last_event)
        rc = comm->ops->event_create(comm->device, &comm->last_event);
    if (rc == ncclSuccess)
        rc = comm->ops->event_record(comm->last_event, comm->device, batch->stream);
    comm->last_stream = batch->stream;
    for (size_t s = 0; s < batch->stream_count && rc == ncclSuccess; s++) {
        if (batch->streams[s] != batch->stream)
            rc = comm->ops->stream_wait(comm->device, batch->streams[s], comm->last_event);
    }
    return rc;
}

ncclResult_t rondo_stream_fork(struct rondo_batch *batches, size_t count)
{
    ncclResult_t rc = ncclSuccess;

    for (size_t i = 0; i < count; i++) {
        ncclResult_t forked = batches[i].comm->ops->is_synchronous ? ncclSuccess : fork_batch(&batches[i]);

        if (rc == ncclSuccess)
            rc = forked;
    }
    return rc;
}

void rondo_stream_release(struct ncclComm *comm)
{
    comm->ops->event_destroy(comm->last_event);
    comm->last_event = NULL;
    if (comm->stream) {
        (void)comm->ops->stream_destroy(comm->stream);
        comm->stream = NULL;
    }
}
