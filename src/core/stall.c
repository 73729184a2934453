/*
 * stall.c - looking at a communicator that waits: who is late, who never comes, and what can never finish.
 *
 * A look compares what this rank's kernels wait for with the look before. While something moves there is
 * nothing to say. When nothing has moved, from the surest to the least sure:
 *
 *     records that differ        two ranks called different things under one number: ends all, at the second
 *                                look
 *     a rank that has left       ends all a second after it was seen gone
 *     RONDO_STALL_SECONDS        says who is late, once
 *     a closed set of waits      ends all, if the processes in it were alive and unchanged over two more
 *                                looks
 *     a thread that waits for its own next call
 *                                ends all
 *     RONDO_TIMEOUT              ends all
 */
#include "stall.h"

#include "agreement.h"
#include "death.h"
#include "departure.h"
#include "fault.h"
#include "launch.h"
#include "record.h"
#include "waits.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>

/* Choices, not measured: they trade how soon the odd rank is told of against being wrong about one that is
 * only slow. */
#define SECOND_NS 1000000000ull
#define CLOSURE_LOOKS 2
#define RANKS_NAMED 8
#define FAULT_PERIOD_NS 5000000ull /* between looks while a fault waits for late records */

/* Between looks while operations wait. */
static uint64_t stall_period(void)
{
    uint64_t quarter = (uint64_t)rondo_param_int(RONDO_PARAM_STALL_SECONDS) * SECOND_NS / 4;

    return quarter < SECOND_NS / 4 ? quarter : SECOND_NS / 4;
}

static bool look_for_disagreement(struct ncclComm *comm, const struct rondo_wait *wait)
{
    char text[768];
    int culprit;
    bool differs;

    if (wait->operation == RONDO_OP_SEND)
        differs = rondo_record_disagree_pair(comm, comm->rank, wait->peer, wait->number, text, sizeof(text),
                                             &culprit);
    else if (wait->operation == RONDO_OP_RECV)
        differs = rondo_record_disagree_pair(comm, wait->peer, comm->rank, wait->number, text, sizeof(text),
                                             &culprit);
    else
        differs = rondo_record_disagree(comm, wait->number, text, sizeof(text), &culprit);
    if (differs)
        rondo_comm_end_all(comm, ncclInvalidUsage, culprit, "%s", text);
    return differs;
}

/* Whether all is quiet for a reason that lies with rank: it has been asked for, and waits for nobody. */
static bool is_idle_end(const struct ncclComm *comm, int rank)
{
    return rondo_wait_is_busy(comm->members[rank].page) && rondo_wait_signature(comm, rank) == 0;
}

static bool is_running(const struct ncclComm *comm, int rank, uint64_t now)
{
    return rank == comm->rank || now - comm->look.pulses[rank].at <= RONDO_SILENCE_NS ||
           __atomic_load_n(&comm->members[rank].page->goodbye, __ATOMIC_ACQUIRE) != RONDO_GOODBYE_NONE;
}

/* Where waiting for rank leads: to a rank that does not run, or that waits for nobody itself. -1: nowhere. */
static int find_chain_end(const struct ncclComm *comm, int rank, uint64_t now)
{
    for (int steps = 0; steps < comm->ranks; steps++) {
        struct rondo_wait wait;

        if (!is_running(comm, rank, now) || !rondo_wait_first(comm, rank, &wait))
            return rank;
        rank = wait.peer;
    }
    return -1;
}

/* Why a rank may hold a wait up, the surest first. Who waits for somebody else is not to blame, so it comes
 * last. */
enum lateness { NOT_RUNNING, NOT_CALLED, NOT_MOVING, CHAIN_END, BUSY_ELSEWHERE, WAITED_FOR, LATENESSES };

