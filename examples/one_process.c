/*
 * one_process.c - one process, one thread, all devices: ncclCommInitAll and a group around the loop over the
 * devices.
 *
 * usage: one_process [DEVICES [COUNT]]
 *
 * Rank r contributes r + i % 1000 at place i; everybody must receive the sum over the ranks. Small whole
 * numbers, so that floats add up exactly in any order.
 */
#include "check_calls.h"

struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
};

static void open_rank(struct rank *self, int rank, int count)
{
    float *host = malloc((size_t)count * sizeof(float));

    if (!host) {
        fprintf(stderr, "no memory for %d floats\n", count);
        exit(1);
    }
    for (int i = 0; i < count; i++)
        host[i] = (float)(rank + i % 1000);
    check_cuda(cudaSetDevice(rank), "cudaSetDevice");
    check_cuda(cudaStreamCreate(&self->stream), "cudaStreamCreate");
    self->buffer = device_copy(host, (size_t)count * sizeof(float));
    free(host);
}

/* Number of wrong elements. */
static int wait_and_compare(struct rank *self, int rank, int ranks, int count)
{
    float *host = malloc((size_t)count * sizeof(float));
    int wrong = 0;

    if (!host) {
        fprintf(stderr, "no memory for %d floats\n", count);
        exit(1);
    }
    check_cuda(cudaSetDevice(rank), "cudaSetDevice");
    check_cuda(cudaStreamSynchronize(self->stream), "cudaStreamSynchronize");
    check_cuda(cudaMemcpy(host, self->buffer, (size_t)count * sizeof(float), cudaMemcpyDeviceToHost),
               "cudaMemcpy to the host");
    for (int i = 0; i < count; i++)
        wrong += host[i] != (float)(ranks * (i % 1000) + ranks * (ranks - 1) / 2);
    free(host);
    return wrong;
}

int main(int argc, char **argv)
{
    int ranks = positive_argument(argc, argv, 1, device_count());
    int count = positive_argument(argc, argv, 2, 1 << 20);
    struct rank *all = calloc((size_t)ranks, sizeof(*all));
    ncclComm_t *comms = calloc((size_t)ranks, sizeof(*comms));
    int wrong = 0;

    if (!all || !comms) {
        fprintf(stderr, "no memory for %d ranks\n", ranks);
        return 1;
    }
    check_nccl(ncclCommInitAll(comms, ranks, NULL), "ncclCommInitAll");
    for (int r = 0; r < ranks; r++) {
        all[r].comm = comms[r];
        open_rank(&all[r], r, count);
    }

    /* Without the group the first rank's call could wait for ranks whose calls come after it. */
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int r = 0; r < ranks; r++)
        check_nccl(ncclAllReduce(all[r].buffer, all[r].buffer, (size_t)count, ncclFloat, ncclSum, all[r].comm,
                                 all[r].stream),
                   "ncclAllReduce");
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");

    for (int r = 0; r < ranks; r++)
        wrong += wait_and_compare(&all[r], r, ranks, count);
    for (int r = 0; r < ranks; r++) {
        check_cuda(cudaSetDevice(r), "cudaSetDevice");
        check_cuda(cudaFree(all[r].buffer), "cudaFree");
        check_cuda(cudaStreamDestroy(all[r].stream), "cudaStreamDestroy");
        check_nccl(ncclCommDestroy(all[r].comm), "ncclCommDestroy");
    }
    free(comms);
    free(all);
    printf("one process, %d devices: all-reduce of %d floats, %d wrong\n", ranks, count, wrong);
    return wrong != 0;
}
