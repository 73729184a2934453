/* reserve.h - descriptors put aside for connections that are to come. */
#ifndef RONDO_BOOTSTRAP_RESERVE_H
#define RONDO_BOOTSTRAP_RESERVE_H

#include "root.h"

#include "nccl.h"

/* Of the connection to the root, the gate, and a link to and one from each rank that a rank talks to
 * first. */
#define RONDO_RESERVE_MOST (2 + 2 * RONDO_ROUNDS_MOST)

/* Placeholders: ranks of one process that take theirs first and use them later see in time that they do
 * not all fit. All zero: empty. Not thread-safe. */
struct rondo_reserve {
    int count;
    int fds[RONDO_RESERVE_MOST];
};

/* Fill an empty reserve with `count` descriptors, RONDO_RESERVE_MOST at most. ncclSystemError, with how
 * many there were and what limits them: it stays empty. */
ncclResult_t rondo_reserve_take(struct rondo_reserve *reserve, int count);

/* Give back `count`, or all when it has fewer, for use at once. */
void rondo_reserve_release(struct rondo_reserve *reserve, int count);

#endif
