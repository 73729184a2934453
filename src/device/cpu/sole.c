/*
 * sole.c - the CPU device for a process without a CUDA runtime.
 *
 * Such a program passes stream NULL for everything, and all its ranks share one current device. One queue for
 * all of it would let a launch of one rank wait behind another rank's that waits for it. So stream NULL is a
 * set of hidden queues of the calling thread: launches of one rank (one rank page) stay in order, those of
 * different ranks run side by side, and synchronize waits for all of them.
 */
#include "cpu/sole.h"

#include "base/error.h"
#include "cpu/assign.h"
#include "cpu/calls.h"
#include "cpu/queue.h"
#include "device/cpu.h"

#include <pthread.h>

static ncclResult_t check_stream(const void *stream)
{
    if (!stream)
        return ncclSuccess;
    return rondo_fail(
        ncclInvalidArgument,
        "use stream %p on the CPU device: this process has no CUDA runtime of Rondo's, so there are "
        "no streams; pass NULL, or run with Rondo's lib/hostcuda in LD_LIBRARY_PATH",
        stream);
}

/* Under the lock: the queue of this key if it is busy, else one that is idle. NULL: no memory. */
static struct rondo_queue *find_hidden(struct rondo_caller *self, int device, const void *key)
{
    struct rondo_queue *idle = NULL;

    for (struct rondo_hook *hook = self->queues.next; hook != &self->queues; hook = hook->next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, in_owner);
        if (queue->role != RONDO_QUEUE_HIDDEN || queue->device != device)
            continue;
        if (queue->head && queue->key == key)
            return queue;
        if (!queue->head)
            idle = queue;
    }
    if (!idle)
        idle = rondo_stream_of_thread(self, device, RONDO_QUEUE_HIDDEN);
    if (idle)
        idle->key = key;
    return idle;
}

static struct rondo_queue *find_busy_hidden(struct rondo_caller *self, int device)
{
    for (struct rondo_hook *hook = self->queues.next; hook != &self->queues; hook = hook->next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, in_owner);
        if (queue->role == RONDO_QUEUE_HIDDEN && queue->device == device && queue->head)
            return queue;
    }
    return NULL;
}

static ncclResult_t launch(int device, void *stream, const struct rondo_launch *what)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_queue *legacy, *queue;
    ncclResult_t rc = check_stream(stream);

    if (rc == ncclSuccess)
        rc = rondo_caller_enter("launch", &self);
    if (rc != ncclSuccess)
        return rc;
    rondo_driver_begin(&driver, self, RONDO_DRIVER_ENQUEUE);
    rondo_cpu_lock();
    rc = rondo_stream_find(self, device, NULL, &legacy); /* makes what the device needs */
    if (rc == ncclSuccess) {
        queue = find_hidden(self, device, what->args->page);
        rc =
            queue
                ? rondo_stream_append(&driver, queue,
                                      &(struct rondo_item){.kind = RONDO_ITEM_LAUNCH, .u.launch.what = *what})
                : rondo_fail(ncclSystemError, "launch: out of memory");
    }
    rondo_cpu_unlock(self);
    if (rc == ncclSuccess)
        rondo_driver_leave(&driver);
    return rc;
}

static ncclResult_t synchronize(int device, void *stream)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_queue *queue = NULL;
    ncclResult_t rc = check_stream(stream);

    if (rc == ncclSuccess)
        rc = rondo_caller_enter("wait for a stream", &self);
    if (rc == ncclSuccess)
        rc = rondo_cpu_device_check(device);
    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    while ((queue = find_busy_hidden(self, device)) != NULL) {
        rondo_driver_begin(&driver, self, RONDO_DRIVER_BLOCKING);
        rondo_driver_watch(&driver, queue, queue->enqueued);
        rondo_cpu_unlock(self);
        rondo_driver_await(&driver);
        rondo_cpu_lock();
    }
    rondo_cpu_unlock(self);
    return ncclSuccess;
}

static ncclResult_t query(int device, void *stream, bool *done_out)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    ncclResult_t rc = check_stream(stream);

    if (rc == ncclSuccess)
        rc = rondo_caller_enter("query a stream", &self);
    if (rc == ncclSuccess)
        rc = rondo_cpu_device_check(device);
    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    struct rondo_queue *queue = find_busy_hidden(self, device);
    if (queue) {
        rondo_driver_begin(&driver, self, RONDO_DRIVER_QUERY);
        rondo_driver_look(&driver, queue);
    }
    *done_out = !find_busy_hidden(self, device);
    rondo_cpu_unlock(self);
    return ncclSuccess;
}

/* Calls are complete when they return: so are these two, and the moment an event names is now. */
static ncclResult_t event_record(struct rondo_event *event, int device, void *stream)
{
    ncclResult_t rc = synchronize(device, stream);

    return rc == ncclSuccess ? rondo_event_record(event, device, NULL) : rc;
}

static ncclResult_t stream_wait(int device, void *stream, struct rondo_event *event)
{
    ncclResult_t rc = check_stream(stream);

    (void)device;
    return rc == ncclSuccess ? rondo_event_synchronize(event) : rc;
}

static ncclResult_t stream_create(int device, void **stream_out)
{
    (void)stream_out;
    return rondo_fail(
        ncclInvalidUsage,
        "make a stream on CPU device %d: this process has no CUDA runtime of Rondo's, and so no "
        "streams; run with Rondo's lib/hostcuda in LD_LIBRARY_PATH",
        device);
}

static ncclResult_t stream_device(void *stream, int *device_out)
{
    ncclResult_t rc = check_stream(stream);

    return rc == ncclSuccess ? rondo_cpu_instance()->device.get_current(device_out) : rc;
}

static ncclResult_t capture_state(int device, void *stream, uint64_t *id_out)
{
    ncclResult_t rc = check_stream(stream);

    if (rc == ncclSuccess)
        rc = rondo_cpu_device_check(device);
    if (rc == ncclSuccess)
        *id_out = 0;
    return rc;
}

static struct rondo_device_ops table;

static void fill_table(void)
{
    table = rondo_cpu_instance()->device;
    table.is_synchronous = true;
    table.launch = launch;
    table.synchronize = synchronize;
    table.query = query;
    table.stream_create = stream_create;
    table.stream_device = stream_device;
    table.event_record = event_record;
    table.stream_wait = stream_wait;
    table.capture_state = capture_state;
}

const struct rondo_device_ops *rondo_cpu_sole_instance(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_table);
    return &table;
}
