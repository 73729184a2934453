/* strand.c - launches as fibers. */
#include "cpu/strand.h"

#include "base/error.h"
#include "base/fiber.h"
#include "cpu/caller.h"
#include "cpu/switchboard.h"

#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#define STACK_BYTES (256u << 10) /* red zones */
#else
/* Kernels keep arrays of 8 KiB (span.cuh) and, beside them, of some KiB more (oneshot.cuh, flagged.cuh); the
 * rest is for signal handlers with wide registers. */
#define STACK_BYTES (64u << 10)
#endif

/* A touched stack is two to four pages, so these keep some 16 MiB at most. A choice, not measured; beyond it
 * a launch makes and frees its stacks. */
#define POOLED_STRANDS 1024

struct rondo_strand {
    struct rondo_lane lane; /* first: kernels hold a pointer to it */
    struct rondo_strand *next;
    struct rondo_fiber *fiber;
    const struct rondo_kernel_args *args;
    struct rondo_line *line; /* waited for, or where a sleeper says that it waits for flag; NULL: can go on */
    uint64_t target;
    const uint32_t *flag; /* NULL: the line's own value */
};

static struct rondo_strand *free_strands; /* under the lock */
static size_t free_count;
static struct rondo_line never; /* the stop of a launch without rank page */
static rondo_cpu_kernel chosen; /* atomic */

static bool has_reached(const struct rondo_line *line, uint64_t target)
{
    return rondo_line_read(line) - target < (uint64_t)1 << 63;
}

/* The acquire pairs with the release of a counter (line.h), and of the flag of an LL128 line (store_line() of
 * the port); a word of LL is data and flag in one and needs no order. */
static bool has_come(const struct rondo_strand *strand)
{
    if (strand->flag)
        return __atomic_load_n(strand->flag, __ATOMIC_ACQUIRE) == (uint32_t)strand->target;
    return has_reached(strand->line, strand->target);
}

/* On the fiber. Nothing thread-local may be used here: the thread may change at every yield. */
static bool wait_for(struct rondo_strand *strand, struct rondo_line *line, const uint32_t *flag,
                     uint64_t target)
{
    strand->target = target;
    strand->flag = flag;
    strand->line = line;
    rondo_fiber_yield(strand->fiber);
    bool result = has_come(strand);
    strand->line = NULL;
    return result;
}

static bool wait_for_line(struct rondo_lane *lane, struct rondo_line *line, uint64_t target)
{
    return wait_for((struct rondo_strand *)lane, line, NULL, target);
}

static bool wait_for_flag(struct rondo_lane *lane, struct rondo_line *line, const uint32_t *flag,
                          uint32_t value)
{
    return wait_for((struct rondo_strand *)lane, line, flag, value) && rondo_line_read(lane->stop) == 0;
}

static void let_others_run(struct rondo_lane *lane)
{
    rondo_fiber_yield(((struct rondo_strand *)lane)->fiber);
}

static const struct rondo_lane_ops lane_ops = {
    .wait = wait_for_line,
    .wait_flag = wait_for_flag,
    .ring = rondo_doorbell_ring,
    .yield = let_others_run,
};

void rondo_strand_set_kernel(rondo_cpu_kernel kernel)
{
    __atomic_store_n(&chosen, kernel, __ATOMIC_RELEASE); /* pairs with find_kernel */
}

static rondo_cpu_kernel find_kernel(void)
{
    rondo_cpu_kernel kernel = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);

    if (!kernel) {
        const char *isa;
        kernel = rondo_cpu_kernel_select(&isa);
        rondo_strand_set_kernel(kernel);
    }
    return kernel;
}

static void run_strand(struct rondo_fiber *self, void *argument)
{
    struct rondo_strand *strand = argument;

    (void)self;
    find_kernel()(&strand->lane, strand->args);
}

static struct rondo_strand *make_strand(void)
{
    struct rondo_strand *strand = NULL;

    /* The stop line's address makes no demand on alignment, but strands of two threads should share no cache
     * line. */
    if (posix_memalign((void **)&strand, 128, sizeof(*strand)) != 0)
        return NULL;
    if (rondo_fiber_create(STACK_BYTES, &strand->fiber) != ncclSuccess) {
        free(strand);
        return NULL;
    }
    return strand;
}

static void put_strands(struct rondo_strand *list)
{
    while (list) {
        struct rondo_strand *next = list->next;
        if (free_count < POOLED_STRANDS) {
            list->next = free_strands;
            free_strands = list;
            free_count++;
        } else {
            rondo_fiber_destroy(list->fiber);
            free(list);
        }
        list = next;
    }
}

void rondo_strand_trim(void)
{
    while (free_strands) {
        struct rondo_strand *next = free_strands->next;
        rondo_fiber_destroy(free_strands->fiber);
        free(free_strands);
        free_strands = next;
    }
    free_count = 0;
}

