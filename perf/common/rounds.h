/* rounds.h - the random streams that programs make their buffers of; see data.h. */
#ifndef PERF_ROUNDS_H
#define PERF_ROUNDS_H

#include "collective.h"
#include "data.h"

/* The round's reduction over all ranks of the communicator. */
static inline struct perf_source perf_round_source(const struct perf_round *round)
{
    return (struct perf_source){
        .type = round->type, .op = round->op, .seed = round->number, .ranks = round->ranks};
}

/* The seed of what one rank alone sends. */
static inline uint32_t perf_rank_seed(const struct perf_round *round, unsigned rank)
{
    return 33 * round->number + rank;
}

/* An all-gather's data: a block of each rank's own, and on every rank those of all, in order of rank. */
void perf_gathering_fill(const struct perf_round *round, size_t first, size_t count, void *out);
void perf_gathering_expect(const struct perf_round *round, size_t first, size_t count, void *out);

#endif
