/* drive.c - running the items of claimed queues, waiting, and sleeping. */
#include "cpu/drive.h"

#include "base/clock.h"
#include "base/host.h"
#include "base/param.h"
#include "cpu/assign.h"
#include "cpu/caller.h"
#include "cpu/queue.h"
#include "cpu/strand.h"
#include "cpu/switchboard.h"

#include <string.h>

/* A long copy is done in slices when its driver has other queues, whose peers would have to wait. The sizes
 * are choices, not measured: a MiB is about 100 us of waiting for the others, and long next to a change of
 * queues; alone nobody waits but a demand for the queue, for some milliseconds. */
#define SLICE ((size_t)1 << 20)
#define SLICE_ALONE ((size_t)64 << 20)

/* The longest spin, and the shortest; equal when the user says. Set at the first use; several threads may
 * compute the same.
 *
 * Longer spins save system calls and take CPU time from whoever is waited for. RONDO_SPIN_NS=n
 * bench_all_reduce 10 shows it: 2 ranks on 2 CPUs with other work beside them took, for 128 MiB and n of 0,
 * 2000, 8000, 20000 and 50000, 33, 31, 25, 17 and 16 ms, and 30 ms with the spin that adapts; for 8 bytes,
 * 37 us with 0 and 0.8 us with any other. So these are not the best of that measurement: 8 us on 2 CPUs is
 * a choice for jobs with more ranks than CPUs, which it does not show. The steps for more CPUs and the
 * sixteenth are choices without measurement. */
static void find_spin(uint32_t *longest_out, uint32_t *shortest_out)
{
    static uint64_t both; /* atomic; 0: not known */
    uint64_t known = __atomic_load_n(&both, __ATOMIC_RELAXED);

    if (known == 0) {
        int64_t chosen = rondo_param_int(RONDO_PARAM_SPIN_NS);
        int cpus = rondo_host_cpus();
        uint64_t longest = chosen >= 0 ? (uint64_t)chosen : cpus <= 2 ? 8000 : cpus <= 8 ? 20000 : 50000;
        uint64_t shortest = chosen >= 0 ? longest : longest / 16;
        known = (uint64_t)1 << 63 | longest << 32 | shortest;
        __atomic_store_n(&both, known, __ATOMIC_RELAXED);
    }
    *longest_out = (uint32_t)(known >> 32) & INT32_MAX;
    *shortest_out = (uint32_t)known;
}

/* Who is waited for may need this very CPU, or be far from done: then spinning is lost time, for both. What a
 * thread has seen last tells best, so spins that led to sleep become shorter, and those that did not longer.
 */
uint64_t rondo_spin_begin(struct rondo_caller *self)
{
    uint32_t longest, shortest;

    find_spin(&longest, &shortest);
    if (self->spin_ns < shortest || self->spin_ns > longest)
        self->spin_ns = longest;
    return self->spin_ns;
}

void rondo_spin_end(struct rondo_caller *self, bool slept)
{
    uint32_t longest, shortest;

    find_spin(&longest, &shortest);
    uint64_t next = slept ? self->spin_ns / 2 : (uint64_t)self->spin_ns * 2;
    self->spin_ns = (uint32_t)(next < shortest ? shortest : next > longest ? longest : next);
}

/* The head is done: go on with what that makes ready. */
static void complete(struct rondo_driver *driver, struct rondo_queue *queue)
{
    rondo_cpu_lock();
    if (queue->head->kind == RONDO_ITEM_LAUNCH)
        rondo_item_recycle(queue->head);
    rondo_hook_remove(&queue->hook);
    rondo_queue_pop(driver->caller, queue);
    rondo_queue_settle(driver->caller, driver, queue);
    if (driver->goal && driver->goal->state == RONDO_QUEUE_BLOCKED)
        rondo_driver_adopt(driver);
    rondo_cpu_unlock(driver->caller);
}

static bool step_launch(struct rondo_driver *driver, struct rondo_queue *queue)
{
    struct rondo_item *item = queue->head;
    struct rondo_launch *launch = &item->u.launch.what;
    bool progress = false;

    if (!item->is_started) {
        rondo_item_start(item);
        progress = true;
    }
    progress |= rondo_item_resume(item);
    if (!item->u.launch.live) {
        driver->caller->in_callback = true;
        launch->finished(launch->owner);
        driver->caller->in_callback = false;
        complete(driver, queue);
    }
    return progress;
}

static void transfer(struct rondo_item *item, size_t bytes)
{
    if (item->kind == RONDO_ITEM_COPY) {
        memmove(item->u.transfer.destination, item->u.transfer.source, bytes);
        item->u.transfer.source += bytes;
    } else {
        memset(item->u.transfer.destination, item->u.transfer.value, bytes);
    }
    item->u.transfer.destination += bytes;
    item->u.transfer.bytes -= bytes;
}

static void step_transfer(struct rondo_driver *driver, struct rondo_queue *queue)
{
    struct rondo_item *item = queue->head;
    bool is_alone = driver->queues.next == driver->queues.previous && driver->mode != RONDO_DRIVER_QUERY;
    size_t slice = is_alone ? SLICE_ALONE : SLICE;

    if (item->u.transfer.bytes > 0)
        transfer(item, item->u.transfer.bytes < slice ? item->u.transfer.bytes : slice);
    if (item->u.transfer.bytes == 0)
        complete(driver, queue);
}