static uint32_t count_lists(const struct rondo_launch *launch)
{
    uint32_t lists = 0;

    for (uint32_t b = 0; b < launch->blocks; b++)
        lists += (launch->args->block[b].works[0] > 0) + (launch->args->block[b].works[1] > 0);
    return lists;
}

/* A chain of `wanted` strands, from the pool as far as it reaches. NULL: no memory. */
static struct rondo_strand *take_strands(uint32_t wanted)
{
    struct rondo_strand *taken = NULL, *strand;

    rondo_cpu_lock();
    for (; wanted > 0 && free_strands; wanted--) {
        strand = free_strands;
        free_strands = strand->next;
        free_count--;
        strand->next = taken;
        taken = strand;
    }
    rondo_cpu_unlock(NULL);
    for (; wanted > 0; wanted--) {
        strand = make_strand();
        if (!strand) {
            rondo_cpu_lock();
            put_strands(taken);
            rondo_cpu_unlock(NULL);
            return NULL;
        }
        strand->next = taken;
        taken = strand;
    }
    return taken;
}

static void set_fault(const struct rondo_kernel_args *args)
{
    uint32_t unclaimed = 0;

    rondo_fail(ncclSystemError, "run a launch of %u blocks: no memory for its fibers", args->blocks);
    if (args->fault && __atomic_compare_exchange_n(&args->fault->claim, &unclaimed, 1, false,
                                                   __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        args->fault->peer = -1;
        __atomic_store_n(&args->fault->code, ncclSystemError,
                         __ATOMIC_RELEASE); /* pairs with the owner's load */
    }
}

void rondo_item_start(struct rondo_item *item)
{
    const struct rondo_launch *launch = &item->u.launch.what;
    const struct rondo_kernel_args *args = launch->args;
    uint32_t lists = count_lists(launch);
    struct rondo_strand *strand = lists > 0 ? take_strands(lists) : NULL;

    item->is_started = true;
    item->u.launch.stop = args->page ? &args->page->stop : &never;
    item->u.launch.live = strand;
    item->u.launch.ended = NULL;
    if (lists > 0 && !strand)
        set_fault(args);
    for (uint32_t list = 0; strand; list++) {
        if (args->block[list / 2].works[list % 2] == 0)
            continue;
        strand->lane = (struct rondo_lane){
            .ops = &lane_ops, .stop = item->u.launch.stop, .block = list / 2, .role = list % 2};
        strand->args = args;
        strand->line = NULL;
        rondo_fiber_prepare(strand->fiber, run_strand, strand);
        strand = strand->next;
    }
}

static bool can_go_on(const struct rondo_strand *strand, bool is_stopped)
{
    return is_stopped || !strand->line || has_come(strand);
}

bool rondo_item_resume(struct rondo_item *item)
{
    bool progress = false;

    for (struct rondo_strand **at = &item->u.launch.live, *strand; (strand = *at) != NULL;) {
        if (!can_go_on(strand, rondo_line_read(item->u.launch.stop) != 0)) {
            at = &strand->next;
            continue;
        }
        progress = true;
        if (rondo_fiber_resume(strand->fiber)) {
            *at = strand->next;
            strand->next = item->u.launch.ended;
            item->u.launch.ended = strand;
        } else {
            at = &strand->next;
        }
    }
    return progress;
}

bool rondo_item_is_ready(const struct rondo_item *item)
{
    bool is_stopped = rondo_line_read(item->u.launch.stop) != 0;

    for (const struct rondo_strand *strand = item->u.launch.live; strand; strand = strand->next) {
        if (can_go_on(strand, is_stopped))
            return true;
    }
    return false;
}

void rondo_item_enlist(const struct rondo_item *item, uint32_t waiter)
{
    if (item->kind != RONDO_ITEM_LAUNCH || !item->is_started)
        return;
    rondo_line_enlist(item->u.launch.stop, waiter);
    for (const struct rondo_strand *strand = item->u.launch.live; strand; strand = strand->next) {
        if (strand->line)
            rondo_line_enlist(strand->line, waiter);
    }
}

void rondo_item_delist(const struct rondo_item *item, uint32_t waiter)
{
    if (item->kind != RONDO_ITEM_LAUNCH || !item->is_started)
        return;
    rondo_line_delist(item->u.launch.stop, waiter);
    for (const struct rondo_strand *strand = item->u.launch.live; strand; strand = strand->next) {
        if (strand->line)
            rondo_line_delist(strand->line, waiter);
    }
}

void rondo_item_recycle(struct rondo_item *item)
{
    put_strands(item->u.launch.ended);
    item->u.launch.ended = NULL;
}
