/* data.c - cut a stream into blocks and choose who fills them. */
#include "data_internal.h"

#include <string.h>

/* How many of count elements from first make one block. */
static unsigned block_length(uint64_t first, size_t count)
{
    uint64_t to_boundary = (UINT64_C(1) << 32) - (first & 0xffffffffU);
    uint64_t length = count < PERF_BLOCK ? count : PERF_BLOCK;

    return (unsigned)(length < to_boundary ? length : to_boundary);
}

void perf_data_copy(const struct perf_type *type, uint32_t seed, uint64_t first, size_t count, void *out)
{
    char *cursor = out;

    while (count > 0) {
        unsigned length = block_length(first, count);

        perf_block_copy(type, seed, first, length, cursor);
        cursor += (size_t)length * type->bytes;
        first += length;
        count -= length;
    }
}

static void fill_reduction(const struct perf_source *source, int rank, uint64_t first, size_t count,
                           void *out)
{
    char *cursor = out;

    while (count > 0) {
        unsigned length = block_length(first, count);

        if (source->op == PERF_MIN || source->op == PERF_MAX)
            perf_block_extreme(source, rank, first, length, cursor);
        else if (source->type->kind != PERF_REAL)
            perf_block_integer(source, rank, first, length, cursor);
        else if (source->op == PERF_SUM || source->op == PERF_MULSUM)
            perf_block_real_sum(source, rank, first, length, cursor);
        else
            perf_block_real(source, rank, first, length, cursor);
        cursor += (size_t)length * source->type->bytes;
        first += length;
        count -= length;
    }
}

void perf_data_contribution(const struct perf_source *source, unsigned rank, uint64_t first, size_t count,
                            void *out)
{
    fill_reduction(source, (int)rank, first, count, out);
}

void perf_data_reduction(const struct perf_source *source, uint64_t first, size_t count, void *out)
{
    fill_reduction(source, PERF_ALL_RANKS, first, count, out);
}

unsigned perf_data_tolerance(const struct perf_source *source)
{
    return source->op == PERF_AVG && source->type->kind == PERF_REAL ? 2 : 0;
}

void perf_block_store(unsigned bytes, const uint64_t *words, unsigned count, void *out)
{
    switch (bytes) {
    case 1:
        for (unsigned i = 0; i < count; i++)
            ((uint8_t *)out)[i] = (uint8_t)words[i];
        break;
    case 2:
        for (unsigned i = 0; i < count; i++) {
            uint16_t word = (uint16_t)words[i];
            memcpy((char *)out + 2 * (size_t)i, &word, 2); /* buffers may start at any byte */
        }
        break;
    case 4:
        for (unsigned i = 0; i < count; i++) {
            uint32_t word = (uint32_t)words[i];
            memcpy((char *)out + 4 * (size_t)i, &word, 4);
        }
        break;
    default:
        memcpy(out, words, (size_t)count * 8);
    }
}