static bool is_late(const struct ncclComm *comm, const struct rondo_wait *wait, int rank, enum lateness how,
                    uint64_t now)
{
    int end = find_chain_end(comm, wait->peer, now);

    if (how == NOT_RUNNING)
        return (rondo_wait_needs(comm, wait, rank) || rank == end) && !is_running(comm, rank, now);
    if (how == CHAIN_END)
        return rank == end && rank != wait->peer && rank != comm->rank;
    if (!rondo_wait_needs(comm, wait, rank))
        return false;
    switch (how) {
    case NOT_CALLED:
        return !rondo_wait_has_called(comm, wait, rank) && rondo_wait_signature(comm, rank) == 0;
    case NOT_MOVING:
        return is_idle_end(comm, rank);
    case BUSY_ELSEWHERE: /* a cycle */
        return rank == wait->peer && !rondo_wait_has_called(comm, wait, rank);
    default:
        return rank == wait->peer;
    }
}

/* "has not called it": what a rank that holds up a wait of operation does, for one or several. */
static void tell_lateness(enum lateness how, enum rondo_operation operation, bool is_one, char *out,
                          size_t bytes)
{
    bool is_missing = how == NOT_CALLED || how == BUSY_ELSEWHERE;
    const char *has = is_one ? "has" : "have";

    if (how == NOT_RUNNING)
        snprintf(out, bytes, " %s not run (stopped, or %s host is overloaded)", is_one ? "does" : "do",
                 is_one ? "its" : "their");
    else if (is_missing && rondo_operation_is_message(operation))
        snprintf(out, bytes, " %s not called the matching %s", has,
                 rondo_operation_name(operation == RONDO_OP_SEND ? RONDO_OP_RECV : RONDO_OP_SEND));
    else if (is_missing)
        snprintf(out, bytes, " %s not called it", has);
    else if (how == NOT_MOVING)
        snprintf(out, bytes,
                 " %s called it and %s not move: it may be queued behind other work of its stream there", has,
                 is_one ? "does" : "do");
    else if (how == CHAIN_END)
        snprintf(out, bytes, ", where the chain of waits ends, waits for nobody");
    else
        snprintf(out, bytes, " %s waited for", is_one ? "is" : "are");
}

/* "rank 2 (...) has not called it": those that hold it up, for the first reason that anybody has. */
static void tell_late_ranks(const struct ncclComm *comm, const struct rondo_wait *wait, uint64_t now,
                            char *out, size_t bytes)
{
    size_t used = 0;
    int named = 0;

    out[0] = '\0';
    for (enum lateness how = NOT_RUNNING; how < LATENESSES && named == 0; how++) {
        for (int r = 0; r < comm->ranks && named < RANKS_NAMED && used < bytes; r++) {
            char who[RONDO_RANK_TEXT];

            if (is_late(comm, wait, r, how, now))
                used += (size_t)snprintf(out + used, bytes - used, "%s%s", named++ ? ", " : "",
                                         rondo_comm_rank_text(comm, r, who));
        }
        if (named > 0 && used < bytes)
            tell_lateness(how, wait->operation, named == 1, out + used, bytes - used);
    }
}

static void describe_wait(const struct ncclComm *comm, const struct rondo_wait *wait, char *out, size_t bytes)
{
    struct rondo_record record;
    char call[RONDO_RECORD_TEXT], name[RONDO_COMM_TEXT];
    const struct rondo_rank_page *page = comm->page;
    bool is_known = rondo_operation_is_message(wait->operation)
                        ? rondo_record_read_pair(page, wait->operation, wait->peer, wait->number, &record)
                        : rondo_record_read(page, wait->number, &record);

    snprintf(out, bytes, "%s %llu of %s on rank %d",
             is_known ? rondo_record_text(&record, call) : rondo_operation_name(wait->operation),
             (unsigned long long)wait->number, rondo_comm_text(comm, name), comm->rank);
}

/* A log line alone: nothing has failed yet, and the last error's text is that of a failure. It is an alarm,
 * as what the bootstrap says of ranks that do not come: who sees a program stand still has rarely set
 * NCCL_DEBUG before. */
static void report_stall(struct ncclComm *comm, const struct rondo_wait *wait, uint64_t now)
{
    char what[320], late[512];

    if (comm->look.is_reported)
        return;
    comm->look.is_reported = true;
    describe_wait(comm, wait, what, sizeof(what));
    tell_late_ranks(comm, wait, now, late, sizeof(late));
    rondo_log(RONDO_LOG_ALARM, 0, "%s has not moved for %.1f s: %s", what,
              (double)(now - comm->look.since) / 1e9, late);
}

