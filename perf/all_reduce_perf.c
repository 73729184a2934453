/* all_reduce_perf.c - every rank gets the reduction of all. */
#include "rounds.h"

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    (void)step;
    *what_out = "ncclAllReduce";
    return ncclAllReduce(call->send, call->recv, call->count, call->type->id, call->op, call->comm,
                         call->stream);
}

static double bus_factor(unsigned ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static void fill(const struct perf_round *round, size_t first, size_t count, void *out)
{
    struct perf_source source = perf_round_source(round);

    perf_data_contribution(&source, round->rank, first, count, out);
}

static void expect(const struct perf_round *round, size_t first, size_t count, void *out)
{
    struct perf_source source = perf_round_source(round);

    perf_data_reduction(&source, first, count, out);
}

int main(int argc, char **argv)
{
    static const struct perf_collective collective = {
        .program = "all_reduce_perf",
        .verifies_in_place = true,
        .shape = perf_shape_whole,
        .algorithm_bytes = perf_bytes_of_count,
        .bus_factor = bus_factor,
        .enqueue = enqueue,
        .fill = fill,
        .expect = expect,
    };

    return perf_main(argc, argv, &collective);
}
