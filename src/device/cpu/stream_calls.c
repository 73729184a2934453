/* stream_calls.c - the calls on streams: finding one, enqueueing, waiting. */
#include "cpu/calls.h"

#include "base/clock.h"
#include "base/error.h"
#include "cpu/arena.h"
#include "cpu/assign.h"
#include "cpu/drive.h"
#include "cpu/handles.h"
#include "cpu/queue.h"
#include "cpu/strand.h"
#include "cpu/worker.h"

#include <stdlib.h>

#define LEGACY ((void *)1)     /* cudaStreamLegacy */
#define PER_THREAD ((void *)2) /* cudaStreamPerThread */
/* Of a query: enough for many small items, too few to be noticed as blocking. A choice, not measured. */
#define LOOK_PASSES 16

static ncclResult_t no_memory(const char *what)
{
    return rondo_fail(ncclSystemError, "%s: out of memory", what);
}

/* What a device has besides memory; made at its first stream call. Under the lock. */
static ncclResult_t open_device(int device, struct rondo_cpu_device **device_out)
{
    ncclResult_t rc = rondo_cpu_device_check(device);

    if (rc != ncclSuccess)
        return rc;
    if (!rondo_engine.devices[device]) {
        struct rondo_cpu_device *made = malloc(sizeof(*made));
        struct rondo_queue *legacy = rondo_queue_make(device, RONDO_STREAM_BLOCKING, 0, RONDO_QUEUE_LEGACY);
        if (!made || !legacy) {
            free(made);
            free(legacy);
            return no_memory("make the streams of a device");
        }
        made->legacy = legacy;
        rondo_hook_init(&made->busy);
        rondo_hook_init(&made->queues);
        rondo_engine.devices[device] = made;
    }
    *device_out = rondo_engine.devices[device];
    return ncclSuccess;
}

struct rondo_queue *rondo_stream_of_thread(struct rondo_caller *self, int device, enum rondo_queue_role role)
{
    unsigned flags = role == RONDO_QUEUE_HIDDEN ? RONDO_STREAM_NON_BLOCKING : RONDO_STREAM_BLOCKING;
    struct rondo_queue *queue = rondo_queue_make(device, flags, 0, role);

    if (queue)
        rondo_hook_append(&self->queues, &queue->in_owner);
    return queue;
}

static struct rondo_queue *find_per_thread(struct rondo_caller *self, int device)
{
    for (struct rondo_hook *hook = self->queues.next; hook != &self->queues; hook = hook->next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, in_owner);
        if (queue->role == RONDO_QUEUE_PER_THREAD && queue->device == device)
            return queue;
    }
    return rondo_stream_of_thread(self, device, RONDO_QUEUE_PER_THREAD);
}

ncclResult_t rondo_stream_find(struct rondo_caller *self, int device, void *stream,
                               struct rondo_queue **queue_out)
{
    struct rondo_cpu_device *state;
    struct rondo_queue *queue = NULL;
    ncclResult_t rc;

    if (stream && stream != LEGACY && stream != PER_THREAD) {
        queue = rondo_handle_find(RONDO_HANDLE_STREAM, stream);
        if (!queue)
            return rondo_fail(ncclInvalidArgument, "use stream %p: it was never made, or was destroyed",
                              stream);
        *queue_out = queue;
        return ncclSuccess;
    }
    rc = open_device(device, &state);
    if (rc != ncclSuccess)
        return rc;
    queue = stream == PER_THREAD ? find_per_thread(self, device) : state->legacy;
    if (!queue)
        return no_memory("make a thread's default stream");
    *queue_out = queue;
    return ncclSuccess;
}

ncclResult_t rondo_stream_create(int device, unsigned flags, int priority, void **stream_out)
{
    struct rondo_cpu_device *state;
    struct rondo_queue *queue = NULL;
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_enter("make a stream", &self);

    if (rc != ncclSuccess)
        return rc;
    enum rondo_queue_role role = flags & RONDO_STREAM_LASTING ? RONDO_QUEUE_LASTING : RONDO_QUEUE_USER;
    flags &= ~(unsigned)RONDO_STREAM_LASTING;
    if (flags > RONDO_STREAM_NON_BLOCKING)
        return rondo_fail(ncclInvalidArgument,
                          "make a stream with flags 0x%x: only 0 and 1 (non-blocking) exist", flags);
    if (device == -1)
        device = self->device;
    rondo_cpu_lock();
    rc = open_device(device, &state);
    if (rc != ncclSuccess)
        goto unlock;
    queue = rondo_queue_make(device, flags, priority, role);
    if (queue)
        queue->handle = rondo_handle_make(RONDO_HANDLE_STREAM, queue);
    if (!queue || !queue->handle) {
        free(queue);
        rc = no_memory("make a stream");
        goto unlock;
    }
    rondo_hook_append(&state->queues, &queue->in_owner);
    *stream_out = queue->handle;
unlock:
    rondo_cpu_unlock(self);
    return rc;
}

