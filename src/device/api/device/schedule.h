/*
 * schedule.h - who moves which part in which step, as arithmetic: no I/O, no device, no waiting.
 *
 * A rank knows its position p in a ring of n; it sends to p + 1 and receives from p - 1, both mod n. What it
 * does in a step is one action on one part. Parts are chunks (all-reduce), blocks of ranks, or the whole.
 *
 * Ring all-reduce: a loop covers n chunks. In step s (0 .. 2n-2) the rank works on chunk (p - s) mod n. Step
 * 0 sends its own input; steps 1 .. n-2 fold what arrives with its own and send it on; step n-1 completes
 * chunk p + 1, which steps n .. 2n-2 carry on round the ring. 2(n-1) sends and receives of a chunk a rank and
 * loop.
 *
 * Ring reduce-scatter: step s (0 .. n-1) works on the block of position (p - 1 - s) mod n, and the last one
 * completes the own. Ring all-gather: step s (0 .. n-1) works on the block of position (p - s) mod n.
 * Broadcast and reduce go once along the ring, from the root, or from behind it to it.
 *
 * Chain: positions are ranks; items pass 0 -> 1 -> .. -> n-1 and are folded in that order, so that every
 * element's sum is ((x0 + x1) + x2) + ..; rank n-1 completes them and sends the results on to 0, 1, .. as far
 * as needed. Partial sums of item t and results of item t - lag take turns on the same connections, in the
 * same order on every rank, so that the pipeline stays filled. rondo_chain_lag() says why this cannot
 * deadlock.
 */
#ifndef RONDO_DEVICE_SCHEDULE_H
#define RONDO_DEVICE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define RONDO_PURE static inline __host__ __device__
#else
#define RONDO_PURE static inline
#endif

/* What a rank does with one part in one step. Own input: `send` of struct rondo_work; keep: write to its
 * `recv`. */
enum rondo_action {
    RONDO_ACTION_NONE,
    RONDO_ACTION_ENTER,       /* send the own input */
    RONDO_ACTION_FOLD,        /* receive, fold with the own input, send */
    RONDO_ACTION_FINISH,      /* receive, fold with the own input, keep */
    RONDO_ACTION_FINISH_SEND, /* the same, and send the result */
    RONDO_ACTION_PASS,        /* receive, keep, send */
    RONDO_ACTION_TAKE         /* receive, keep */
};

struct rondo_step {
    enum rondo_action action;
    uint32_t part; /* chunk, or position whose block it is */
};

/* A run of elements, of whatever is cut: an operation's data into channels, a channel's into chunks. */
struct rondo_part {
    uint64_t first, count; /* elements */
};

/* Chunks of a last, shorter loop begin at multiples of this, so that they are aligned as well as the buffers
 * are. */
#define RONDO_CHUNK_ALIGNMENT 16

