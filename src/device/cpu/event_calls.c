/*
 * event_calls.c - events: named moments in streams.
 *
 * Recording makes a new mark, so that a second record leaves whoever waits for the first one alone, and
 * destroying an event takes nothing from those who wait for it.
 */
#include "cpu/calls.h"

#include "base/clock.h"
#include "base/error.h"
#include "cpu/assign.h"
#include "cpu/handles.h"
#include "cpu/queue.h"

#include <stdlib.h>

ncclResult_t rondo_event_create(int device, bool has_timing, struct rondo_event **event_out)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_find(&self);

    if (rc == ncclSuccess)
        rc = rondo_cpu_device_check(device);
    if (rc != ncclSuccess)
        return rc;
    struct rondo_cpu_event *event = calloc(1, sizeof(*event));
    void *handle = NULL;
    if (event) {
        event->device = device;
        event->has_timing = has_timing;
        rondo_cpu_lock();
        handle = rondo_handle_make(RONDO_HANDLE_EVENT, event);
        rondo_cpu_unlock(self);
    }
    if (!handle) {
        free(event);
        return rondo_fail(ncclSystemError, "make an event: out of memory");
    }
    *event_out = handle;
    return ncclSuccess;
}

void rondo_event_destroy(struct rondo_event *event)
{
    struct rondo_caller *self;

    if (!event || rondo_caller_find(&self) != ncclSuccess)
        return;
    rondo_cpu_lock();
    struct rondo_cpu_event *found = rondo_handle_find(RONDO_HANDLE_EVENT, event);
    if (found) {
        rondo_handle_free(event);
        rondo_mark_put(found->mark);
    }
    rondo_cpu_unlock(self);
    free(found);
}

/* Under the lock. */
static ncclResult_t find_event(struct rondo_event *event, struct rondo_cpu_event **event_out)
{
    struct rondo_cpu_event *found = rondo_handle_find(RONDO_HANDLE_EVENT, event);

    if (!found)
        return rondo_fail(ncclInvalidArgument, "use event %p: it was never made, or was destroyed",
                          (void *)event);
    *event_out = found;
    return ncclSuccess;
}

static struct rondo_mark *make_mark(struct rondo_queue *queue)
{
    struct rondo_mark *mark = malloc(sizeof(*mark));

    if (mark) {
        *mark = (struct rondo_mark){
            .references = 2, .queue = queue, .ticket = queue->enqueued + 1}; /* the event's, the item's */
        rondo_hook_init(&mark->dependents);
    }
    return mark;
}

/* Puts what a call is for into a queue; the lock is held. */
typedef ncclResult_t append_fn(struct rondo_driver *driver, struct rondo_queue *queue,
                               struct rondo_cpu_event *event);

static ncclResult_t append_record(struct rondo_driver *driver, struct rondo_queue *queue,
                                  struct rondo_cpu_event *event)
{
    struct rondo_mark *mark = make_mark(queue);
    ncclResult_t rc;

    if (!mark)
        return rondo_fail(ncclSystemError, "record an event: out of memory");
    rc = rondo_stream_append(driver, queue, &(struct rondo_item){.kind = RONDO_ITEM_RECORD, .u.mark = mark});
    if (rc != ncclSuccess) {
        free(mark);
        return rc;
    }
    rondo_mark_put(event->mark);
    event->mark = mark;
    return ncclSuccess;
}

static ncclResult_t append_wait(struct rondo_driver *driver, struct rondo_queue *queue,
                                struct rondo_cpu_event *event)
{
    struct rondo_mark *mark = event->mark;
    ncclResult_t rc;

    if (!mark || !mark->queue || mark->queue == queue) /* it is past, or earlier in the same queue */
        return ncclSuccess;
    mark->references++;
    rc = rondo_stream_append(driver, queue, &(struct rondo_item){.kind = RONDO_ITEM_WAIT, .u.mark = mark});
    if (rc != ncclSuccess)
        mark->references--;
    return rc;
}

static ncclResult_t enqueue(const char *what, struct rondo_event *event, int device, void *stream,
                            append_fn *append)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_queue *queue = NULL;
    struct rondo_cpu_event *found = NULL;
    ncclResult_t rc = rondo_caller_enter(what, &self);

    if (rc != ncclSuccess)
        return rc;
    rondo_driver_begin(&driver, self, RONDO_DRIVER_ENQUEUE);
    rondo_cpu_lock();
    rc = find_event(event, &found);
    if (rc == ncclSuccess)
        rc = rondo_stream_find(self, device, stream, &queue);
    if (rc == ncclSuccess)
        rc = append(&driver, queue, found);
    rondo_cpu_unlock(self);
    if (rc == ncclSuccess)
        rondo_driver_leave(&driver);
    return rc;
}

ncclResult_t rondo_event_record(struct rondo_event *event, int device, void *stream)
{
    return enqueue("record an event", event, device, stream, append_record);
}

ncclResult_t rondo_stream_wait(int device, void *stream, struct rondo_event *event)
{
    return enqueue("make a stream wait for an event", event, device, stream, append_wait);
}

ncclResult_t rondo_event_query(struct rondo_event *event, bool *done_out)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_cpu_event *found = NULL;
    ncclResult_t rc = rondo_caller_enter("query an event", &self);

    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    rc = find_event(event, &found);
    if (rc == ncclSuccess && found->mark && found->mark->queue) {
        rondo_driver_begin(&driver, self, RONDO_DRIVER_QUERY);
        rondo_driver_look(&driver, found->mark->queue);
        rc = find_event(event, &found); /* another thread may have destroyed it meanwhile */
    }
    if (rc == ncclSuccess)
        *done_out = !found->mark || !found->mark->queue;
    rondo_cpu_unlock(self);
    return rc;
}

ncclResult_t rondo_event_synchronize(struct rondo_event *event)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_cpu_event *found = NULL;
    ncclResult_t rc = rondo_caller_enter("wait for an event", &self);

    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    rc = find_event(event, &found);
    bool is_pending = rc == ncclSuccess && found->mark && found->mark->queue;
    if (is_pending) {
        rondo_driver_begin(&driver, self, RONDO_DRIVER_BLOCKING);
        rondo_driver_watch(&driver, found->mark->queue, found->mark->ticket);
    }
    rondo_cpu_unlock(self);
    if (is_pending)
        rondo_driver_await(&driver);
    return rc;
}

ncclResult_t rondo_event_elapsed(struct rondo_event *start, struct rondo_event *end, float *milliseconds_out)
{
    struct rondo_caller *self;
    struct rondo_cpu_event *from = NULL, *to = NULL;
    ncclResult_t rc = rondo_caller_find(&self);

    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    rc = find_event(start, &from);
    if (rc == ncclSuccess)
        rc = find_event(end, &to);
    if (rc != ncclSuccess)
        goto unlock;
    if (!from->has_timing || !to->has_timing)
        rc = rondo_fail(ncclInvalidUsage, "time between two events: one was made without timing");
    else if (!from->mark || !to->mark)
        rc = rondo_fail(ncclInvalidUsage, "time between two events: one was never recorded");
    else if (from->mark->queue || to->mark->queue)
        rc = ncclInProgress;
    else
        *milliseconds_out = (float)((double)(int64_t)(to->mark->ns - from->mark->ns) / 1e6);
unlock:
    rondo_cpu_unlock(self);
    return rc;
}
