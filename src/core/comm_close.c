/*
 * comm_close.c - ending a communicator: in order, or at once.
 *
 * In order: calls are refused, what was launched ends by itself, and the page says goodbye. At once: stop is
 * raised first. Then, in both cases, the rank tells its peers that it is past their mailboxes, lets go of
 * them, and retires its own.
 */
#include "comm_close.h"

#include "agreement.h"
#include "group.h"
#include "retire.h"
#include "roster.h"
#include "stream.h"
#include "watch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <stdlib.h>

/* Choices, not measured: they bound how long an end may take. */
#define ABORT_NS 1500000000ull /* an abort returns in less than 2 s whatever the device does */
#define DEPART_NS \
    200000000ull /* a destroy waits that long for ranks of other processes that are about to be past it */
#define PAUSE_NS_MAX 1000000ull /* between looks */

static bool is_local(const struct ncclComm *comm, int rank)
{
    return comm->peers[rank].process == comm->peers[comm->rank].process;
}

/* Peers that will say one day that they are past our mailbox; dead ones that have not closed never will. */
static uint64_t count_departures(const struct ncclComm *comm)
{
    uint64_t expected = 0;

    for (int r = 0; r < comm->ranks; r++) {
        const struct rondo_member *member = &comm->members[r];

        if (r == comm->rank || !member->page)
            continue;
        uint64_t goodbye = __atomic_load_n(&member->page->goodbye, __ATOMIC_ACQUIRE);
        if (!__atomic_load_n(&member->is_dead, __ATOMIC_RELAXED) || goodbye == RONDO_GOODBYE_CLOSED ||
            goodbye == RONDO_GOODBYE_ABORTED)
            expected++;
    }
    return expected;
}

/* Whether only ranks of other processes can still be missing: one of our own may be destroyed later by this
 * very thread. */
static bool is_last_here(const struct ncclComm *comm)
{
    for (int r = 0; r < comm->ranks; r++) {
        if (r != comm->rank && comm->members[r].page && is_local(comm, r) &&
            __atomic_load_n(&comm->members[r].page->goodbye, __ATOMIC_ACQUIRE) == RONDO_GOODBYE_NONE)
            return false;
    }
    return true;
}

/* Release: pairs with the acquires in retire.c and await_departures(); all we did there, reads of its bounce
 * area too, comes first. */
static void depart(struct ncclComm *comm)
{
    for (int r = 0; r < comm->ranks; r++) {
        if (r != comm->rank && comm->members[r].page)
            __atomic_fetch_add(&comm->members[r].page->departed, 1, __ATOMIC_RELEASE);
    }
}

static void let_go_of_peers(struct ncclComm *comm)
{
    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_member *member = &comm->members[r];

        if (!member->reach)
            continue;
        rondo_watch_remove(member->transport->death(member->reach));
        rondo_watch_remove(member->transport->life(member->reach));
        member->transport->release(member->reach);
        member->reach = NULL;
        member->page = NULL;
    }
}

/* So that a loop of init and destroy meets the same memory every time. The acquire pairs with depart() of the
 * peers. */
static void await_departures(const struct rondo_rank_page *page, uint64_t expected)
{
    uint64_t deadline = rondo_clock_ns() + DEPART_NS;

    for (uint64_t pause = 10000; rondo_clock_ns() < deadline;
         pause = pause < PAUSE_NS_MAX ? 2 * pause : pause) {
        if (__atomic_load_n(&page->departed, __ATOMIC_ACQUIRE) >= expected)
            return;
        rondo_clock_sleep_ns(pause);
    }
}

void rondo_comm_dismantle(struct ncclComm *comm)
{
    bool was_closed = comm->state == RONDO_COMM_DYING;
    uint64_t expected = count_departures(comm);
    bool may_wait = was_closed && is_last_here(comm) &&
                    __atomic_load_n(&comm->page->goodbye, __ATOMIC_RELAXED) == RONDO_GOODBYE_CLOSED;

    if (was_closed)
        depart(comm);
    let_go_of_peers(comm);
    rondo_stream_release(comm);
    if (comm->mailbox && comm->is_exposed) {
        if (may_wait)
            await_departures(comm->page, expected);
        rondo_mailbox_retire(comm->ops, comm->mailbox, expected);
    } else if (comm->mailbox) {
        (void)comm->ops->release(comm->mailbox);
    }
    comm->mailbox = NULL;
    comm->page = NULL;
    if (comm->has_watch)
        rondo_watch_stop();
    comm->has_watch = false;
}

