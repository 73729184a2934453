/* alltoall_perf.c - rank r gets block r of every rank, in order of rank. */
#include "rounds.h"
#include "sizes.h"

static struct perf_shape shape(size_t elements, unsigned element_bytes, unsigned rank, unsigned ranks)
{
    size_t block = perf_size_block(elements, element_bytes, ranks);

    (void)rank;
    return (struct perf_shape){
        .send_count = block * ranks, .recv_count = block * ranks, .param_count = block};
}

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    (void)step;
    *what_out = "ncclAlltoAll";
    return ncclAlltoAll(call->send, call->recv, call->count, call->type->id, call->comm, call->stream);
}

static void fill(const struct perf_round *round, size_t first, size_t count, void *out)
{
    perf_data_copy(round->type, perf_rank_seed(round, round->rank), first, count, out);
}

static void block_of(const struct perf_round *round, unsigned j, size_t first, size_t count, void *out)
{
    perf_data_copy(round->type, perf_rank_seed(round, j), round->rank * round->shape.param_count + first,
                   count, out);
}

static void expect(const struct perf_round *round, size_t first, size_t count, void *out)
{
    perf_expect_blocks(round, round->shape.param_count, first, count, out, block_of);
}

int main(int argc, char **argv)
{
    static const struct perf_collective collective = {
        .program = "alltoall_perf",
        .op_text = "none",
        .shape = shape,
        .algorithm_bytes = perf_bytes_of_all,
        .bus_factor = perf_factor_others,
        .enqueue = enqueue,
        .fill = fill,
        .expect = expect,
    };

    return perf_main(argc, argv, &collective);
}
