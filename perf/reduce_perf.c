/* reduce_perf.c - the root gets the reduction of all; nobody else's receive buffer changes. */
#include "rounds.h"

static const struct perf_collective collective;

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    (void)step;
    *what_out = "ncclReduce";
    return ncclReduce(call->send, call->recv, call->count, call->type->id, call->op, call->root, call->comm,
                      call->stream);
}

static void fill(const struct perf_round *round, size_t first, size_t count, void *out)
{
    struct perf_source source = perf_round_source(round);

    perf_data_contribution(&source, round->rank, first, count, out);
}

static void expect(const struct perf_round *round, size_t first, size_t count, void *out)
{
    struct perf_source source = perf_round_source(round);

    if (round->rank == (unsigned)round->root)
        perf_data_reduction(&source, first, count, out);
    else
        perf_expect_untouched(&collective, round, first, count, out);
}

static const struct perf_collective collective = {
    .program = "reduce_perf",
    .is_rooted = true,
    .verifies_in_place = true,
    .shape = perf_shape_whole,
    .algorithm_bytes = perf_bytes_of_count,
    .bus_factor = perf_factor_one,
    .enqueue = enqueue,
    .fill = fill,
    .expect = expect,
};

int main(int argc, char **argv)
{
    return perf_main(argc, argv, &collective);
}
