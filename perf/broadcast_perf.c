/* broadcast_perf.c - every rank gets what the root has. */
#include "rounds.h"

#include <string.h>

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    (void)step;
    *what_out = "ncclBroadcast";
    return ncclBroadcast(call->send, call->recv, call->count, call->type->id, call->root, call->comm,
                         call->stream);
}

static void expect(const struct perf_round *round, size_t first, size_t count, void *out)
{
    perf_data_copy(round->type, round->number, first, count, out);
}

static void fill(const struct perf_round *round, size_t first, size_t count, void *out)
{
    if (round->rank == (unsigned)round->root)
        perf_data_copy(round->type, round->number, first, count, out);
    else
        memset(out, 0, count * round->type->bytes);
}

int main(int argc, char **argv)
{
    static const struct perf_collective collective = {
        .program = "broadcast_perf",
        .op_text = "none",
        .is_rooted = true,
        .verifies_in_place = true,
        .shape = perf_shape_whole,
        .algorithm_bytes = perf_bytes_of_count,
        .bus_factor = perf_factor_one,
        .enqueue = enqueue,
        .fill = fill,
        .expect = expect,
    };

    return perf_main(argc, argv, &collective);
}
