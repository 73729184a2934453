/*
 * team.h - all threads of all processes of a run, kept in step.
 *
 * Every thread calls the same functions in the same order. Once one has failed, all waits here end with its
 * status.
 */
#ifndef PERF_TEAM_H
#define PERF_TEAM_H

#include "star.h"

#include <pthread.h>
#include <stdint.h>

enum perf_combine { PERF_COMBINE_FIRST, PERF_COMBINE_SUM, PERF_COMBINE_MIN, PERF_COMBINE_MAX };

struct perf_team {
    struct perf_rendezvous *rendezvous;
    int processes;
    int threads;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    int arrived;
    uint64_t generation;
    enum perf_status failure; /* PERF_OK while all is well; written under the lock, read anywhere */
    double *mine;             /* what this process's threads have combined so far */
    double *rows;             /* what the last operation gathered */
    size_t capacity;
};

void perf_team_init(struct perf_team *team, struct perf_rendezvous *rendezvous, int processes, int threads);
void perf_team_fini(struct perf_team *team);

/* Combine count numbers over the threads of each process, element by element (FIRST: those of thread 0), and
 * gather the processes' rows: rows_out has processes * count numbers. */
enum perf_status perf_team_gather(struct perf_team *team, int thread, const char *what,
                                  enum perf_combine combine, const double *numbers, size_t count,
                                  double *rows_out);

/* One number over all threads of all processes; FIRST is that of rank 0's thread 0. */
enum perf_status perf_team_reduce(struct perf_team *team, int thread, enum perf_combine combine,
                                  double *number);

enum perf_status perf_team_barrier(struct perf_team *team, int thread);

/* Record the first failure and wake whoever waits here. Other processes are told. */
void perf_team_fail(struct perf_team *team, enum perf_status status);

static inline enum perf_status perf_team_failure(struct perf_team *team)
{
    return __atomic_load_n(&team->failure,
                           __ATOMIC_ACQUIRE); /* pairs with the release store in perf_team_fail */
}

#endif
