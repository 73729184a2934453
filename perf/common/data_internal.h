/*
 * data_internal.h - between data.c, which cuts streams into blocks, and the files that fill a block.
 *
 * A block has at most PERF_BLOCK elements and does not cross a multiple of 2^32, so that its generator needs
 * only the low word of the index in its loop.
 */
#ifndef PERF_DATA_INTERNAL_H
#define PERF_DATA_INTERNAL_H

#include "data.h"

#define PERF_BLOCK 2048
#define PERF_ALL_RANKS (-1) /* in place of a rank: the reduction of all */

/* Fill one block with values (integers as raw words of 64 bits, of which the low ones count). */
void perf_block_copy(const struct perf_type *type, uint32_t seed, uint64_t first, unsigned count, void *out);
void perf_block_extreme(const struct perf_source *source, int rank, uint64_t first, unsigned count,
                        void *out);
void perf_block_integer(const struct perf_source *source, int rank, uint64_t first, unsigned count,
                        void *out);
void perf_block_real(const struct perf_source *source, int rank, uint64_t first, unsigned count, void *out);
void perf_block_real_sum(const struct perf_source *source, int rank, uint64_t first, unsigned count,
                         void *out);

/* Store the low bytes of each word as elements of the given size. */
void perf_block_store(unsigned bytes, const uint64_t *words, unsigned count, void *out);

static inline uint32_t perf_mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

static inline uint64_t perf_mix64(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0x9fb21c651e98df25);
    x ^= x >> 29;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

/* A key for (seed, purpose, high word of the index); an element's hash is a mix of key + low word. */
static inline uint32_t perf_key32(uint32_t seed, uint32_t purpose, uint64_t first)
{
    uint64_t x = perf_mix64(((uint64_t)seed << 32 | purpose) + (first >> 32) * UINT64_C(0x9e3779b97f4a7c15));

    return (uint32_t)(x >> 16);
}

static inline uint64_t perf_hash64(uint32_t seed, uint32_t purpose, uint64_t index)
{
    return perf_mix64(perf_mix64(((uint64_t)seed << 32 | purpose) + UINT64_C(0x51ed270b9f3c5a77)) +
                      index * UINT64_C(0x9e3779b97f4a7c15));
}

/* Where a rank stands in the pseudo-random order of the ranks for one element: a rotation by turn. */
static inline uint32_t perf_position(unsigned rank, uint32_t turn, unsigned ranks)
{
    uint32_t position = rank + turn;

    return position >= ranks ? position - ranks : position;
}

#endif
