/* reduce_scatter_perf.c - rank r gets block r of the reduction of all. */
#include "rounds.h"

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    (void)step;
    *what_out = "ncclReduceScatter";
    return ncclReduceScatter(call->send, call->recv, call->count, call->type->id, call->op, call->comm,
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

    perf_data_reduction(&source, round->rank * round->shape.recv_count + first, count, out);
}

int main(int argc, char **argv)
{
    static const struct perf_collective collective = {
        .program = "reduce_scatter_perf",
        .verifies_in_place = true,
        .shape = perf_shape_scattering,
        .algorithm_bytes = perf_bytes_of_all,
        .bus_factor = perf_factor_others,
        .enqueue = enqueue,
        .fill = fill,
        .expect = expect,
    };

    return perf_main(argc, argv, &collective);
}