/* The function may take long: others get what this thread drives besides. */
static void step_host(struct rondo_driver *driver, struct rondo_queue *queue)
{
    struct rondo_item *item = queue->head;

    rondo_cpu_lock();
    driver->is_away = true;
    rondo_driver_release(driver, queue);
    rondo_cpu_unlock(driver->caller);

    driver->caller->in_callback = true;
    item->u.host.function(item->u.host.argument);
    driver->caller->in_callback = false;

    rondo_cpu_lock();
    driver->is_away = false;
    if (driver->mode == RONDO_DRIVER_BLOCKING)
        rondo_driver_adopt(driver);
    rondo_cpu_unlock(driver->caller);
    complete(driver, queue);
}

static bool step(struct rondo_driver *driver, struct rondo_queue *queue)
{
    switch (queue->head->kind) {
    case RONDO_ITEM_LAUNCH:
        return step_launch(driver, queue);
    case RONDO_ITEM_HOST:
        step_host(driver, queue);
        return true;
    default:
        step_transfer(driver, queue);
        return true;
    }
}

bool rondo_driver_pass(struct rondo_driver *driver)
{
    bool progress = false;
    struct rondo_hook *hook = driver->queues.next;

    while (hook != &driver->queues) {
        struct rondo_queue *queue = rondo_hook_owner(hook, struct rondo_queue, hook);
        bool is_host = queue->head->kind == RONDO_ITEM_HOST;
        hook = hook->next; /* the step may end the claim on its own queue; of others only a host function's
                              does */
        progress |= step(driver, queue);
        if (is_host)
            break;
    }
    return progress;
}

/* Without the lock. The goal outlives the driver's watch; only its completed is read. */
static bool has_arrived(const struct rondo_driver *driver)
{
    if (driver->goal && __atomic_load_n(&driver->goal->completed, __ATOMIC_ACQUIRE) >= driver->ticket)
        return true;
    return driver->line && rondo_line_read(driver->line) - driver->target < (uint64_t)1 << 63;
}

static bool has_message(const struct rondo_driver *driver)
{
    return __atomic_load_n(&driver->message, __ATOMIC_ACQUIRE) != 0;
}

/* Step 4 of line.h: whatever could have come since the last pass. */
static bool has_something(const struct rondo_driver *driver)
{
    if (has_message(driver) || has_arrived(driver))
        return true;
    for (struct rondo_hook *hook = driver->queues.next; hook != &driver->queues; hook = hook->next) {
        const struct rondo_item *item = rondo_hook_owner(hook, struct rondo_queue, hook)->head;
        if (item->kind != RONDO_ITEM_LAUNCH || !item->is_started || rondo_item_is_ready(item))
            return true;
    }
    return false;
}

static void enlist_all(struct rondo_driver *driver)
{
    uint32_t waiter = driver->caller->waiter;

    if (driver->line)
        rondo_line_enlist(driver->line, waiter);
    for (struct rondo_hook *hook = driver->queues.next; hook != &driver->queues; hook = hook->next)
        rondo_item_enlist(rondo_hook_owner(hook, struct rondo_queue, hook)->head, waiter);
}

static void delist_all(struct rondo_driver *driver)
{
    uint32_t waiter = driver->caller->waiter;

    if (driver->line)
        rondo_line_delist(driver->line, waiter);
    for (struct rondo_hook *hook = driver->queues.next; hook != &driver->queues; hook = hook->next)
        rondo_item_delist(rondo_hook_owner(hook, struct rondo_queue, hook)->head, waiter);
}

/* Set is_parked, unless there is something to attend to. From then on others may take this driver's queues
 * away. */
static bool try_park(struct rondo_driver *driver, bool is_parked)
{
    rondo_cpu_lock();
    driver->is_parked = is_parked && driver->message == 0;
    bool result = driver->is_parked;
    rondo_cpu_unlock(driver->caller);
    return result;
}

bool rondo_driver_park(struct rondo_driver *driver, uint64_t until)
{
    struct rondo_doorbell *bell = driver->caller->doorbell;
    uint32_t sequence = rondo_doorbell_prepare(bell);
    bool slept = false;

    enlist_all(driver);
    __atomic_thread_fence(
        __ATOMIC_SEQ_CST); /* step 3 of line.h; pairs with the fence in rondo_line_publish */
    if (!has_something(driver) && try_park(driver, true)) {
        rondo_doorbell_sleep(bell, sequence, until);
        try_park(driver, false);
        slept = true;
    }
    rondo_doorbell_done(bell);
    delist_all(driver);
    return slept;
}

void rondo_driver_wait(struct rondo_driver *driver)
{
    uint64_t spin_until = 0; /* 0: something went on at the last pass */

    while (!has_arrived(driver)) {
        if (has_message(driver)) {
            rondo_cpu_lock();
            rondo_driver_attend(driver);
            rondo_cpu_unlock(driver->caller);
        }
        if (rondo_driver_pass(driver)) {
            if (spin_until != 0)
                rondo_spin_end(driver->caller, false);
            spin_until = 0;
            continue;
        }
        uint64_t now = rondo_clock_ns();
        if (now >= driver->deadline)
            return;
        if (spin_until == 0) {
            spin_until = now + rondo_spin_begin(driver->caller);
        } else if (now >= spin_until) {
            rondo_spin_end(driver->caller, rondo_driver_park(driver, driver->deadline));
            spin_until = 0;
        }
        rondo_spin_pause();
    }
}
