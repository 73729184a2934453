/* assign.c - who drives which queue. */
#include "cpu/assign.h"

#include "base/clock.h"
#include "cpu/caller.h"
#include "cpu/strand.h"

/* How long a queue is left to the thread that enqueued to it. Longer than the way from an enqueue to the
 * synchronize that commonly follows, shorter than anybody notices. A choice within that range, not
 * measured. */
#define AGE_NS 50000

static bool wants(const struct rondo_driver *driver, const struct rondo_queue *queue)
{
    return queue == driver->goal || queue->device == driver->whole_device;
}

/* A host function may take any time, and may wait for something its program does after the call it is in: so
 * it runs only where the program waits for it, or on the worker. */
static bool may_drive(const struct rondo_driver *driver, const struct rondo_queue *queue)
{
    switch (queue->head->kind) {
    case RONDO_ITEM_HOST:
        return driver->mode == RONDO_DRIVER_WORKER ||
               (driver->mode == RONDO_DRIVER_BLOCKING && wants(driver, queue));
    case RONDO_ITEM_COPY:
    case RONDO_ITEM_FILL:
        return driver->mode != RONDO_DRIVER_ENQUEUE || queue->head->u.transfer.bytes <= RONDO_SMALL_TRANSFER;
    default:
        return true;
    }
}

static void claim(struct rondo_driver *driver, struct rondo_queue *queue)
{
    queue->state = RONDO_QUEUE_CLAIMED;
    queue->driver = driver;
    queue->is_demanded = false;
    rondo_hook_remove(&queue->hook);
    rondo_hook_append(&driver->queues, &queue->hook);
}

static void call(struct rondo_caller *self, struct rondo_driver *driver)
{
    __atomic_store_n(&driver->message, 1, __ATOMIC_RELEASE); /* pairs with has_message() in drive.c */
    rondo_caller_ring(self, driver);
}

/* Tell who is to look at the pending queues, unless somebody will soon anyhow. */
static void poke(struct rondo_caller *self, const struct rondo_queue *queue)
{
    struct rondo_engine *engine = &rondo_engine;

    switch (engine->worker) {
    case RONDO_WORKER_NONE:
        self->needs_worker = true;
        break;
    case RONDO_WORKER_ASLEEP:
        engine->worker = RONDO_WORKER_NAPPING; /* who comes next need not ring again */
        call(self, engine->worker_driver);
        break;
    case RONDO_WORKER_NAPPING:
        if (queue->head->kind == RONDO_ITEM_HOST)
            call(self, engine->worker_driver);
        break;
    case RONDO_WORKER_RUNNING:
        break;
    case RONDO_WORKER_FAILED:
        if (!rondo_hook_alone(&engine->blocking))
            call(self, rondo_hook_owner(engine->blocking.next, struct rondo_driver, waiting));
        break;
    }
}

/* Claim on behalf of another thread, which finds it when it attends. */
static void give(struct rondo_caller *self, struct rondo_driver *driver, struct rondo_queue *queue)
{
    queue->state = RONDO_QUEUE_CLAIMED;
    queue->driver = driver;
    rondo_hook_append(&driver->given, &queue->hook);
    call(self, driver);
}

static void leave_pending(struct rondo_caller *self, struct rondo_queue *queue)
{
    queue->state = RONDO_QUEUE_PENDING;
    queue->driver = NULL;
    queue->released_ns = rondo_clock_ns();
    rondo_engine.left_ns = queue->released_ns;
    rondo_hook_append(&rondo_engine.pending, &queue->hook);
    poke(self, queue);
}

static struct rondo_driver *find_watcher(const struct rondo_queue *queue, const struct rondo_driver *but)
{
    for (struct rondo_hook *hook = queue->watchers.next; hook != &queue->watchers; hook = hook->next) {
        struct rondo_driver *driver = rondo_hook_owner(hook, struct rondo_driver, watch);
        if (driver != but && !driver->is_away)
            return driver;
    }
    return NULL;
}

void rondo_queue_assign(struct rondo_caller *self, struct rondo_driver *driver, struct rondo_queue *queue)
{
    bool may = driver && may_drive(driver, queue);
    struct rondo_driver *watcher;

    queue->is_demanded = false;
    if (may && wants(driver, queue)) {
        claim(driver, queue);
        return;
    }
    watcher = find_watcher(queue, driver);
    if (watcher)
        give(self, watcher, queue);
    else if (may)
        claim(driver, queue);
    else
        leave_pending(self, queue);
}