/* Whether every process in the set has beaten since the last look: one that is stopped leaves notes that are
 * not true any more. */
static bool are_alive(const struct ncclComm *comm, const bool *members)
{
    for (int r = 0; r < comm->ranks; r++) {
        if (members[r] && !comm->look.pulses[r].is_fresh)
            return false;
    }
    return true;
}

static bool look_for_cycle(struct ncclComm *comm)
{
    bool *members = calloc((size_t)comm->ranks, sizeof(*members));
    uint64_t closure = members ? rondo_wait_closure(comm, members) : 0;
    char cycle[640], name[RONDO_COMM_TEXT];

    if (closure != comm->look.closure)
        comm->look.closure_looks = 0;
    comm->look.closure = closure;
    if (closure != 0 && are_alive(comm, members))
        comm->look.closure_looks++;
    free(members);
    if (closure == 0 || comm->look.closure_looks <= CLOSURE_LOOKS)
        return false;
    rondo_wait_cycle_text(comm, cycle, sizeof(cycle));
    rondo_comm_end_all(comm, ncclInvalidUsage, comm->rank,
                       "wait cycle %s; in %s none of them can ever finish; put calls that need each other "
                       "between ncclGroupStart and "
                       "ncclGroupEnd",
                       cycle, rondo_comm_text(comm, name));
    return true;
}

/* Whether the thread that owns rank is blocked in a call on another rank of its process. */
static bool is_owner_blocked(const struct ncclComm *comm, int rank)
{
    uint64_t owner = __atomic_load_n(&comm->members[rank].page->owner, __ATOMIC_RELAXED);

    for (int r = 0; r < comm->ranks; r++) {
        if (r != rank && owner != 0 && comm->peers[r].process == comm->peers[rank].process &&
            __atomic_load_n(&comm->members[r].page->blocked, __ATOMIC_RELAXED) == owner)
            return true;
    }
    return false;
}

/* A call that is complete when it returns, waiting for another call of the same thread. */
static bool look_for_self_wait(struct ncclComm *comm, const struct rondo_wait *wait)
{
    char what[320];

    for (int r = 0; r < comm->ranks; r++) {
        if (!rondo_wait_needs(comm, wait, r) || rondo_wait_has_called(comm, wait, r) ||
            !is_owner_blocked(comm, r))
            continue;
        describe_wait(comm, wait, what, sizeof(what));
        rondo_comm_end_all(comm, ncclInvalidUsage, r,
                           "%s waits for rank %d, whose calls come from a thread that is itself waiting in "
                           "this operation; a thread with "
                           "several ranks must put their calls between ncclGroupStart and ncclGroupEnd",
                           what, r);
        return true;
    }
    return false;
}

static void end_by_timeout(struct ncclComm *comm, const struct rondo_wait *wait, uint64_t now)
{
    char what[320], late[512];

    describe_wait(comm, wait, what, sizeof(what));
    tell_late_ranks(comm, wait, now, late, sizeof(late));
    rondo_comm_end_all(comm, ncclTimeout, wait->peer, "%s has waited for %.1f s (RONDO_TIMEOUT is %lld): %s",
                       what, (double)(now - comm->look.since) / 1e9,
                       (long long)rondo_param_int(RONDO_PARAM_TIMEOUT), late);
}

static void feel_pulses(struct ncclComm *comm, uint64_t now)
{
    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_pulse *pulse = &comm->look.pulses[r];
        uint64_t beat = __atomic_load_n(&comm->members[r].page->beat, __ATOMIC_ACQUIRE);

        pulse->is_fresh = beat != pulse->beat;
        if (pulse->is_fresh || pulse->at == 0) /* before its first beat it has as long as after any other */
            *pulse = (struct rondo_pulse){.beat = beat, .at = now, .is_fresh = pulse->is_fresh};
    }
}

