/*
 * data_integer.c - contributions of integers to sum, prod, avg and mulsum.
 *
 * A sum telescopes: the rank at position k contributes g(k+1) - g(k), where g(0) is 0, g(n) is the result and
 * the others are random words. So each contribution is uniform over the full width, wraps, and the result
 * costs one word.
 */
#include "data_internal.h"

#include <stdbool.h>

enum {
    PURPOSE_TURN = 0x20000,
    PURPOSE_STEP = 0x1000000, /* + position */
    PURPOSE_OWN = 0x2000000,  /* + rank */
};

static uint64_t low_bits(unsigned bytes)
{
    return bytes == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * bytes)) - 1;
}

static uint64_t step_value(const struct perf_source *source, uint32_t position, uint64_t index)
{
    return position == 0 ? 0 : perf_hash64(source->seed, PURPOSE_STEP + position, index);
}

static uint32_t position_of(const struct perf_source *source, unsigned rank, uint64_t index)
{
    uint32_t hash = (uint32_t)perf_hash64(source->seed, PURPOSE_TURN, index);

    return perf_position(rank, (uint32_t)((uint64_t)hash * source->ranks >> 32), source->ranks);
}

/* A factor of a product: odd, so that products never collapse to 0, but for one that may be even. */
static uint64_t factor(const struct perf_source *source, unsigned rank, uint64_t index)
{
    uint64_t value = perf_hash64(source->seed, PURPOSE_OWN + rank, index);

    if (position_of(source, rank, index) != 0 || (value & low_bits(source->type->bytes)) == 0)
        value |= 1;
    return value;
}

/* A term of an average: ranks of them add up without wrapping. */
static uint64_t average_term(const struct perf_source *source, unsigned rank, uint64_t index)
{
    uint64_t value = perf_hash64(source->seed, PURPOSE_OWN + rank, index);
    bool is_signed = source->type->kind == PERF_SIGNED;
    uint64_t limit = (low_bits(source->type->bytes) >> is_signed) / source->ranks;
    unsigned __int128 span = is_signed ? 2 * (unsigned __int128)limit + 1 : (unsigned __int128)limit + 1;

    value = (uint64_t)(value * span >> 64);
    return is_signed ? value - limit : value;
}

static uint64_t contribution(const struct perf_source *source, unsigned rank, uint64_t index)
{
    uint32_t position;

    switch (source->op) {
    case PERF_SUM:
        position = position_of(source, rank, index);
        return step_value(source, position + 1, index) - step_value(source, position, index);
    case PERF_PROD:
        return factor(source, rank, index);
    case PERF_AVG:
        return average_term(source, rank, index);
    default: /* mulsum: the library multiplies */
        return perf_hash64(source->seed, PURPOSE_OWN + rank, index);
    }
}

static uint64_t reduction(const struct perf_source *source, uint64_t index)
{
    uint64_t result = source->op == PERF_PROD ? 1 : 0;

    if (source->op == PERF_SUM)
        return step_value(source, source->ranks, index);
    for (unsigned rank = 0; rank < source->ranks; rank++) {
        uint64_t term = contribution(source, rank, index);

        if (source->op == PERF_PROD)
            result *= term;
        else if (source->op == PERF_MULSUM)
            result += term * perf_mulsum_scalar(rank);
        else
            result += term;
    }
    if (source->op == PERF_AVG && source->type->kind == PERF_SIGNED)
        return (uint64_t)((int64_t)result / (int64_t)source->ranks); /* towards zero */
    if (source->op == PERF_AVG)
        return result / source->ranks;
    return result;
}

void perf_block_integer(const struct perf_source *source, int rank, uint64_t first, unsigned count, void *out)
{
    uint64_t words[PERF_BLOCK];

    for (unsigned i = 0; i < count; i++)
        words[i] = rank == PERF_ALL_RANKS ? reduction(source, first + i)
                                          : contribution(source, (unsigned)rank, first + i);
    perf_block_store(source->type->bytes, words, count, out);
}
