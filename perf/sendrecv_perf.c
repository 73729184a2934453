/* sendrecv_perf.c - every rank sends to the next and receives from the one before. */
#include "rounds.h"

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    int next = (int)((call->rank + 1) % call->ranks),
        before = (int)((call->rank + call->ranks - 1) % call->ranks);
    ncclResult_t result, end;

    (void)step;
    *what_out = "ncclGroupStart";
    result = ncclGroupStart();
    if (result != ncclSuccess)
        return result;
    *what_out = "ncclSend";
    result = ncclSend(call->send, call->count, call->type->id, next, call->comm, call->stream);
    if (result == ncclSuccess) {
        *what_out = "ncclRecv";
        result = ncclRecv(call->recv, call->count, call->type->id, before, call->comm, call->stream);
    }
    end = ncclGroupEnd();
    return result == ncclSuccess ? end : result;
}

static void fill(const struct perf_round *round, size_t first, size_t count, void *out)
{
    perf_data_copy(round->type, round->number, round->rank * round->shape.send_count + first, count, out);
}

static void expect(const struct perf_round *round, size_t first, size_t count, void *out)
{
    size_t before = (round->rank + round->ranks - 1) % round->ranks;

    perf_data_copy(round->type, round->number, before * round->shape.send_count + first, count, out);
}

int main(int argc, char **argv)
{
    static const struct perf_collective collective = {
        .program = "sendrecv_perf",
        .op_text = "none",
        .max_p2p_peers = 2,
        .shape = perf_shape_whole,
        .algorithm_bytes = perf_bytes_of_count,
        .bus_factor = perf_factor_one,
        .enqueue = enqueue,
        .fill = fill,
        .expect = expect,
    };

    return perf_main(argc, argv, &collective);
}
