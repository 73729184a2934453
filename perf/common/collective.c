/* collective.c - shapes, bandwidths and data that several programs share. */
#include "collective.h"
#include "sizes.h"

#include <string.h>

struct perf_shape perf_shape_whole(size_t elements, unsigned element_bytes, unsigned rank, unsigned ranks)
{
    (void)element_bytes, (void)rank, (void)ranks;
    return (struct perf_shape){.send_count = elements, .recv_count = elements, .param_count = elements};
}

struct perf_shape perf_shape_gathering(size_t elements, unsigned element_bytes, unsigned rank, unsigned ranks)
{
    size_t block = perf_size_block(elements, element_bytes, ranks);

    return (struct perf_shape){.send_count = block,
                               .recv_count = block * ranks,
                               .param_count = block,
                               .in_place_send_start = rank * block};
}

struct perf_shape perf_shape_scattering(size_t elements, unsigned element_bytes, unsigned rank,
                                        unsigned ranks)
{
    size_t block = perf_size_block(elements, element_bytes, ranks);

    return (struct perf_shape){.send_count = block * ranks,
                               .recv_count = block,
                               .param_count = block,
                               .in_place_recv_start = rank * block};
}

double perf_bytes_of_count(const struct perf_shape *shape, unsigned element_bytes, unsigned ranks)
{
    (void)ranks;
    return (double)shape->param_count * element_bytes;
}

double perf_bytes_of_all(const struct perf_shape *shape, unsigned element_bytes, unsigned ranks)
{
    return (double)shape->param_count * element_bytes * ranks;
}

double perf_factor_one(unsigned ranks)
{
    (void)ranks;
    return 1;
}

double perf_factor_others(unsigned ranks)
{
    return (double)(ranks - 1) / ranks;
}

void perf_expect_untouched(const struct perf_collective *collective, const struct perf_round *round,
                           size_t first, size_t count, void *out)
{
    size_t start = round->shape.in_place_send_start, end = start + round->shape.send_count;
    size_t from = first > start ? first : start, to = first + count < end ? first + count : end;

    memset(out, 0, count * round->type->bytes);
    if (round->in_place && from < to)
        collective->fill(round, from - start, to - from, (char *)out + (from - first) * round->type->bytes);
}

void perf_expect_blocks(const struct perf_round *round, size_t block, size_t first, size_t count, void *out,
                        void (*part)(const struct perf_round *round, unsigned j, size_t first, size_t count,
                                     void *out))
{
    char *cursor = out;

    while (count > 0) {
        size_t inside = first % block;
        size_t length = count < block - inside ? count : block - inside;

        part(round, (unsigned)(first / block), inside, length, cursor);
        cursor += length * round->type->bytes;
        first += length;
        count -= length;
    }
}
