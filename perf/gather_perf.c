/* gather_perf.c - the root gets the blocks of all, in order of rank; nobody else's receive buffer changes. */
#include "rounds.h"

static const struct perf_collective collective;

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    (void)step;
    *what_out = "ncclGather";
    return ncclGather(call->send, call->recv, call->count, call->type->id, call->root, call->comm,
                      call->stream);
}

/* Together the blocks are one stream. */
static void fill(const struct perf_round *round, size_t first, size_t count, void *out)
{
    perf_data_copy(round->type, round->number, round->rank * round->shape.send_count + first, count, out);
}

static void expect(const struct perf_round *round, size_t first, size_t count, void *out)
{
    if (round->rank == (unsigned)round->root)
        perf_data_copy(round->type, round->number, first, count, out);
    else
        perf_expect_untouched(&collective, round, first, count, out);
}

static const struct perf_collective collective = {
    .program = "gather_perf",
    .op_text = "none",
    .is_rooted = true,
    .verifies_in_place = true,
    .shape = perf_shape_gathering,
    .algorithm_bytes = perf_bytes_of_all,
    .bus_factor = perf_factor_others,
    .enqueue = enqueue,
    .fill = fill,
    .expect = expect,
};

int main(int argc, char **argv)
{
    return perf_main(argc, argv, &collective);
}
