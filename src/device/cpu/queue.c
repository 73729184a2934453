/* queue.c - the order of items within and between streams. */
#include "cpu/queue.h"

#include "base/clock.h"
#include "cpu/assign.h"
#include "cpu/caller.h"

#include <assert.h>
#include <stdlib.h>

/* Some hundred KiB at most. A choice, not measured; beyond it an enqueue calls malloc. */
#define POOLED_ITEMS 4096

static struct rondo_item *free_items;
static size_t free_count;

static struct rondo_item *take_item(void)
{
    struct rondo_item *item = free_items;

    if (!item)
        return malloc(sizeof(*item));
    free_items = item->next;
    free_count--;
    return item;
}

static void put_item(struct rondo_item *item)
{
    if (free_count >= POOLED_ITEMS) {
        free(item);
        return;
    }
    item->next = free_items;
    free_items = item;
    free_count++;
}

void rondo_queue_trim(void)
{
    while (free_items) {
        struct rondo_item *next = free_items->next;
        free(free_items);
        free_items = next;
    }
    free_count = 0;
}

struct rondo_queue *rondo_queue_make(int device, unsigned flags, int priority, enum rondo_queue_role role)
{
    struct rondo_queue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return NULL;
    queue->device = device;
    queue->flags = flags;
    queue->priority = priority;
    queue->role = role;
    rondo_hook_init(&queue->dependents);
    rondo_hook_init(&queue->watchers);
    rondo_hook_init(&queue->hook);
    rondo_hook_init(&queue->in_busy);
    rondo_hook_init(&queue->in_owner);
    return queue;
}

static void free_if_done(struct rondo_queue *queue)
{
    if (queue->is_closed && queue->state == RONDO_QUEUE_IDLE && rondo_hook_alone(&queue->watchers)) {
        assert(rondo_hook_alone(&queue->dependents));
        free(queue);
    }
}

void rondo_queue_close(struct rondo_queue *queue)
{
    rondo_hook_remove(&queue->in_owner);
    queue->is_closed = true;
    free_if_done(queue);
}

bool rondo_queue_append(struct rondo_queue *queue, const struct rondo_item *item)
{
    struct rondo_cpu_device *device = rondo_engine.devices[queue->device];
    struct rondo_item *added = take_item();

    if (!added)
        return false;
    *added = *item;
    added->next = NULL;
    added->is_started = false;
    added->order = ++rondo_engine.order;
    added->legacy_ticket =
        queue->flags == RONDO_STREAM_BLOCKING && queue != device->legacy ? device->legacy->enqueued : 0;
    if (queue->tail)
        queue->tail->next = added;
    else
        queue->head = added;
    queue->tail = added;
    queue->enqueued++;
    if (rondo_hook_alone(&queue->in_busy))
        rondo_hook_append(&device->busy, &queue->in_busy);
    return true;
}

/* Have the BLOCKED queues of a list looked at anew. */
static void unblock(struct rondo_hook *dependents)
{
    while (!rondo_hook_alone(dependents)) {
        struct rondo_hook *hook = dependents->next;
        rondo_hook_remove(hook);
        rondo_hook_append(&rondo_engine.unsettled, hook);
    }
}

void rondo_mark_put(struct rondo_mark *mark)
{
    if (mark && --mark->references == 0)
        free(mark);
}

static void finish_mark(struct rondo_mark *mark)
{
    mark->ns = rondo_clock_ns();
    mark->queue = NULL;
    unblock(&mark->dependents);
}

void rondo_queue_pop(struct rondo_caller *self, struct rondo_queue *queue)
{
    struct rondo_item *item = queue->head;

    queue->head = item->next;
    if (!queue->head) {
        queue->tail = NULL;
        rondo_hook_remove(&queue->in_busy);
    }
    if (item->kind == RONDO_ITEM_RECORD || item->kind == RONDO_ITEM_WAIT)
        rondo_mark_put(item->u.mark);
    put_item(item);
    __atomic_store_n(&queue->completed, queue->completed + 1,
                     __ATOMIC_RELEASE); /* pairs with has_arrived() in drive.c */
    unblock(&queue->dependents);
    for (struct rondo_hook *hook = queue->watchers.next; hook != &queue->watchers; hook = hook->next) {
        struct rondo_driver *driver = rondo_hook_owner(hook, struct rondo_driver, watch);
        if (driver->ticket <= queue->completed)
            rondo_caller_ring(self, driver);
    }
}

/* The queue that must advance before the head may run, and the list to wait in; NULL: it may run now.
 *
 * Legacy rules: an item of the legacy stream runs after all earlier items of the device's blocking streams,
 * and an item of those after all earlier ones of the legacy stream. "Earlier" is the order of enqueues, so no
 * cycle can close. */
static struct rondo_queue *find_obstacle(struct rondo_queue *queue, struct rondo_hook **list_out)
{
    const struct rondo_item *head = queue->head;
    struct rondo_cpu_device *device = rondo_engine.devices[queue->device];

    if (head->kind == RONDO_ITEM_WAIT && head->u.mark->queue) {
        *list_out = &head->u.mark->dependents;
        return head->u.mark->queue;
    }
    if (queue->flags == RONDO_STREAM_NON_BLOCKING)
        return NULL;
    if (queue != device->legacy) {
        *list_out = &device->legacy->dependents;
        return device->legacy->completed < head->legacy_ticket ? device->legacy : NULL;
    }
    for (struct rondo_hook *hook = device->busy.next; hook != &device->busy; hook = hook->next) {
        struct rondo_queue *other = rondo_hook_owner(hook, struct rondo_queue, in_busy);
        if (other != queue && other->flags == RONDO_STREAM_BLOCKING && other->head->order < head->order) {
            *list_out = &other->dependents;
            return other;
        }
    }
    return NULL;
}

static void settle_one(struct rondo_caller *self, struct rondo_driver *driver, struct rondo_queue *queue)
{
    while (queue->head) {
        struct rondo_hook *list;
        queue->blocked_by = find_obstacle(queue, &list);
        if (queue->blocked_by) {
            queue->state = RONDO_QUEUE_BLOCKED;
            rondo_hook_append(list, &queue->hook);
            return;
        }
        if (queue->head->kind == RONDO_ITEM_RECORD) {
            finish_mark(queue->head->u.mark);
        } else if (queue->head->kind != RONDO_ITEM_WAIT) {
            rondo_queue_assign(self, driver, queue);
            return;
        }
        rondo_queue_pop(self, queue);
    }
    queue->state = RONDO_QUEUE_IDLE;
    free_if_done(queue);
}

/* A worklist, not recursion: a chain of streams that wait for each other may be long. */
void rondo_queue_settle(struct rondo_caller *self, struct rondo_driver *driver, struct rondo_queue *queue)
{
    rondo_hook_append(&rondo_engine.unsettled, &queue->hook);
    while (!rondo_hook_alone(&rondo_engine.unsettled)) {
        struct rondo_queue *next = rondo_hook_owner(rondo_engine.unsettled.next, struct rondo_queue, hook);
        rondo_hook_remove(&next->hook);
        settle_one(self, driver, next);
    }
}

void rondo_driver_watch(struct rondo_driver *driver, struct rondo_queue *queue, uint64_t ticket)
{
    driver->goal = queue;
    driver->ticket = ticket;
    rondo_hook_append(&queue->watchers, &driver->watch);
}

void rondo_driver_unwatch(struct rondo_driver *driver)
{
    if (!driver->goal)
        return;
    rondo_hook_remove(&driver->watch);
    free_if_done(driver->goal);
    driver->goal = NULL;
}
