/*
 * processes.h - which of how many processes this one is, and how it came to be.
 *
 * Either this program forks its processes itself (--procs), or a launcher has started it and left its rank in
 * the environment. Both are settled before CUDA or NCCL are touched.
 */
#ifndef PERF_PROCESSES_H
#define PERF_PROCESSES_H

#include "failure.h"

#include <stdbool.h>

struct perf_identity {
    const char *launcher; /* "none", "procs", "Open MPI", "PMI", "torchrun", "Slurm" */
    int rank;
    int size;
    int local_size; /* processes on this host, as the launcher says; 0 when it does not */
    char job[256];  /* what this job's processes, and hopefully no others, have in common */
    int *links;     /* procs: sockets to the others; rank 0 has one for each (0 for itself), the others one to
                       rank 0 */
};

/* Read the launchers' variables; without any, one process. Fails with PERF_USAGE when they contradict each
 * other. */
enum perf_status perf_identity_read(struct perf_identity *identity_out);

/*
 * Fork procs processes. Returns true in each of them, with *identity_out filled. In the parent it returns
 * false when all have ended, with the first failed one's exit status, or 128 + its signal, in
 * *exit_status_out. Once one fails, the others get a grace period to tell their side, then are ended; none
 * outlives the parent, however that ends.
 */
bool perf_launch_local(int procs, struct perf_identity *identity_out, int *exit_status_out);

/* Reduces processes' ranks to groups as NCCL_TESTS_SPLIT and NCCL_TESTS_SPLIT_MASK say. false: not
 * understood. */
bool perf_split_color(int rank, const char *split, const char *mask, int *color_out);

#endif