/* Nothing has moved since look.since. */
static void look_closer(struct ncclComm *comm, const struct rondo_wait *wait, uint64_t now)
{
    uint64_t waited_ns = now - comm->look.since;
    uint64_t stall_ns = (uint64_t)rondo_param_int(RONDO_PARAM_STALL_SECONDS) * SECOND_NS;
    uint64_t timeout_ns = (uint64_t)rondo_param_int(RONDO_PARAM_TIMEOUT) * SECOND_NS;

    /* A second is for ranks that are about to call, so that the odd one can be told from the others. */
    if ((waited_ns >= SECOND_NS || rondo_operation_is_message(wait->operation) ||
         rondo_record_is_complete(comm, wait->number)) &&
        look_for_disagreement(comm, wait))
        return;
    if (rondo_departure_look(comm, wait, now))
        return;
    if (waited_ns >= stall_ns) {
        report_stall(comm, wait, now);
        if (look_for_cycle(comm) || look_for_self_wait(comm, wait))
            return;
    }
    if (timeout_ns != 0 && waited_ns >= timeout_ns)
        end_by_timeout(comm, wait, now);
}

/* The oldest thing this rank waits for. */
static bool find_wait(const struct ncclComm *comm, struct rondo_wait *wait_out)
{
    bool found = false;

    for (int i = 0; i < RONDO_NOTES; i++) {
        struct rondo_wait wait;

        if (rondo_wait_read(comm, comm->page, i, &wait) && (!found || wait.number < wait_out->number)) {
            *wait_out = wait;
            found = true;
        }
    }
    return found;
}

/* An operation that has not begun, as others of its stream have not ended: each process knows its own.
 * Whether it ever begins cannot be told here. */
static void look_at_queue(struct ncclComm *comm, bool is_queued, uint64_t now)
{
    uint64_t landed = rondo_line_read(&comm->landed);
    struct rondo_queue_look *queue = &comm->look.queue;
    char what[320];

    if (!is_queued || queue->since == 0 || landed != queue->landed) {
        *queue = (struct rondo_queue_look){.landed = landed, .since = now};
        return;
    }
    if (queue->is_reported ||
        now - queue->since < (uint64_t)rondo_param_int(RONDO_PARAM_STALL_SECONDS) * SECOND_NS ||
        !rondo_launch_behind(comm, what, sizeof(what)))
        return;
    queue->is_reported = true;
    rondo_log(RONDO_LOG_ALARM, 0,
              "%s and has not begun for %.1f s; if another rank has queued the two the other way round, "
              "neither can ever end: use communicators in the same order on all ranks, or on streams of "
              "their own",
              what, (double)(now - queue->since) / 1e9);
}

uint64_t rondo_stall_look(struct ncclComm *comm, uint64_t now, bool check_deaths)
{
    struct rondo_look *look = &comm->look;
    struct rondo_wait wait;
    uint64_t signature;

    /* Who was stopped has seen nothing meanwhile, and blames nobody for it. */
    bool was_away = look->at != 0 && now - look->at > RONDO_SILENCE_NS;
    look->at = now;
    __atomic_fetch_add(&comm->page->beat, 1, __ATOMIC_RELEASE);
    if (rondo_fault_look(comm, now))
        return FAULT_PERIOD_NS;
    if (rondo_comm_error(comm) != ncclSuccess)
        return 0;
    if (rondo_agreement_look(comm, &look->agreed))
        return 0;
    feel_pulses(comm, now);
    bool is_unsure = rondo_death_look(comm, now, check_deaths || !look->is_watched);
    look->is_watched = true;
    signature = rondo_comm_is_busy(comm) ? rondo_wait_signature(comm, comm->rank) : 0;
    look_at_queue(comm, !was_away && signature == 0 && rondo_comm_is_busy(comm), now);
    if (was_away || signature == 0 || signature != look->signature || !find_wait(comm, &wait)) {
        look->signature = signature;
        look->since = now;
        look->is_reported = false;
        look->closure_looks = 0;
        look->gone_since = 0;
        return signature != 0 || is_unsure ? stall_period() : 0;
    }
    look_closer(comm, &wait, now);
    return stall_period();
}