/* Under the lock. */
static void destroy(struct rondo_queue *queue)
{
    rondo_handle_free(queue->handle);
    rondo_queue_close(queue);
}

ncclResult_t rondo_stream_destroy(void *stream)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_find(&self);

    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    struct rondo_queue *queue = rondo_handle_find(RONDO_HANDLE_STREAM, stream);
    if (queue)
        destroy(queue);
    else
        rc = rondo_fail(ncclInvalidArgument,
                        "destroy stream %p: it was never made, is a default stream, or was destroyed before",
                        stream);
    rondo_cpu_unlock(self);
    return rc;
}

ncclResult_t rondo_stream_info(void *stream, int *device_out, unsigned *flags_out, int *priority_out)
{
    struct rondo_caller *self;
    struct rondo_queue *queue = NULL;
    ncclResult_t rc = rondo_caller_find(&self);

    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    rc = rondo_stream_find(self, self->device, stream, &queue);
    if (rc == ncclSuccess) {
        *device_out = queue->device;
        *flags_out = queue->flags;
        *priority_out = queue->priority;
    }
    rondo_cpu_unlock(self);
    return rc;
}

ncclResult_t rondo_stream_append(struct rondo_driver *driver, struct rondo_queue *queue,
                                 const struct rondo_item *item)
{
    if (!rondo_queue_append(queue, item))
        return no_memory("enqueue on a stream");
    queue->owner = driver->caller->id;
    if (queue->state == RONDO_QUEUE_IDLE)
        rondo_queue_settle(driver->caller, driver, queue);
    return ncclSuccess;
}

void rondo_driver_leave(struct rondo_driver *driver)
{
    while (!rondo_hook_alone(&driver->queues) && rondo_driver_pass(driver))
        ;
    if (rondo_hook_alone(&driver->queues))
        return; /* nobody gives to a driver that waits for nothing */
    rondo_cpu_lock();
    rondo_driver_end(driver);
    rondo_cpu_unlock(driver->caller);
}

static ncclResult_t enqueue(int device, void *stream, const struct rondo_item *item)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_queue *queue = NULL;
    ncclResult_t rc = rondo_caller_enter("enqueue on a stream", &self);

    if (rc != ncclSuccess)
        return rc;
    rondo_driver_begin(&driver, self, RONDO_DRIVER_ENQUEUE);
    rondo_cpu_lock();
    rc = rondo_stream_find(self, device, stream, &queue);
    if (rc == ncclSuccess && item->kind == RONDO_ITEM_LAUNCH && queue->device != device)
        rc = rondo_fail(ncclInvalidArgument,
                        "launch for device %d on stream %p: that is a stream of device %d", device, stream,
                        queue->device);
    if (rc == ncclSuccess)
        rc = rondo_stream_append(&driver, queue, item);
    rondo_cpu_unlock(self);
    if (rc == ncclSuccess)
        rondo_driver_leave(&driver);
    return rc;
}

ncclResult_t rondo_stream_launch(int device, void *stream, const struct rondo_launch *launch)
{
    return enqueue(device, stream, &(struct rondo_item){.kind = RONDO_ITEM_LAUNCH, .u.launch.what = *launch});
}

ncclResult_t rondo_stream_copy(int device, void *stream, void *destination, const void *source, size_t bytes)
{
    if (bytes > 0 && (!destination || !source))
        return rondo_fail(ncclInvalidArgument, "copy %zu bytes from %p to %p: NULL is no memory", bytes,
                          source, destination);
    return enqueue(
        device, stream,
        &(struct rondo_item){.kind = RONDO_ITEM_COPY,
                             .u.transfer = {.destination = destination, .source = source, .bytes = bytes}});
}

ncclResult_t rondo_stream_fill(int device, void *stream, void *destination, int value, size_t bytes)
{
    if (bytes > 0 && !destination)
        return rondo_fail(ncclInvalidArgument, "fill %zu bytes at NULL: that is no memory", bytes);
    return enqueue(
        device, stream,
        &(struct rondo_item){.kind = RONDO_ITEM_FILL,
                             .u.transfer = {.destination = destination, .value = value, .bytes = bytes}});
}

ncclResult_t rondo_stream_host(int device, void *stream, void (*function)(void *argument), void *argument)
{
    if (!function)
        return rondo_fail(ncclInvalidArgument, "enqueue a host function: it is NULL");
    return enqueue(device, stream,
                   &(struct rondo_item){.kind = RONDO_ITEM_HOST,
                                        .u.host = {.function = function, .argument = argument}});
}

void rondo_driver_await(struct rondo_driver *driver)
{
    rondo_cpu_lock();
    rondo_hook_append(&rondo_engine.blocking, &driver->waiting);
    rondo_driver_adopt(driver);
    rondo_cpu_unlock(driver->caller);
    rondo_driver_wait(driver);
    rondo_cpu_lock();
    rondo_driver_unwatch(driver);
    rondo_driver_end(driver);
    rondo_cpu_unlock(driver->caller);
}