/* a / b, rounded up. b > 0. */
RONDO_PURE uint64_t rondo_pieces(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* Piece i of [0, count) cut into pieces of chunk elements: the last one is shorter, those after it are empty.
 */
RONDO_PURE struct rondo_part rondo_piece(uint64_t count, uint64_t chunk, uint64_t i)
{
    struct rondo_part range = {0, 0};

    if (i < rondo_pieces(count, chunk)) {
        range.first = i * chunk;
        range.count = count - range.first < chunk ? count - range.first : chunk;
    }
    return range;
}

/* Loops of a ring all-reduce of count elements. ranks * chunk must fit 64 bits. */
RONDO_PURE uint64_t rondo_ring_loops(uint64_t count, uint32_t ranks, uint64_t chunk)
{
    return rondo_pieces(count, ranks * chunk);
}

/* Chunk c of a loop. In the last loop chunks are shorter and equal but for alignment and the end; some may be
 * empty, and neither end of a connection spends a slot on those. */
RONDO_PURE struct rondo_part rondo_ring_chunk(uint64_t count, uint32_t ranks, uint64_t chunk, uint64_t loop,
                                              uint32_t c)
{
    uint64_t base = loop * ranks * chunk;
    uint64_t rest = count - base;
    uint64_t length = chunk;
    struct rondo_part range = {0, 0};

    if (rest < ranks * chunk) {
        length = rondo_pieces(rondo_pieces(rest, ranks), RONDO_CHUNK_ALIGNMENT) * RONDO_CHUNK_ALIGNMENT;
        length = length < chunk ? length : chunk;
    }
    if (c * length < rest) {
        range.first = base + c * length;
        range.count = rest - c * length < length ? rest - c * length : length;
    }
    return range;
}

/* (position - back) mod n, for back up to 2n. */
RONDO_PURE uint32_t rondo_ring_behind(uint32_t position, uint32_t n, uint32_t back)
{
    return (uint32_t)(((uint64_t)position + 2 * (uint64_t)n - back) % n);
}

#define RONDO_ALL_REDUCE_STEPS(n) (2 * (n)-1)

/* n >= 2 here and below. */
RONDO_PURE struct rondo_step rondo_all_reduce_step(uint32_t position, uint32_t n, uint32_t s)
{
    struct rondo_step step = {RONDO_ACTION_PASS, rondo_ring_behind(position, n, s)};

    if (s == 0)
        step.action = RONDO_ACTION_ENTER;
    else if (s < n - 1)
        step.action = RONDO_ACTION_FOLD;
    else if (s == n - 1)
        step.action = RONDO_ACTION_FINISH_SEND;
    else if (s == 2 * n - 2)
        step.action = RONDO_ACTION_TAKE;
    return step;
}

RONDO_PURE struct rondo_step rondo_reduce_scatter_step(uint32_t position, uint32_t n, uint32_t s)
{
    struct rondo_step step = {RONDO_ACTION_FOLD, rondo_ring_behind(position, n, s + 1)};

    if (s == 0)
        step.action = RONDO_ACTION_ENTER;
    else if (s == n - 1)
        step.action = RONDO_ACTION_FINISH;
    return step;
}

RONDO_PURE struct rondo_step rondo_all_gather_step(uint32_t position, uint32_t n, uint32_t s)
{
    struct rondo_step step = {RONDO_ACTION_PASS, rondo_ring_behind(position, n, s)};

    if (s == 0)
        step.action = RONDO_ACTION_ENTER;
    else if (s == n - 1)
        step.action = RONDO_ACTION_TAKE;
    return step;
}

/* What every chunk means to this position; root is the root's position. */
RONDO_PURE enum rondo_action rondo_broadcast_action(uint32_t position, uint32_t n, uint32_t root)
{
    uint32_t distance = rondo_ring_behind(position, n, root);

    return distance == 0 ? RONDO_ACTION_ENTER : distance == n - 1 ? RONDO_ACTION_TAKE : RONDO_ACTION_PASS;
}

RONDO_PURE enum rondo_action rondo_reduce_action(uint32_t position, uint32_t n, uint32_t root)
{
    uint32_t distance = rondo_ring_behind(position, n, root);

    return distance == 0 ? RONDO_ACTION_FINISH : distance == 1 ? RONDO_ACTION_ENTER : RONDO_ACTION_FOLD;
}

/* What happens to the partial sum of an item at a rank; last is the last rank that its result passes on to
 * (the owner, the root, or n - 2 when all need it), or n - 1 when the result stays there. */
RONDO_PURE enum rondo_action rondo_chain_partial(uint32_t rank, uint32_t n, uint32_t last)
{
    if (rank == 0)
        return RONDO_ACTION_ENTER;
    if (rank < n - 1)
        return RONDO_ACTION_FOLD;
    return last == n - 1 ? RONDO_ACTION_FINISH : RONDO_ACTION_FINISH_SEND;
}

/* And to its result. */
RONDO_PURE enum rondo_action rondo_chain_result(uint32_t rank, uint32_t n, uint32_t last)
{
    if (rank == n - 1 || last == n - 1 || rank > last)
        return RONDO_ACTION_NONE;
    return rank == last ? RONDO_ACTION_TAKE : RONDO_ACTION_PASS;
}

/*
 * Turns between an item's partial sum and its result; slots: how many steps a sender may always be ahead of
 * its receiver (rondo_protocol_window). The result needs n hops to come round, hence about n; but no more
 * than slots - 1, because then the chain cannot deadlock:
 *
 * Every rank does its jobs in one order: .., partial t, result t - lag, partial t + 1, .. Suppose nobody can
 * go on, and let J be the earliest job that any rank is at. A rank at J may wait for data only if its
 * predecessor is at J too, and so on down to rank 0; but rank 0 makes partials from its own input, and
 * receives results that rank n-1 sent in an earlier job. So some rank at J waits for a free slot. If it is
 * not n-1, its successor frees that slot in the job in which it was sent, earlier than J. If it is n-1 with
 * result t in its hands, J is partial t, and rank 0 frees the slot of result t - slots, or an older one, in
 * turn t - slots + lag at the latest: before turn t. Either way the slot is free: a contradiction.
 */
RONDO_PURE uint32_t rondo_chain_lag(uint32_t n, uint32_t slots)
{
    return n < slots - 1 ? n : slots - 1;
}

#endif