/* Nothing runs any more: free it. Drops the caller's reference. */
static void finish_close(struct ncclComm *comm, enum rondo_goodbye goodbye)
{
    __atomic_store_n(&comm->page->goodbye, goodbye, __ATOMIC_RELEASE); /* pairs as rank_page.h has it */
    rondo_roster_begin_dying(comm);
    rondo_comm_dismantle(comm);
    rondo_roster_remove(comm);
    rondo_comm_put(comm);
}

/* The communicator's error, also one that the watch thread would only see at its next look. */
static ncclResult_t check_last(struct ncclComm *comm)
{
    uint64_t agreed = 0;
    ncclResult_t rc = rondo_comm_check(comm);

    if (rc == ncclSuccess && rondo_agreement_look(comm, &agreed))
        rc = rondo_comm_check(comm);
    return rc;
}

static ncclResult_t run_destroy(struct rondo_job *job)
{
    struct ncclComm *comm;
    ncclResult_t rc = rondo_roster_enter(job->handle, "ncclCommDestroy", &comm);

    if (rc != ncclSuccess)
        return rc;
    rc = check_last(comm); /* one that failed is left to ncclCommAbort */
    rondo_roster_leave(comm);
    if (rc == ncclSuccess)
        rc = rondo_roster_begin_close(job->handle, "ncclCommDestroy", &comm);
    if (rc != ncclSuccess)
        return rc;
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_DESTROY, "destroy rank %d of %d", comm->rank, comm->ranks);
    __atomic_store_n(&comm->page->owner, job->thread, __ATOMIC_RELAXED);
    rc = rondo_comm_flush(comm, UINT64_MAX);
    if (rc == ncclSuccess)
        rc = rondo_comm_check(comm);
    if (rc == ncclSuccess)
        finish_close(comm, RONDO_GOODBYE_CLOSED);
    else
        rondo_roster_reopen(comm); /* it has failed meanwhile: as one that had failed before */
    return rc;
}

ncclResult_t rondo_close_record(ncclComm_t handle)
{
    struct rondo_job job = {.run = run_destroy, .handle = handle};
    ncclResult_t rc;

    if (!handle)
        return ncclSuccess;
    rc = rondo_roster_check_process("ncclCommDestroy");
    if (rc != ncclSuccess)
        return rc;
    rondo_group_open();
    return rondo_group_close(rondo_group_add_job(&job));
}

static ncclResult_t run_finalize(struct rondo_job *job)
{
    struct ncclComm *comm;
    ncclResult_t rc = rondo_roster_enter(job->handle, "ncclCommFinalize", &comm);

    if (rc != ncclSuccess)
        return rc;
    rc = check_last(comm);
    if (rc == ncclSuccess && comm->is_finalized)
        rc = rondo_fail(ncclInvalidArgument,
                        "ncclCommFinalize: rank %d's communicator has been finalized before", comm->rank);
    if (rc == ncclSuccess) {
        __atomic_store_n(&comm->page->owner, job->thread, __ATOMIC_RELAXED);
        comm->is_finalized = true;
        rc = rondo_comm_flush(comm, UINT64_MAX);
        if (rc == ncclSuccess)
            rc = rondo_comm_check(comm);
        __atomic_store_n(&comm->page->goodbye, RONDO_GOODBYE_CLOSED, __ATOMIC_RELEASE);
    }
    rondo_roster_leave(comm);
    return rc;
}

ncclResult_t rondo_finalize_record(ncclComm_t handle)
{
    struct rondo_job job = {.run = run_finalize, .handle = handle};
    ncclResult_t rc;

    if (!handle)
        return ncclSuccess;
    rc = rondo_roster_check_process("ncclCommFinalize");
    if (rc != ncclSuccess)
        return rc;
    rondo_group_open();
    return rondo_group_close(rondo_group_add_job(&job));
}

ncclResult_t rondo_comm_abort(ncclComm_t handle)
{
    struct ncclComm *comm;
    ncclResult_t rc;

    if (!handle)
        return ncclSuccess;
    rc = rondo_roster_begin_abort(handle, &comm);
    if (rc != ncclSuccess || !comm)
        return rc;
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_DESTROY, "abort rank %d of %d", comm->rank, comm->ranks);
    rondo_comm_stop(comm, RONDO_STOP_ABORT);
    if (rondo_comm_flush(comm, rondo_clock_ns() + ABORT_NS) != ncclSuccess) {
        /* Its launches are stuck behind work of the program's own. They keep what they use; nothing else is
         * safe to free. */
        rondo_log(
            RONDO_LOG_WARN, 0,
            "abort rank %d: its operations wait behind other work of their stream; their memory stays in use",
            comm->rank);
        rondo_roster_remove(comm);
        rondo_comm_put(comm);
        return ncclSuccess;
    }
    finish_close(comm, RONDO_GOODBYE_ABORTED);
    return ncclSuccess;
}
