/*
 * data_raw.c - random finite values as bits, for copies and for min and max.
 *
 * A real value is put together from a sign, an exponent of the middle half of the range, and a mantissa.
 * Order, for min and max, is decided on the bits too: flipped suitably, they compare like the values.
 */
#include "data_internal.h"

enum { PURPOSE_COPY = 1, PURPOSE_EXTREME = 0x100 /* + rank */ };

/* The stream of one (seed, purpose), 64 random bits an element, made into bits of a finite value. */
static void random_values(const struct perf_type *type, uint32_t seed, uint32_t purpose, uint64_t first,
                          unsigned count, uint64_t *words)
{
    unsigned mantissa = type->mantissa_bits;
    unsigned quarter = type->kind == PERF_REAL ? type->exponent_bits - 2 : 0;

    if (type->bytes == 8) {
        for (unsigned i = 0; i < count; i++)
            words[i] = perf_hash64(seed, purpose, first + i);
    } else {
        uint32_t key = perf_key32(seed, purpose, first) + (uint32_t)first * 0x9e3779b1U;

        for (unsigned i = 0; i < count; i++)
            words[i] = perf_mix32(key + i * 0x9e3779b1U);
    }
    if (type->kind != PERF_REAL)
        return;
    for (unsigned i = 0; i < count; i++) {
        uint64_t sign = words[i] >> (8 * type->bytes - 1) & 1;
        uint64_t fraction = words[i] & ((UINT64_C(1) << mantissa) - 1);
        /* quarter .. 3 * quarter - 1, from the bits above the mantissa */
        uint64_t exponent =
            (UINT64_C(1) << quarter) + (words[i] >> mantissa & ((UINT64_C(2) << quarter) - 1));

        words[i] = sign << (8 * type->bytes - 1) | exponent << mantissa | fraction;
    }
}

void perf_block_copy(const struct perf_type *type, uint32_t seed, uint64_t first, unsigned count, void *out)
{
    uint64_t words[PERF_BLOCK];

    random_values(type, seed, PURPOSE_COPY, first, count, words);
    perf_block_store(type->bytes, words, count, out);
}

/* A number that orders like the value whose bits it is made of. */
static uint64_t order_key(const struct perf_type *type, uint64_t bits)
{
    uint64_t sign = UINT64_C(1) << (8 * type->bytes - 1);
    uint64_t all = sign | (sign - 1);

    bits &= all;
    if (type->kind == PERF_UNSIGNED)
        return bits;
    if (type->kind == PERF_REAL && bits & sign)
        return bits ^ all; /* a larger magnitude is a smaller number */
    return bits ^ sign;
}

void perf_block_extreme(const struct perf_source *source, int rank, uint64_t first, unsigned count, void *out)
{
    uint64_t best[PERF_BLOCK], other[PERF_BLOCK];
    uint32_t own = PURPOSE_EXTREME + (rank == PERF_ALL_RANKS ? 0 : (uint32_t)rank);

    random_values(source->type, source->seed, own, first, count, best);
    for (unsigned peer = 1; rank == PERF_ALL_RANKS && peer < source->ranks; peer++) {
        random_values(source->type, source->seed, PURPOSE_EXTREME + peer, first, count, other);
        for (unsigned i = 0; i < count; i++) {
            uint64_t a = order_key(source->type, best[i]), b = order_key(source->type, other[i]);

            if (source->op == PERF_MIN ? b < a : b > a)
                best[i] = other[i];
        }
    }
    perf_block_store(source->type->bytes, best, count, out);
}
