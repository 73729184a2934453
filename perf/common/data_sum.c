/*
 * data_sum.c - contributions of real numbers to sum and mulsum: the default of every run, so the one
 * that is fast.
 *
 * For each element two targets are drawn, each at most 2^p. The ranks, rotated by a random turn, are dealt
 * alternately to a positive and a negative chain. A chain of L ranks cuts its target at L-1 places,
 *
 *     0 = cut(0) <= cut(1) <= ... <= cut(L) = target,
 *
 * where cut(j) is a random point in the j-th of L equal stretches,
 * and rank j of the chain contributes cut(j+1) - cut(j). The result is the difference of the targets; no
 * other rank's share is needed for either. One random power of two scales all of it, one random sign flips
 * all of it.
 */
#include "data_internal.h"
#include "number.h"

#include <stdbool.h>
#include <string.h>

enum { PURPOSE_SUM = 0x40000, PURPOSE_SUM_WIDE = 0x50000 };

/* What does not change from element to element. [0] is the positive chain, [1] the negative one. */
struct plan {
    unsigned ranks;
    uint64_t target_span;   /* 2^p + 1 */
    uint32_t exponent_bias; /* of the lowest scale, as float or double has it */
    uint32_t exponents;     /* how many scales there are */
    uint32_t length[2];
    uint32_t stretch[2]; /* 2^32 / length, at most 2^32 - 1 */
};

/* What is drawn for one element. */
struct draw {
    uint64_t target[2];
    uint32_t hash;
};

static struct plan make_plan(const struct perf_source *source)
{
    int bias = (1 << (source->type->exponent_bits - 1)) - 1;
    int precision = (int)source->type->mantissa_bits + 1;
    int lowest = bias > 100 ? -60 : 1 - bias;
    int highest = bias > 100 ? 60 : bias - precision + (source->type->has_infinity ? 0 : 1);
    struct plan plan = {
        .ranks = source->ranks,
        .target_span = (UINT64_C(1) << precision) + 1,
        .exponent_bias = (uint32_t)(lowest + (source->type->bytes == 8 ? 1023 : 127)),
        .exponents = (uint32_t)(highest - lowest + 1),
        .length = {(source->ranks + 1) / 2, source->ranks / 2},
    };

    for (int i = 0; i < 2; i++)
        plan.stretch[i] = plan.length[i] > 1 ? (uint32_t)((UINT64_C(1) << 32) / plan.length[i]) : UINT32_MAX;
    return plan;
}

/* Targets of up to 2^24: all products below are of 32 bits by 32, so that these loops become vector code. */
static inline struct draw draw_narrow(const struct plan *plan, uint32_t hash)
{
    uint32_t a = (hash ^ hash >> 15) * 0x2c1b3c6dU, b = (hash ^ hash >> 13) * 0x297a2d39U;
    uint32_t span = (uint32_t)plan->target_span;

    return (struct draw){
        .target = {(uint64_t)a * span >> 32, plan->length[1] ? (uint64_t)b * span >> 32 : 0},
        .hash = hash,
    };
}

/* Targets of up to 2^53. */
static inline struct draw draw_wide(const struct plan *plan, uint32_t seed, uint64_t index)
{
    uint64_t a = perf_hash64(seed, PURPOSE_SUM_WIDE + 1, index),
             b = perf_hash64(seed, PURPOSE_SUM_WIDE + 2, index);

    return (struct draw){
        .target = {(uint64_t)((unsigned __int128)a * plan->target_span >> 64),
                   plan->length[1] ? (uint64_t)((unsigned __int128)b * plan->target_span >> 64) : 0},
        .hash = (uint32_t)perf_hash64(seed, PURPOSE_SUM_WIDE, index),
    };
}

/* The exponent field of the element's scale. */
static inline uint32_t scale_field(const struct plan *plan, uint32_t hash)
{
    return plan->exponent_bias + ((hash >> 16 & 0xff) * plan->exponents >> 8);
}

