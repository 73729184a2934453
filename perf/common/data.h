/*
 * data.h - what the buffers hold before an operation, and what they must hold after it.
 *
 * Every value is a pure function of (seed, element, rank, ranks, operation, type): each rank computes its own
 * contribution and the expected result without talking to anyone. Contributions are made so that the result
 * does not depend on the order or precision in which a library combines them:
 *
 *   sum, mulsum  integers times one power of two; the positive ones together, and the negative ones together,
 *                are at most 2^p (p: bits of precision), so that every partial sum, in any order, is exact.
 *                Zeros are +0.
 *   prod         one rank has a random mantissa, the others are +-2^-1, +-1 or +-2, few enough to stay in
 *                range
 *   avg          two ranks contribute small integers of one sign, the others zero: 2 units cover either way
 *                of dividing
 *   min, max     any finite numbers from the middle of the range
 *   integers     full width and wrapping; for avg small enough that the sum fits
 */
#ifndef PERF_DATA_H
#define PERF_DATA_H

#include "elements.h"

#include <stddef.h>
#include <stdint.h>

struct perf_source {
    const struct perf_type *type;
    enum perf_op op;
    uint32_t seed;
    unsigned ranks;
};

/* Elements [first, first + count) of the stream of finite random values of a seed. */
void perf_data_copy(const struct perf_type *type, uint32_t seed, uint64_t first, size_t count, void *out);

/* What a rank contributes to a reduction, and what all contributions reduce to. */
void perf_data_contribution(const struct perf_source *source, unsigned rank, uint64_t first, size_t count,
                            void *out);
void perf_data_reduction(const struct perf_source *source, uint64_t first, size_t count, void *out);

/* By how many units a right result may differ from perf_data_reduction's: 2 for averages of real types, else
 * 0. */
unsigned perf_data_tolerance(const struct perf_source *source);

#endif
