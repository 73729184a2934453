/* rounds.c - buffers that several programs fill alike. */
#include "rounds.h"

void perf_gathering_fill(const struct perf_round *round, size_t first, size_t count, void *out)
{
    perf_data_copy(round->type, perf_rank_seed(round, round->rank), first, count, out);
}

static void gather_block(const struct perf_round *round, unsigned j, size_t first, size_t count, void *out)
{
    perf_data_copy(round->type, perf_rank_seed(round, j), first, count, out);
}

void perf_gathering_expect(const struct perf_round *round, size_t first, size_t count, void *out)
{
    perf_expect_blocks(round, round->shape.send_count, first, count, out, gather_block);
}