/* Where a chain is cut before its j-th rank, as a fraction of 2^32 of its target. For 0 < j < length. */
static inline uint32_t cut_place(uint32_t hash, uint32_t j, uint32_t stretch)
{
    uint32_t random = (hash + j * 0x9e3779b9U) * 0x85ebca6bU;

    return j * stretch + (uint32_t)((uint64_t)(random ^ random >> 16) * stretch >> 32);
}

/* yes if mask is all ones, no if it is 0: the compiler would make branches of ?:, and no vector code of
 * those. */
static inline uint32_t choose(uint32_t mask, uint32_t yes, uint32_t no)
{
    return no ^ ((no ^ yes) & mask);
}

static inline uint32_t cut_narrow(uint32_t target, uint32_t hash, uint32_t j, uint32_t length,
                                  uint32_t stretch)
{
    uint32_t inside = (uint32_t)((uint64_t)target * cut_place(hash, j, stretch) >> 32);

    return choose(-(uint32_t)(j == length), target, inside) & -(uint32_t)(j != 0);
}

static inline uint64_t cut_wide(uint64_t target, uint32_t hash, uint32_t j, uint32_t length, uint32_t stretch)
{
    uint64_t inside = (uint64_t)((unsigned __int128)target * cut_place(hash, j, stretch) >> 32);

    return j == 0 ? 0 : j == length ? target : inside;
}

/* The integer that a rank contributes, signed; the library multiplies it by scalar, 1 or 2. Divided by that
 * it is multiplied back, so the bound on the sums holds. */
static inline int32_t share_narrow(const struct plan *plan, const struct draw *draw, unsigned rank,
                                   unsigned scalar)
{
    uint32_t place = rank + ((draw->hash & 0xffff) * plan->ranks >> 16), hash = draw->hash;
    uint32_t position = place - (plan->ranks & -(uint32_t)(place >= plan->ranks)), j = position >> 1;
    uint32_t negative = -(position & 1), sign = negative ^ -(hash >> 31);
    uint32_t target = choose(negative, (uint32_t)draw->target[1], (uint32_t)draw->target[0]);
    uint32_t length = choose(negative, plan->length[1], plan->length[0]);
    uint32_t stretch = choose(negative, plan->stretch[1], plan->stretch[0]);
    uint32_t part =
        cut_narrow(target, hash, j + 1, length, stretch) - cut_narrow(target, hash, j, length, stretch);

    return (int32_t)((part >> (scalar - 1) ^ sign) - sign);
}

static inline int64_t share_wide(const struct plan *plan, const struct draw *draw, unsigned rank,
                                 unsigned scalar)
{
    uint32_t position = perf_position(rank, (draw->hash & 0xffff) * plan->ranks >> 16, plan->ranks);
    uint32_t chain = position & 1, j = position >> 1, hash = draw->hash;
    uint64_t target = draw->target[chain];
    int64_t part = (int64_t)(cut_wide(target, hash, j + 1, plan->length[chain], plan->stretch[chain]) -
                             cut_wide(target, hash, j, plan->length[chain], plan->stretch[chain]));

    part >>= scalar - 1;
    return chain ^ hash >> 31 ? -part : part;
}

/* The integer of the result. */
static inline int64_t total(const struct plan *plan, const struct draw *draw, bool is_mulsum, bool wide)
{
    int64_t sum = (int64_t)draw->target[0] - (int64_t)draw->target[1];

    if (!is_mulsum)
        return draw->hash >> 31 ? -sum : sum;
    sum = 0;
    for (unsigned rank = 0; rank < plan->ranks; rank++)
        sum += (wide ? share_wide(plan, draw, rank, perf_mulsum_scalar(rank))
                     : share_narrow(plan, draw, rank, perf_mulsum_scalar(rank))) *
               perf_mulsum_scalar(rank);
    return sum;
}

static inline uint32_t scaled_bits(const struct plan *plan, const struct draw *draw, int32_t integer)
{
    uint32_t scale_bits = scale_field(plan, draw->hash) << 23, bits;
    float value = (float)integer, scale;

    memcpy(&scale, &scale_bits, 4);
    value *= scale; /* exact: 24 bits times a power of two */
    memcpy(&bits, &value, 4);
    return bits;
}

