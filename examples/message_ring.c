/*
 * message_ring.c - point to point: every rank passes a block to its right neighbour until it has come round.
 *
 * usage: message_ring [DEVICES [COUNT]]
 *
 * Rank r starts with COUNT times the number r. After step s it must hold the number of the rank s places to
 * its left, and after as many steps as there are ranks its own again. A group a step: all sends and receives
 * of a step run together.
 */
#include "check_calls.h"

struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    int64_t *out, *in;
};

static void open_rank(struct rank *self, int rank, const int64_t *host, size_t bytes)
{
    check_cuda(cudaSetDevice(rank), "cudaSetDevice");
    check_cuda(cudaStreamCreate(&self->stream), "cudaStreamCreate");
    self->out = device_copy(host, bytes);
    self->in = device_copy(host, bytes);
}

static void close_rank(struct rank *self, int rank)
{
    check_cuda(cudaSetDevice(rank), "cudaSetDevice");
    check_nccl(ncclCommDestroy(self->comm), "ncclCommDestroy");
    check_cuda(cudaFree(self->out), "cudaFree");
    check_cuda(cudaFree(self->in), "cudaFree");
    check_cuda(cudaStreamDestroy(self->stream), "cudaStreamDestroy");
}

static void pass_on(struct rank *all, int ranks, size_t count)
{
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < ranks; r++) {
        check_nccl(ncclSend(all[r].out, count, ncclInt64, (r + 1) % ranks, all[r].comm, all[r].stream),
                   "ncclSend");
        check_nccl(ncclRecv(all[r].in, count, ncclInt64, (r + ranks - 1) % ranks, all[r].comm, all[r].stream),
                   "ncclRecv");
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    for (int r = 0; r < ranks; r++) {
        int64_t *received = all[r].in; /* is what goes out next */

        all[r].in = all[r].out;
        all[r].out = received;
    }
}

/* Number of elements of this rank that are not value. */
static int wait_and_compare(struct rank *self, int rank, int64_t value, int64_t *host, size_t count)
{
    int wrong = 0;

    check_cuda(cudaSetDevice(rank), "cudaSetDevice");
    check_cuda(cudaStreamSynchronize(self->stream), "cudaStreamSynchronize");
    check_cuda(cudaMemcpy(host, self->out, count * sizeof(*host), cudaMemcpyDeviceToHost),
               "cudaMemcpy to the host");
    for (size_t i = 0; i < count; i++)
        wrong += host[i] != value;
    return wrong;
}

int main(int argc, char **argv)
{
    int ranks = positive_argument(argc, argv, 1, device_count());
    size_t count = (size_t)positive_argument(argc, argv, 2, 1 << 16);
    struct rank *all = calloc((size_t)ranks, sizeof(*all));
    ncclComm_t *comms = calloc((size_t)ranks, sizeof(*comms));
    int64_t *host = calloc(count, sizeof(*host));
    int wrong = 0;

    if (!all || !comms || !host) {
        fprintf(stderr, "no memory for %d ranks with %zu elements\n", ranks, count);
        return 1;
    }
    check_nccl(ncclCommInitAll(comms, ranks, NULL), "ncclCommInitAll");
    for (int r = 0; r < ranks; r++) {
        for (size_t i = 0; i < count; i++)
            host[i] = r;
        all[r].comm = comms[r];
        open_rank(&all[r], r, host, count * sizeof(*host));
    }
    for (int step = 1; step <= ranks; step++) {
        pass_on(all, ranks, count);
        for (int r = 0; r < ranks; r++)
            wrong += wait_and_compare(&all[r], r, (r + ranks - step) % ranks, host, count);
    }
    for (int r = 0; r < ranks; r++)
        close_rank(&all[r], r);
    free(host);
    free(comms);
    free(all);
    printf("ring of %d ranks: %zu elements went round in %d steps, %d wrong\n", ranks, count, ranks, wrong);
    return wrong != 0;
}
