/*
 * data_real.c - contributions of real numbers to prod and avg.
 *
 * They are computed in double, exactly, and brought into the element's format at the end.
 */
#include "data_internal.h"
#include "number.h"

#include <math.h>

enum { PURPOSE_ELEMENT = 0x30000, PURPOSE_FACTOR = 0x3000000 /* + rank */ };

/* How many factors may be other than +-1: each doubles or halves, and the partial products stay normal. */
static unsigned exponent_budget(const struct perf_type *type)
{
    unsigned bias = (1U << (type->exponent_bits - 1)) - 1;

    return bias > 100 ? 100 : bias - 2;
}

static uint32_t position_of(const struct perf_source *source, unsigned rank, uint64_t hash)
{
    return perf_position(rank, (uint32_t)((hash & 0xffffffffU) * source->ranks >> 32), source->ranks);
}

static double factor(const struct perf_source *source, unsigned rank, uint64_t index)
{
    uint64_t hash = perf_hash64(source->seed, PURPOSE_FACTOR + rank, index);
    uint32_t position = position_of(source, rank, perf_hash64(source->seed, PURPOSE_ELEMENT, index));
    double sign = hash >> 63 ? -1 : 1;

    if (position == 0) {
        unsigned bits = source->type->mantissa_bits;

        return sign * (1 + ldexp((double)(hash & ((UINT64_C(1) << bits) - 1)), -(int)bits));
    }
    if (position < exponent_budget(source->type)) {
        static const double powers[4] = {1, 2, 0.5, 1};

        return sign * powers[hash >> 60 & 3];
    }
    return sign;
}

/* The sum to be averaged is total; the rank at position 0 has part of it, the one at position 1 the rest. */
static void average_parts(const struct perf_source *source, uint64_t hash, double *total_out,
                          double *part_out)
{
    unsigned bits = source->type->mantissa_bits + 1 < 20 ? source->type->mantissa_bits + 1 : 20;
    uint64_t mixed = perf_mix64(hash);
    uint64_t total = 1 + (mixed & ((UINT64_C(1) << bits) - 1));
    uint64_t part = source->ranks == 1 ? total : (mixed >> 32) * (total + 1) >> 32;
    double sign = hash >> 63 ? -1 : 1;

    *total_out = sign * (double)total;
    *part_out = part ? sign * (double)part : 0; /* never -0 */
}

static double average_term(const struct perf_source *source, unsigned rank, uint64_t index)
{
    uint64_t hash = perf_hash64(source->seed, PURPOSE_ELEMENT, index);
    uint32_t position = position_of(source, rank, hash);
    double total, part;

    average_parts(source, hash, &total, &part);
    if (position == 0)
        return part;
    return position == 1 && total != part ? total - part : 0;
}

static double reduction(const struct perf_source *source, uint64_t index)
{
    double result = 1, unused;

    if (source->op == PERF_AVG) {
        average_parts(source, perf_hash64(source->seed, PURPOSE_ELEMENT, index), &result, &unused);
        return result / source->ranks;
    }
    for (unsigned rank = 0; rank < source->ranks; rank++)
        result *= factor(source, rank, index);
    return result;
}

void perf_block_real(const struct perf_source *source, int rank, uint64_t first, unsigned count, void *out)
{
    uint64_t words[PERF_BLOCK];

    for (unsigned i = 0; i < count; i++) {
        double value;

        if (rank == PERF_ALL_RANKS)
            value = reduction(source, first + i);
        else if (source->op == PERF_AVG)
            value = average_term(source, (unsigned)rank, first + i);
        else
            value = factor(source, (unsigned)rank, first + i);
        words[i] = perf_number_encode(source->type, value);
    }
    perf_block_store(source->type->bytes, words, count, out);
}
