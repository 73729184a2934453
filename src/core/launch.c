/*
 * launch.c - running the operations of a group, all communicators together.
 *
 * First everything that can fail without anybody having seen it: entering the communicators, numbers, plans,
 * waits between streams. Then, in one go, the records in the rank pages and the launches. One launch per
 * communicator and group.
 */
#include "launch.h"

#include "fault.h"
#include "record.h"
#include "roster.h"
#include "stream.h"

#include "base/error.h"
#include "base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A launch on its way; freed when it ends. Those of the process are listed in the order of their launches, so
 * that one can tell what another is queued behind. */
struct rondo_flight {
    struct rondo_flight *next, *previous;
    void *stream;
    enum rondo_operation first; /* its first operation, and that one's number */
    uint64_t first_number;
    struct rondo_launch launch;
    struct ncclComm *comm; /* a reference is held */
    struct rondo_plan *plan;
    uint64_t number; /* of the newest collective in it or before it */
};

static pthread_mutex_t flights_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rondo_flight *oldest, *newest;

static void list_flight(struct rondo_flight *flight)
{
    pthread_mutex_lock(&flights_lock);
    flight->previous = newest;
    *(newest ? &newest->next : &oldest) = flight;
    newest = flight;
    pthread_mutex_unlock(&flights_lock);
}

static void unlist_flight(struct rondo_flight *flight)
{
    pthread_mutex_lock(&flights_lock);
    *(flight->previous ? &flight->previous->next : &oldest) = flight->next;
    *(flight->next ? &flight->next->previous : &newest) = flight->previous;
    pthread_mutex_unlock(&flights_lock);
}

/* The oldest launch of a communicator, NULL if there is none; the lock is held. */
static const struct rondo_flight *find_oldest(const struct ncclComm *comm)
{
    const struct rondo_flight *flight = oldest;

    while (flight && flight->comm != comm)
        flight = flight->next;
    return flight;
}

/* The oldest launch on the stream of this one, which may be itself; the lock is held. */
static const struct rondo_flight *find_head(const struct rondo_flight *queued)
{
    const struct rondo_flight *flight = oldest;

    while (flight->stream != queued->stream || flight->comm->device != queued->comm->device)
        flight = flight->next;
    return flight;
}

bool rondo_launch_behind(const struct ncclComm *comm, char *out, size_t bytes)
{
    char own[RONDO_COMM_TEXT], other[RONDO_COMM_TEXT];

    pthread_mutex_lock(&flights_lock);
    const struct rondo_flight *flight = find_oldest(comm);
    const struct rondo_flight *ahead = flight ? find_head(flight) : NULL;
    bool is_behind = ahead && ahead->comm != comm;
    if (is_behind)
        snprintf(out, bytes, "%s %llu of %s on rank %d is queued behind %s %llu of %s on its stream",
                 rondo_operation_name(flight->first), (unsigned long long)flight->first_number,
                 rondo_comm_text(comm, own), comm->rank, rondo_operation_name(ahead->first),
                 (unsigned long long)ahead->first_number, rondo_comm_text(ahead->comm, other));
    pthread_mutex_unlock(&flights_lock);
    return is_behind;
}

/* The counter that numbers a task. */
static uint64_t *counter_of(struct ncclComm *comm, const struct rondo_task *task)
{
    if (task->operation == RONDO_OP_SEND)
        return &comm->members[task->root].sent;
    if (task->operation == RONDO_OP_RECV)
        return &comm->members[task->root].received;
    return &comm->number;
}

