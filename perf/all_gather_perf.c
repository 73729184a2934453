/* all_gather_perf.c - every rank gets the blocks of all, in order of rank. */
#include "rounds.h"

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    (void)step;
    *what_out = "ncclAllGather";
    return ncclAllGather(call->send, call->recv, call->count, call->type->id, call->comm, call->stream);
}

int main(int argc, char **argv)
{
    static const struct perf_collective collective = {
        .program = "all_gather_perf",
        .op_text = "none",
        .verifies_in_place = true,
        .shape = perf_shape_gathering,
        .algorithm_bytes = perf_bytes_of_all,
        .bus_factor = perf_factor_others,
        .enqueue = enqueue,
        .fill = perf_gathering_fill,
        .expect = perf_gathering_expect,
    };

    return perf_main(argc, argv, &collective);
}
