/*
 * push.h - the direct kinds of work over LL and LL128, as arithmetic: who gives what to whom.
 *
 * A work is cut into pieces of `chunk` elements, the same on all ranks, and a piece takes one step of every
 * connection that it uses. Whoever gives writes into the reader's slot, so a piece of a block kind is a slot
 * for each reader. There are no parts: whoever wants a result folds all inputs itself. Everything else is as
 * in pull.h.
 */
#ifndef RONDO_DEVICE_PUSH_H
#define RONDO_DEVICE_PUSH_H

#include "device/pull.h"
#include "device/types.h"

/* ranks >= 2 and work->chunk > 0. Its shape is never RONDO_PULL_PARTS. */
RONDO_PURE struct rondo_pull rondo_push_of(const struct rondo_work *work, uint32_t ranks)
{
    struct rondo_pull pull = rondo_pull_of(work, ranks);

    if (pull.shape == RONDO_PULL_PARTS) {
        pull.shape = RONDO_PULL_PLAIN;
        pull.pieces = rondo_pieces(pull.count, pull.chunk);
    }
    return pull;
}

/* Whether rank `to` reads of what rank `from` gives; a rank reads its own too, without a slot. */
RONDO_PURE bool rondo_push_reads(const struct rondo_pull *pull, uint32_t to, uint32_t from)
{
    return pull->kind == RONDO_WORK_DIRECT_REDUCE ? to == pull->root : rondo_pull_reads(pull, to, from);
}

/* Whether inputs of a reduction travel as accumulators: entered with their own rank's scalar, and not
 * rounded. */
RONDO_PURE bool rondo_push_is_wide(unsigned redop)
{
    return redop == RONDO_REDOP_PREMULSUM;
}

#endif
