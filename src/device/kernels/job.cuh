/*
 * job.cuh - one work being run by one block, and how it tells others that it waits, or that it cannot go on.
 */
#ifndef RONDO_KERNELS_JOB_CUH
#define RONDO_KERNELS_JOB_CUH

#include "kernels/numeric.cuh"

#include "device/schedule.h"
#include "device/types.h"

namespace RONDO_KERNELS
{

struct job {
    machine where;
    const struct rondo_kernel_args *args;
    const struct rondo_work *work;
    uint32_t index; /* of the work in args */
    uint32_t list;  /* block * 2 + role: which note is this block's */
};

/* Where an element of the user's buffers is; NULL stays NULL, for a rank whose part in the operation needs no
 * buffer. */
RONDO_INLINE const void *own_at(const struct rondo_work &w, uint64_t element, uint64_t bytes)
{
    return w.send ? (const unsigned char *)w.send + element * bytes : nullptr;
}

RONDO_INLINE void *keep_at(const struct rondo_work &w, uint64_t element, uint64_t bytes)
{
    return w.recv ? (unsigned char *)w.recv + element * bytes : nullptr;
}

/* What a message about a fault says; see struct rondo_fault. */
struct mismatch {
    uint64_t expected, found;
    uint64_t expected_bytes, found_bytes;
};

/* End this rank's launch: the first fault of a launch is the one recorded, and stop names the peer as culprit
 * (-1: none). Called by lane 0 alone. */
RONDO_OUTLINE void report_fault(const job &j, ncclResult_t code, int32_t peer, const mismatch &what)
{
    struct rondo_fault *fault = j.args->fault;

    if (!claim(&fault->claim))
        return;
    store_plain(&fault->peer, peer);
    store_plain(&fault->work, j.index);
    store_plain(&fault->expected, what.expected);
    store_plain(&fault->found, what.found);
    store_plain(&fault->expected_bytes, what.expected_bytes);
    store_plain(&fault->found_bytes, what.found_bytes);
    store_last(&fault->code, (uint32_t)code);
    raise_stop(j.where, j.args->page, RONDO_STOP_VALUE(code, peer), j.args->board);
}

/* Say whom this list waits for. The kind of wait comes last: a watcher that sees one finds the rest in place.
 */
RONDO_INLINE void note_wait(const job &j, enum rondo_wait_kind wait, int32_t peer)
{
    if (j.list >= RONDO_NOTES)
        return;
    struct rondo_note *note = &j.args->page->notes[j.list];
    store_relaxed(&note->sequence, load_relaxed(&note->sequence) + 1);
    store_relaxed(&note->peer, peer);
    store_relaxed(&note->number, j.work->number);
    store_relaxed(&note->operation, j.work->operation);
    store_last(&note->wait, (uint8_t)wait);
}

/* Nothing comes with it: who sees no wait looks at nothing else. */
RONDO_INLINE void note_end(const job &j)
{
    if (j.list < RONDO_NOTES)
        store_relaxed(&j.args->page->notes[j.list].wait, (uint8_t)RONDO_WAIT_NONE);
}

/* Wait for a line, by lane 0 alone. false: stop was raised, then or before. A block that never has to wait
 * sees the stop too. */
RONDO_INLINE bool wait_for(const job &j, struct rondo_line *line, uint64_t target, enum rondo_wait_kind wait,
                           int32_t peer)
{
    if (stop_raised(j.where))
        return false;
    if (has_reached(line, target))
        return true;
    note_wait(j, wait, peer);
    bool reached = wait_until(j.where, line, target);
    note_end(j);
    return reached;
}

/* Between the pieces of a work that does not wait for anybody: a stop is seen, and others get to run. All
 * lanes.
 */
RONDO_INLINE bool may_go_on(const job &j)
{
    bool stopped = lane_index() == 0 && stop_raised(j.where);

    breathe(j.where);
    return !agree(stopped);
}

} // namespace RONDO_KERNELS

#endif
