/*
 * pull.h - the direct kinds of work, as arithmetic: what is offered to whom, and who reads what of it.
 *
 * A work is cut into pieces of `chunk` elements, the same on all ranks. A rank offers its input to those who
 * read of it, and each reader takes its part where it lies. An input that peers can read is offered as a
 * whole, once; another goes through the bounce area of its owner, piece by piece, two at a time.
 *
 *   plain    all-gather, broadcast, gather: a piece is chunk elements, the same for every reader
 *   blocks   reduce-scatter, all-to-all, scatter: a piece is chunk elements of every rank's block; reader r
 *            wants those of block r. In the bounce area they follow each other without a gap
 *   parts    all-reduce, reduce: a piece is a loop of the ring's (schedule.h): a chunk for each rank, all of
 *            them in one run. Rank r reduces chunk r, from all ranks, and offers the result to who wants it
 *
 * Counts and offsets are elements.
 */
#ifndef RONDO_DEVICE_PULL_H
#define RONDO_DEVICE_PULL_H

#include "device/schedule.h"
#include "device/work.h"

enum rondo_pull_shape { RONDO_PULL_PLAIN, RONDO_PULL_BLOCKS, RONDO_PULL_PARTS };

struct rondo_pull {
    enum rondo_work_kind kind;
    enum rondo_pull_shape shape;
    uint32_t ranks;
    uint32_t root; /* of rooted kinds */
    uint64_t count, stride, chunk;
    uint64_t pieces;
};

RONDO_PURE enum rondo_pull_shape rondo_pull_shape_of(enum rondo_work_kind kind)
{
    switch (kind) {
    case RONDO_WORK_DIRECT_ALL_REDUCE:
    case RONDO_WORK_DIRECT_REDUCE:
        return RONDO_PULL_PARTS;
    case RONDO_WORK_DIRECT_REDUCE_SCATTER:
    case RONDO_WORK_DIRECT_ALL_TO_ALL:
    case RONDO_WORK_DIRECT_SCATTER:
        return RONDO_PULL_BLOCKS;
    default:
        return RONDO_PULL_PLAIN;
    }
}

/* ranks >= 2 and work->chunk > 0. */
RONDO_PURE struct rondo_pull rondo_pull_of(const struct rondo_work *work, uint32_t ranks)
{
    struct rondo_pull pull = {
        (enum rondo_work_kind)work->kind,
        rondo_pull_shape_of((enum rondo_work_kind)work->kind),
        ranks,
        (uint32_t)work->root,
        work->count,
        work->stride,
        work->chunk,
        0,
    };

    pull.pieces = pull.shape == RONDO_PULL_PARTS ? rondo_ring_loops(pull.count, ranks, pull.chunk)
                                                 : rondo_pieces(pull.count, pull.chunk);
    return pull;
}

/* Whether rank `to` reads of the input of rank `from`; a rank reads its own too, without an offer. */
RONDO_PURE bool rondo_pull_reads(const struct rondo_pull *pull, uint32_t to, uint32_t from)
{
    switch (pull->kind) {
    case RONDO_WORK_DIRECT_BROADCAST:
    case RONDO_WORK_DIRECT_SCATTER:
        return from == pull->root;
    case RONDO_WORK_DIRECT_GATHER:
        return to == pull->root;
    default:
        return true;
    }
}

/* Whether a rank keeps the results that others make of their parts (all-reduce, reduce). */
RONDO_PURE bool rondo_pull_keeps(const struct rondo_pull *pull, uint32_t rank)
{
    return pull->kind != RONDO_WORK_DIRECT_REDUCE || rank == pull->root;
}

/* How many chunks a piece has room for in the bounce area: times chunk, what a bounce area's half must hold.
 */
RONDO_PURE uint64_t rondo_pull_chunks(const struct rondo_pull *pull)
{
    return pull->shape == RONDO_PULL_PLAIN ? 1 : pull->ranks;
}

/* Elements of the bounce area: two pieces of the input and, of parts, two chunks of results. */
RONDO_PURE uint64_t rondo_pull_bounce(const struct rondo_pull *pull)
{
    return 2 * (rondo_pull_chunks(pull) + (pull->shape == RONDO_PULL_PARTS ? 1 : 0)) * pull->chunk;
}

/* What reader `to` takes of piece i of an input, as a run of the input. */
RONDO_PURE struct rondo_part rondo_pull_source(const struct rondo_pull *pull, uint64_t i, uint32_t to)
{
    struct rondo_part part;

    if (pull->shape == RONDO_PULL_PARTS)
        return rondo_ring_chunk(pull->count, pull->ranks, pull->chunk, i, to);
    part = rondo_piece(pull->count, pull->chunk, i);
    if (pull->shape == RONDO_PULL_BLOCKS)
        part.first += to * pull->stride;
    return part;
}

/* Where that begins in a piece that lies by itself. */
RONDO_PURE uint64_t rondo_pull_offset(const struct rondo_pull *pull, uint64_t i, uint32_t to)
{
    struct rondo_part part = rondo_pull_source(pull, i, to);

    if (pull->shape == RONDO_PULL_BLOCKS)
        return to * part.count;
    return pull->shape == RONDO_PULL_PARTS && part.count > 0 ? part.first - i * pull->ranks * pull->chunk : 0;
}

/* Where data moved from rank `from` goes in the reader's recv. */
RONDO_PURE uint64_t rondo_pull_target(const struct rondo_pull *pull, uint64_t i, uint32_t from)
{
    uint64_t first = rondo_piece(pull->count, pull->chunk, i).first;
    bool has_blocks = pull->kind == RONDO_WORK_DIRECT_ALL_GATHER ||
                      pull->kind == RONDO_WORK_DIRECT_ALL_TO_ALL || pull->kind == RONDO_WORK_DIRECT_GATHER;

    return first + (has_blocks ? from * pull->stride : 0);
}

/* Elements of an input: of the whole, from its first to its last, and of piece i alone. What offers count. */
RONDO_PURE uint64_t rondo_pull_whole(const struct rondo_pull *pull)
{
    return pull->shape == RONDO_PULL_BLOCKS ? (pull->ranks - 1) * pull->stride + pull->count : pull->count;
}

RONDO_PURE uint64_t rondo_pull_piece(const struct rondo_pull *pull, uint64_t i)
{
    if (pull->shape == RONDO_PULL_PARTS)
        return rondo_piece(pull->count, pull->ranks * pull->chunk, i).count;
    return rondo_piece(pull->count, pull->chunk, i).count * rondo_pull_chunks(pull);
}

#endif