void rondo_driver_begin(struct rondo_driver *driver, struct rondo_caller *caller, enum rondo_driver_mode mode)
{
    *driver =
        (struct rondo_driver){.caller = caller, .mode = mode, .whole_device = -1, .deadline = UINT64_MAX};
    rondo_hook_init(&driver->queues);
    rondo_hook_init(&driver->given);
    rondo_hook_init(&driver->watch);
    rondo_hook_init(&driver->waiting);
}

void rondo_driver_release(struct rondo_driver *driver, const struct rondo_queue *kept)
{
    struct rondo_hook away, *lists[2] = {&driver->queues, &driver->given};

    rondo_hook_init(&away);
    for (int i = 0; i < 2; i++) {
        for (struct rondo_hook *hook = lists[i]->next, *next; hook != lists[i]; hook = next) {
            next = hook->next;
            if (rondo_hook_owner(hook, struct rondo_queue, hook) != kept) {
                rondo_hook_remove(hook);
                rondo_hook_append(&away, hook);
            }
        }
    }
    while (!rondo_hook_alone(&away)) {
        struct rondo_queue *queue = rondo_hook_owner(away.next, struct rondo_queue, hook);
        rondo_hook_remove(&queue->hook);
        rondo_queue_assign(driver->caller, NULL, queue);
    }
}

void rondo_driver_end(struct rondo_driver *driver)
{
    rondo_hook_remove(&driver->waiting);
    rondo_driver_release(driver, NULL);
}

/* Get a queue that another driver has, if that one has no use for its result: at once when it sleeps, else
 * when it next attends. Who is only passing through an enqueue or a query will give it to its watcher on
 * leaving. */
static void demand(struct rondo_driver *driver, struct rondo_queue *queue)
{
    struct rondo_driver *holder = queue->driver;

    if (wants(holder, queue) || holder->mode == RONDO_DRIVER_ENQUEUE || holder->mode == RONDO_DRIVER_QUERY)
        return;
    if (holder->is_parked) {
        rondo_item_delist(queue->head, holder->caller->waiter);
        claim(driver, queue);
    } else {
        queue->is_demanded = true;
        __atomic_store_n(&holder->message, 1, __ATOMIC_RELEASE); /* pairs with has_message() in drive.c */
    }
}

void rondo_driver_adopt(struct rondo_driver *driver)
{
    bool takes_all = rondo_engine.worker == RONDO_WORKER_FAILED && driver->mode == RONDO_DRIVER_BLOCKING;

    for (struct rondo_hook *hook = rondo_engine.pending.next, *next; hook != &rondo_engine.pending;
         hook = next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, hook);
        next = hook->next;
        if ((takes_all || queue->owner == driver->caller->id || wants(driver, queue)) &&
            may_drive(driver, queue))
            claim(driver, queue);
    }
    for (struct rondo_queue *queue = driver->goal; queue; queue = queue->blocked_by) {
        if (queue->state == RONDO_QUEUE_PENDING && may_drive(driver, queue))
            claim(driver, queue);
        else if (queue->state == RONDO_QUEUE_CLAIMED && queue->driver != driver && queue == driver->goal &&
                 driver->mode == RONDO_DRIVER_BLOCKING)
            demand(driver, queue);
        if (queue->state != RONDO_QUEUE_BLOCKED)
            break;
    }
}

void rondo_driver_adopt_aged(struct rondo_driver *driver, uint64_t now)
{
    for (struct rondo_hook *hook = rondo_engine.pending.next, *next; hook != &rondo_engine.pending;
         hook = next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, hook);
        next = hook->next;
        if (now >= queue->released_ns + AGE_NS || queue->head->kind == RONDO_ITEM_HOST)
            claim(driver, queue);
    }
}

void rondo_driver_attend(struct rondo_driver *driver)
{
    __atomic_store_n(&driver->message, 0, __ATOMIC_RELAXED); /* under the lock, like all that set it */
    while (!rondo_hook_alone(&driver->given))
        claim(driver, rondo_hook_owner(driver->given.next, struct rondo_queue, hook));
    for (struct rondo_hook *hook = driver->queues.next, *next; hook != &driver->queues; hook = next) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, hook);
        next = hook->next;
        if (queue->is_demanded && !wants(driver, queue)) {
            rondo_hook_remove(&queue->hook);
            rondo_queue_assign(driver->caller, NULL, queue);
        }
    }
    if (driver->mode == RONDO_DRIVER_BLOCKING)
        rondo_driver_adopt(driver);
}
