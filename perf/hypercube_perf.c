/*
 * hypercube_perf.c - an all-gather of our own by recursive doubling, from sends and receives.
 *
 * Step 0 copies the rank's own block to its place. In step s a rank exchanges the 2^(s-1) blocks that it has
 * with the rank whose number differs in bit s-1; a step sends what the one before received, so each has a
 * group of its own.
 */
#include "rounds.h"

#include <stdio.h>

static unsigned steps(unsigned ranks)
{
    unsigned count = 1;

    while (1U << (count - 1) < ranks)
        count++;
    return count;
}

static const char *refuse(unsigned ranks)
{
    static _Thread_local char text[80];

    if ((ranks & (ranks - 1)) == 0)
        return NULL;
    snprintf(text, sizeof(text), "nRanks %u is not a power of 2, skipping", ranks);
    return text;
}

static ncclResult_t copy_own_block(const struct perf_call *call, const char **what_out)
{
    size_t bytes = call->count * call->type->bytes;
    char *place = (char *)call->recv + call->rank * bytes;

    *what_out = "cudaMemcpyAsync of the own block";
    if (place == call->send || bytes == 0)
        return ncclSuccess;
    return cudaMemcpyAsync(place, call->send, bytes, cudaMemcpyDeviceToDevice, call->stream) == cudaSuccess
               ? ncclSuccess
               : ncclUnhandledCudaError;
}

static ncclResult_t enqueue(const struct perf_call *call, unsigned step, const char **what_out)
{
    unsigned mask = step ? 1U << (step - 1) : 0, partner = call->rank ^ mask;
    size_t block = call->count * call->type->bytes, count = call->count * mask;
    char *mine = (char *)call->recv + (call->rank & ~(mask - 1)) * block;
    char *theirs = (char *)call->recv + (partner & ~(mask - 1)) * block;
    ncclResult_t result, end;

    if (step == 0)
        return copy_own_block(call, what_out);
    *what_out = "ncclGroupStart";
    result = ncclGroupStart();
    if (result != ncclSuccess)
        return result;
    *what_out = "ncclSend";
    result = ncclSend(mine, count, call->type->id, (int)partner, call->comm, call->stream);
    if (result == ncclSuccess) {
        *what_out = "ncclRecv";
        result = ncclRecv(theirs, count, call->type->id, (int)partner, call->comm, call->stream);
    }
    end = ncclGroupEnd();
    return result == ncclSuccess ? end : result;
}

static double algorithm_bytes(const struct perf_shape *shape, unsigned element_bytes, unsigned ranks)
{
    return (double)shape->param_count * (ranks - 1) * element_bytes;
}

int main(int argc, char **argv)
{
    static const struct perf_collective collective = {
        .program = "hypercube_perf",
        .op_text = "",
        .verifies_in_place = true,
        .shape = perf_shape_gathering,
        .algorithm_bytes = algorithm_bytes,
        .bus_factor = perf_factor_one,
        .enqueue = enqueue,
        .steps = steps,
        .fill = perf_gathering_fill,
        .expect = perf_gathering_expect,
        .refuse = refuse,
    };

    return perf_main(argc, argv, &collective);
}