static inline __attribute__((always_inline)) void contribute_narrow(const struct plan *plan, uint32_t key,
                                                                    unsigned rank, unsigned scalar,
                                                                    unsigned count, uint32_t *bits)
{
    for (unsigned i = 0; i < count; i++) {
        struct draw draw = draw_narrow(plan, perf_mix32(key + i * 0x9e3779b1U));

        bits[i] = scaled_bits(plan, &draw, share_narrow(plan, &draw, rank, scalar));
    }
}

static inline __attribute__((always_inline)) void
reduce_narrow(const struct plan *plan, uint32_t key, bool is_mulsum, unsigned count, uint32_t *bits)
{
    for (unsigned i = 0; i < count; i++) {
        struct draw draw = draw_narrow(plan, perf_mix32(key + i * 0x9e3779b1U));

        bits[i] = scaled_bits(plan, &draw, (int32_t)total(plan, &draw, is_mulsum, false));
    }
}

/* One block, as float bits. */
static inline __attribute__((always_inline)) void sum_any_narrow(const struct plan *plan, uint32_t key,
                                                                 int rank, bool is_mulsum, unsigned count,
                                                                 uint32_t *bits)
{
    if (rank == PERF_ALL_RANKS && is_mulsum)
        reduce_narrow(plan, key, true, count, bits);
    else if (rank == PERF_ALL_RANKS)
        reduce_narrow(plan, key, false, count, bits);
    else if (is_mulsum)
        contribute_narrow(plan, key, (unsigned)rank, perf_mulsum_scalar((unsigned)rank), count, bits);
    else
        contribute_narrow(plan, key, (unsigned)rank, 1, count, bits);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void sum_narrow_avx2(const struct plan *plan, uint32_t key, int rank,
                                                            bool is_mulsum, unsigned count, uint32_t *bits)
{
    sum_any_narrow(plan, key, rank, is_mulsum, count, bits);
}
#endif

static void sum_narrow_here(const struct plan *plan, uint32_t key, int rank, bool is_mulsum, unsigned count,
                            uint32_t *bits)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        sum_narrow_avx2(plan, key, rank, is_mulsum, count, bits);
        return;
    }
#endif
    sum_any_narrow(plan, key, rank, is_mulsum, count, bits);
}

static void sum_wide(const struct perf_source *source, int rank, uint64_t first, unsigned count, void *out)
{
    struct plan plan = make_plan(source);
    bool is_mulsum = source->op == PERF_MULSUM;

    for (unsigned i = 0; i < count; i++) {
        struct draw draw = draw_wide(&plan, source->seed, first + i);
        uint64_t scale_bits = (uint64_t)scale_field(&plan, draw.hash) << 52;
        unsigned scalar = is_mulsum ? perf_mulsum_scalar((unsigned)rank) : 1;
        double value = (double)(rank == PERF_ALL_RANKS ? total(&plan, &draw, is_mulsum, true)
                                                       : share_wide(&plan, &draw, (unsigned)rank, scalar));
        double scale;

        memcpy(&scale, &scale_bits, 8);
        value *= scale;
        memcpy((char *)out + 8 * (size_t)i, &value, 8);
    }
}

void perf_block_real_sum(const struct perf_source *source, int rank, uint64_t first, unsigned count,
                         void *out)
{
    const struct perf_type *type = source->type;
    const struct plan plan = make_plan(source);
    uint32_t key = perf_key32(source->seed, PURPOSE_SUM, first) + (uint32_t)first * 0x9e3779b1U;
    uint32_t bits[PERF_BLOCK];

    if (type->bytes == 8) {
        sum_wide(source, rank, first, count, out);
        return;
    }
    sum_narrow_here(&plan, key, rank, source->op == PERF_MULSUM, count, bits);
    if (type->bytes == 4) {
        memcpy(out, bits, (size_t)count * 4);
        return;
    }
    for (unsigned i = 0; i < count; i++) {
        uint32_t word = perf_number_narrow(bits[i], type->exponent_bits, type->mantissa_bits);

        memcpy((char *)out + (size_t)i * type->bytes, &word, type->bytes); /* its low bytes */
    }
}