ncclResult_t rondo_stream_synchronize(int device, void *stream)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_queue *queue = NULL;
    ncclResult_t rc = rondo_caller_enter("wait for a stream", &self);

    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    rc = rondo_stream_find(self, device, stream, &queue);
    bool is_busy = rc == ncclSuccess && queue->head;
    if (is_busy) {
        rondo_driver_begin(&driver, self, RONDO_DRIVER_BLOCKING);
        rondo_driver_watch(&driver, queue, queue->enqueued);
    }
    rondo_cpu_unlock(self);
    if (is_busy)
        rondo_driver_await(&driver);
    return rc;
}

void rondo_driver_look(struct rondo_driver *driver, struct rondo_queue *queue)
{
    driver->goal = queue; /* not watched: it only says which queue matters while the lock is held */
    rondo_driver_adopt(driver);
    driver->goal = NULL;
    rondo_cpu_unlock(driver->caller);
    for (int i = 0; i < LOOK_PASSES && !rondo_hook_alone(&driver->queues); i++) {
        if (!rondo_driver_pass(driver))
            break;
    }
    rondo_cpu_lock();
    rondo_driver_end(driver);
}

ncclResult_t rondo_stream_query(int device, void *stream, bool *done_out)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_queue *queue = NULL;
    ncclResult_t rc = rondo_caller_enter("query a stream", &self);

    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    rc = rondo_stream_find(self, device, stream, &queue);
    if (rc == ncclSuccess && queue->head) {
        rondo_driver_begin(&driver, self, RONDO_DRIVER_QUERY);
        rondo_driver_look(&driver, queue);
        rc = rondo_stream_find(self, device, stream,
                               &queue); /* another thread may have destroyed it meanwhile */
    }
    if (rc == ncclSuccess)
        *done_out = !queue->head;
    rondo_cpu_unlock(self);
    return rc;
}

/* Under the lock: a queue of the device with an item enqueued up to `order`. */
static struct rondo_queue *find_busy(int device, uint64_t order)
{
    struct rondo_cpu_device *state = rondo_engine.devices[device];

    for (struct rondo_hook *hook = state ? state->busy.next : NULL; state && hook != &state->busy;
         hook = hook->next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, in_busy);
        if (queue->head->order <= order)
            return queue;
    }
    return NULL;
}

ncclResult_t rondo_device_synchronize(int device)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    struct rondo_queue *queue = NULL;
    ncclResult_t rc = rondo_caller_enter("wait for a device", &self);

    if (rc == ncclSuccess)
        rc = rondo_cpu_device_check(device);
    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    uint64_t order = rondo_engine.order;
    while ((queue = find_busy(device, order)) != NULL) {
        rondo_driver_begin(&driver, self, RONDO_DRIVER_BLOCKING);
        driver.whole_device = device;
        rondo_driver_watch(&driver, queue, queue->enqueued);
        rondo_cpu_unlock(self);
        rondo_driver_await(&driver);
        rondo_cpu_lock();
    }
    rondo_cpu_unlock(self);
    return ncclSuccess;
}

static bool is_anything_busy(void)
{
    for (int i = 0; i < RONDO_CPU_MAX_DEVICES; i++) {
        if (rondo_engine.devices[i] && !rondo_hook_alone(&rondo_engine.devices[i]->busy))
            return true;
    }
    return false;
}

/* All that are not lasting; under the lock. */
static void destroy_queues(struct rondo_cpu_device *device)
{
    struct rondo_hook *next;

    for (struct rondo_hook *hook = device->queues.next; hook != &device->queues; hook = next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, in_owner);

        next = hook->next;
        if (queue->role != RONDO_QUEUE_LASTING)
            destroy(queue);
    }
}

ncclResult_t rondo_device_reset(int device)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_device_synchronize(device);

    if (rc == ncclSuccess)
        rc = rondo_caller_enter("reset a device", &self);
    if (rc != ncclSuccess)
        return rc;
    rondo_cpu_lock();
    struct rondo_cpu_device *state = rondo_engine.devices[device];
    if (state)
        destroy_queues(state);
    bool is_busy = is_anything_busy();
    if (!is_busy) {
        rondo_strand_trim();
        rondo_queue_trim();
    }
    rondo_cpu_unlock(self);
    if (!is_busy) {
        rondo_worker_stop(false);
        rondo_cpu_lock();
        self->needs_worker =
            !rondo_hook_alone(&rondo_engine.pending); /* another thread left something meanwhile */
        rondo_cpu_unlock(self);
    }
    rondo_arena_reset(device);
    return ncclSuccess;
}

ncclResult_t rondo_line_wait(struct rondo_line *line, uint64_t target, uint64_t deadline, bool *reached_out)
{
    struct rondo_driver driver;
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_enter("wait for a line", &self);

    if (rc != ncclSuccess)
        return rc;
    rondo_driver_begin(&driver, self, RONDO_DRIVER_BLOCKING);
    driver.line = line;
    driver.target = target;
    driver.deadline = deadline;
    rondo_driver_await(&driver);
    *reached_out = rondo_line_read(line) - target < (uint64_t)1 << 63;
    return ncclSuccess;
}
