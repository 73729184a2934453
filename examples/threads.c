/*
 * threads.c - one process, one thread per device: each thread joins as a rank of its own, as if it were a
 * process.
 *
 * usage: threads [DEVICES [COUNT]]
 *
 * An all-gather: rank r contributes COUNT times the number r; everybody must hold 0.., 1.., 2.. in order of
 * rank.
 */
#include "check_calls.h"

#include <pthread.h>

struct job {
    pthread_t thread;
    ncclUniqueId id;
    int rank, ranks, count;
    int wrong; /* written by the thread, read after it was joined */
};

static int *alloc_ints(size_t count)
{
    int *memory = malloc(count * sizeof(int));

    if (memory)
        return memory;
    fprintf(stderr, "no memory for %zu ints\n", count);
    exit(1);
}

static void *run_rank(void *argument)
{
    struct job *job = argument;
    size_t count = (size_t)job->count, total = count * (size_t)job->ranks;
    int *host = alloc_ints(total), *mine, *everybodys;
    ncclComm_t comm;
    cudaStream_t stream;

    for (size_t i = 0; i < total; i++)
        host[i] = job->rank;
    check_cuda(cudaSetDevice(job->rank), "cudaSetDevice"); /* the current device belongs to the thread */
    check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
    mine = device_copy(host, count * sizeof(int));
    everybodys = device_copy(host, total * sizeof(int));

    check_nccl(ncclCommInitRank(&comm, job->ranks, job->id, job->rank), "ncclCommInitRank");
    check_nccl(ncclAllGather(mine, everybodys, count, ncclInt, comm, stream), "ncclAllGather");
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");

    check_cuda(cudaMemcpy(host, everybodys, total * sizeof(int), cudaMemcpyDeviceToHost),
               "cudaMemcpy to the host");
    for (size_t i = 0; i < total; i++)
        job->wrong += host[i] != (int)(i / count);
    check_nccl(ncclCommDestroy(comm), "ncclCommDestroy");
    check_cuda(cudaFree(everybodys), "cudaFree");
    check_cuda(cudaFree(mine), "cudaFree");
    check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    free(host);
    return NULL;
}

int main(int argc, char **argv)
{
    int ranks = positive_argument(argc, argv, 1, device_count());
    int count = positive_argument(argc, argv, 2, 1 << 16);
    struct job *jobs = calloc((size_t)ranks, sizeof(*jobs));
    ncclUniqueId id;
    int wrong = 0;

    if (!jobs) {
        fprintf(stderr, "no memory for %d ranks\n", ranks);
        return 1;
    }
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    for (int r = 0; r < ranks; r++) {
        jobs[r] = (struct job){.id = id, .rank = r, .ranks = ranks, .count = count};
        if (pthread_create(&jobs[r].thread, NULL, run_rank, &jobs[r]) != 0) {
            fprintf(stderr, "cannot start the thread of rank %d\n", r);
            return 1;
        }
    }
    for (int r = 0; r < ranks; r++) {
        pthread_join(jobs[r].thread, NULL);
        wrong += jobs[r].wrong;
    }
    free(jobs);
    printf("%d threads, each with a device: all-gather of %d ints a rank, %d wrong\n", ranks, count, wrong);
    return wrong != 0;
}
