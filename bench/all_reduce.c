/*
 * all_reduce.c - how long an all-reduce of 2 processes takes, next to a copy of the same bytes in the same
 * run.
 *
 *   bench_all_reduce [rounds [bytes ...]]      prints one JSON object on stdout
 *
 * Machines are shared and noisy, so operation and copy are measured in turn and the medians are compared; the
 * ratio is the figure to follow. Both processes hold their buffers in device memory (ncclMemAlloc). A ratio
 * below 1 would mean that the all-reduce took less than one memcpy of its message.
 */
#include <nccl.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES_MAX 2000
#define SIZES_MAX 16

/* What is measured: from the command line, or these. */
static size_t sizes[SIZES_MAX] = {8, 2048, 64u << 10, 2u << 20, 128u << 20};
static size_t size_count = 5;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof(*samples), compare);
    return samples[count / 2];
}

static void must(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, ncclGetLastError(NULL));
    exit(1);
}

struct buffers {
    void *send, *recv, *copy;
};

/* Rounds of one size: all-reduce and copy in turn. */
static void measure(ncclComm_t comm, struct buffers *buffers, size_t bytes, int rounds, double *op_us,
                    double *copy_us)
{
    static double op[SAMPLES_MAX], copy[SAMPLES_MAX];
    int inner = bytes <= 4096 ? 100 : 1; /* small ones many at a time: the clock costs as much as they do */

    for (int round = -2; round < rounds; round++) { /* two to warm up */
        double start = now_us();
        for (int i = 0; i < inner; i++)
            must(ncclAllReduce(buffers->send, buffers->recv, bytes / sizeof(float), ncclFloat32, ncclSum,
                               comm, NULL),
                 "ncclAllReduce");
        double middle = now_us();
        for (int i = 0; i < inner; i++) {
            memcpy(buffers->copy, buffers->send, bytes);
            __asm__ volatile("" ::: "memory"); /* the copies are not dead */
        }
        double end = now_us();
        if (round >= 0) {
            op[round] = (middle - start) / inner;
            copy[round] = (end - middle) / inner;
        }
    }
    *op_us = median(op, rounds);
    *copy_us = median(copy, rounds);
}

/* The worst ratio between neighbouring sizes of an all-gather around 16 MB: odd sizes must not fall off a
 * cliff. */
static double worst_neighbour(ncclComm_t comm, struct buffers *buffers)
{
    enum { SIZES = 25, ROUNDS = 9 };
    static double times[SIZES][ROUNDS];
    double worst = 1, medians[SIZES];

    for (int round = 0; round < ROUNDS; round++)
        for (int size = 0; size < SIZES; size++) {
            double start = now_us();
            must(ncclAllGather(buffers->send, buffers->recv, 16373696u + 4u * (unsigned)size, ncclInt8, comm,
                               NULL),
                 "ncclAllGather");
            times[size][round] = now_us() - start;
        }
    for (int size = 0; size < SIZES; size++)
        medians[size] = median(times[size], ROUNDS);
    for (int size = 1; size < SIZES; size++) {
        double ratio = medians[size] / medians[size - 1];
        ratio = ratio < 1 ? 1 / ratio : ratio;
        worst = ratio > worst ? ratio : worst;
    }
    return worst;
}

static void run_rank(int rank, const ncclUniqueId *id, int rounds)
{
    size_t most = 32u << 20; /* the all-gather's */
    struct buffers buffers;
    ncclComm_t comm;

    for (size_t i = 0; i < size_count; i++)
        most = sizes[i] > most ? sizes[i] : most;

    must(ncclCommInitRank(&comm, 2, *id, rank), "ncclCommInitRank");
    must(ncclMemAlloc(&buffers.send, most), "ncclMemAlloc");
    must(ncclMemAlloc(&buffers.recv, most), "ncclMemAlloc");
    must(ncclMemAlloc(&buffers.copy, most), "ncclMemAlloc");
    memset(buffers.send, 0, most);
    memset(buffers.recv, 0, most);
    memset(buffers.copy, 0, most);
    if (rank == 0)
        printf("{\"schema\": 1, \"benchmark\": \"all_reduce\", \"processes\": 2, \"type\": \"float\", "
               "\"rounds\": %d, "
               "\"sizes\": [",
               rounds);
    for (size_t i = 0; i < size_count; i++) {
        double op_us, copy_us;
        measure(comm, &buffers, sizes[i], sizes[i] > (16u << 20) ? (rounds + 9) / 10 : rounds, &op_us,
                &copy_us);
        if (rank == 0)
            printf("%s\n  {\"bytes\": %zu, \"all_reduce_us\": %.3f, \"copy_us\": %.3f, \"ratio\": %.3f}",
                   i ? "," : "", sizes[i], op_us, copy_us, op_us / copy_us);
    }
    double worst = worst_neighbour(comm, &buffers);
    if (rank == 0)
        printf("],\n \"all_gather_16MB_worst_neighbour_ratio\": %.3f}\n", worst);
    must(ncclMemFree(buffers.send), "ncclMemFree");
    must(ncclMemFree(buffers.recv), "ncclMemFree");
    must(ncclMemFree(buffers.copy), "ncclMemFree");
    must(ncclCommDestroy(comm), "ncclCommDestroy");
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    int pipes[2], status = 0;
    ncclUniqueId id;

    if (rounds < 1 || rounds > SAMPLES_MAX || argc - 2 > SIZES_MAX || pipe(pipes) != 0) {
        fprintf(stderr, "usage: bench_all_reduce [rounds, 1..%d [bytes ..., at most %d]]\n", SAMPLES_MAX,
                SIZES_MAX);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        sizes[i - 2] = strtoull(argv[i], NULL, 0);
        size_count = (size_t)i - 1;
    }
    pid_t child = fork();
    if (child == 0) { /* rank 1 waits for the id */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(pipes[0], &id, sizeof(id)) != (ssize_t)sizeof(id))
            return 1;
        run_rank(1, &id, rounds);
        return 0;
    }
    must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    if (child < 0 || write(pipes[1], &id, sizeof(id)) != (ssize_t)sizeof(id))
        return 1;
    run_rank(0, &id, rounds);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