/* Take a communicator for this thread's use. */
static ncclResult_t enter_batch(struct rondo_batch *batch)
{
    struct ncclComm *comm;
    uint32_t idle = 0;
    ncclResult_t rc = rondo_roster_enter(batch->comm, "launch", &comm);

    if (rc != ncclSuccess)
        return rc;
    /* Acquire and release (leave_batch): the next thread sees what the last one did. */
    if (!__atomic_compare_exchange_n(&comm->in_call, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        rondo_roster_leave(comm);
        return rondo_fail(ncclInvalidUsage,
                          "rank %d's communicator is used by two threads at once; one at a time may call it",
                          comm->rank);
    }
    batch->is_entered = true;
    return rondo_comm_check(comm);
}

static void leave_batch(struct rondo_batch *batch)
{
    if (!batch->is_entered)
        return;
    batch->is_entered = false;
    __atomic_store_n(&batch->comm->in_call, 0, __ATOMIC_RELEASE); /* pairs with enter_batch() */
    rondo_roster_leave(batch->comm);
}

/* Undo plan_batch: nobody has seen the numbers. */
static void drop_plan(struct rondo_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        --*counter_of(batch->comm, &batch->tasks[i]);
    rondo_plan_destroy(batch->plan);
    free(batch->flight);
    batch->plan = NULL;
    batch->flight = NULL;
}

static ncclResult_t plan_batch(struct rondo_batch *batch)
{
    struct ncclComm *comm = batch->comm;
    ncclResult_t rc;

    for (size_t i = 0; i < batch->count; i++)
        batch->tasks[i].number = ++*counter_of(comm, &batch->tasks[i]);
    rc = rondo_plan_build(&comm->context, batch->tasks, batch->count, &batch->plan);
    if (rc == ncclSuccess && batch->plan) {
        batch->flight = malloc(sizeof(*batch->flight));
        if (!batch->flight)
            rc = rondo_fail(ncclSystemError, "launch on rank %d: out of memory", comm->rank);
    }
    if (rc != ncclSuccess)
        drop_plan(batch);
    return rc;
}

/* struct rondo_launch.finished. The last thing it does lets the communicator go. */
static void land(void *owner)
{
    struct rondo_flight *flight = owner;
    struct ncclComm *comm = flight->comm;

    unlist_flight(flight);
    uint64_t landed =
        __atomic_load_n(&comm->landed.value, __ATOMIC_RELAXED) + 1; /* they end one after another */

    /* Acquire: pairs with the release of the lane that filled the fault in. */
    if (__atomic_load_n(&flight->plan->fault.code, __ATOMIC_ACQUIRE) != 0)
        rondo_fault_report(comm, flight->plan);
    else
        (void)rondo_comm_error(comm); /* a peer may have ended it */
    rondo_plan_destroy(flight->plan);
    /* Releases: to peers as rank_page.h has it, and the line's to rondo_comm_flush(). */
    __atomic_store_n(&comm->page->finished, flight->number, __ATOMIC_RELEASE);
    __atomic_store_n(&comm->page->landed, landed, __ATOMIC_RELEASE);
    /* From here on whoever flushes may give up the communicator's resources; the struct lives by our
     * reference. */
    rondo_line_publish(&comm->landed, landed, comm->members[comm->rank].board);
    rondo_comm_put(comm);
    free(flight);
}

static ncclResult_t launch_batch(struct rondo_batch *batch)
{
    struct rondo_flight *flight = batch->flight;
    struct ncclComm *comm = batch->comm;
    struct rondo_plan *plan = batch->plan;
    ncclResult_t rc;

    plan->args.page = comm->page;
    plan->args.board = comm->members[comm->rank].board;
    *flight = (struct rondo_flight){
        .launch = {.args = &plan->args, .blocks = plan->args.blocks, .finished = land, .owner = flight},
        .comm = comm,
        .plan = plan,
        .number = comm->number,
        .stream = batch->stream,
        .first = batch->tasks[0].operation,
        .first_number = batch->tasks[0].number,
    };
    rondo_comm_get(comm);
    /* Releases: to rondo_comm_flush() and rondo_comm_is_busy(), and to peers as rank_page.h has it. */
    uint64_t launched = __atomic_add_fetch(&comm->launched, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&comm->page->launched, launched, __ATOMIC_RELEASE);
    batch->plan = NULL; /* land() frees it, and the flight */
    batch->flight = NULL;
    list_flight(flight);
    rc = comm->ops->launch(comm->device, batch->stream, &flight->launch);
    if (rc != ncclSuccess) {
        char reason[768];

        snprintf(reason, sizeof(reason), "%s", rondo_error_own());
        rondo_comm_end_all(comm, rc, comm->rank, "rank %d could not launch its operations: %s", comm->rank,
                           reason);
        land(flight);
    }
    return rc;
}

/* Show the operations to the peers and launch them. */
static ncclResult_t commit_batch(struct rondo_batch *batch)
{
    struct ncclComm *comm = batch->comm;

    __atomic_store_n(&comm->page->owner, rondo_thread_id(), __ATOMIC_RELAXED);
    for (size_t i = 0; i < batch->count; i++) {
        rondo_record_write(comm, &batch->tasks[i]);
        if (rondo_log_enabled(RONDO_LOG_INFO, RONDO_LOG_COLL))
            rondo_log(RONDO_LOG_INFO, RONDO_LOG_COLL,
                      "%s %llu: count %llu, rank %d of %d, send %p, recv %p, stream %p",
                      rondo_operation_name(batch->tasks[i].operation),
                      (unsigned long long)batch->tasks[i].number, (unsigned long long)batch->tasks[i].count,
                      comm->rank, comm->ranks, batch->tasks[i].send, batch->tasks[i].recv, batch->stream);
    }
    if (batch->plan)
        return launch_batch(batch);
    if (!rondo_comm_is_busy(comm)) /* else the last launch to end says so, or the next one */
        __atomic_store_n(&comm->page->finished, comm->number, __ATOMIC_RELEASE);
    return ncclSuccess;
}

/* Up to the point of no return. */
static ncclResult_t prepare_batches(struct rondo_batch *batches, size_t count)
{
    size_t planned = 0;
    ncclResult_t rc = ncclSuccess;

    for (size_t i = 0; i < count && rc == ncclSuccess; i++)
        rc = enter_batch(&batches[i]);
    while (planned < count && rc == ncclSuccess) {
        rc = plan_batch(&batches[planned]);
        planned += rc == ncclSuccess;
    }
    if (rc == ncclSuccess)
        rc = rondo_stream_join(batches, count);
    if (rc == ncclSuccess)
        return ncclSuccess;
    while (planned-- > 0)
        drop_plan(&batches[planned]);
    return rc;
}

/* Block until all launches of the batches have ended. This thread runs them, whichever it waits for. */
static ncclResult_t wait_batches(struct rondo_batch *batches, size_t count)
{
    ncclResult_t rc = ncclSuccess;

    for (size_t i = 0; i < count; i++)
        __atomic_store_n(&batches[i].comm->page->blocked, rondo_thread_id(), __ATOMIC_RELAXED);
    for (size_t i = 0; i < count; i++) {
        struct ncclComm *comm = batches[i].comm;
        ncclResult_t done = rondo_comm_flush(comm, UINT64_MAX);

        if (done == ncclSuccess)
            done = rondo_comm_check(comm);
        if (rc == ncclSuccess)
            rc = done;
    }
    for (size_t i = 0; i < count; i++)
        __atomic_store_n(&batches[i].comm->page->blocked, 0, __ATOMIC_RELAXED);
    return rc;
}

ncclResult_t rondo_launch_batches(struct rondo_batch *batches, size_t count)
{
    ncclResult_t rc = prepare_batches(batches, count);

    if (rc == ncclSuccess) {
        for (size_t i = 0; i < count; i++) {
            ncclResult_t committed = commit_batch(&batches[i]);

            if (rc == ncclSuccess)
                rc = committed;
        }
        ncclResult_t rest = batches[0].comm->ops->is_synchronous ? wait_batches(batches, count)
                                                                 : rondo_stream_fork(batches, count);
        if (rc == ncclSuccess)
            rc = rest;
    }
    for (size_t i = 0; i < count; i++)
        leave_batch(&batches[i]);
    return rc;
}
