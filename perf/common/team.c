/* team.c - the last thread of a process to arrive speaks with the other processes; the others wait for it. */
#include "team.h"

#include <stdlib.h>
#include <string.h>

void perf_team_init(struct perf_team *team, struct perf_rendezvous *rendezvous, int processes, int threads)
{
    *team = (struct perf_team){.rendezvous = rendezvous, .processes = processes, .threads = threads};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->turn, NULL);
}

void perf_team_fini(struct perf_team *team)
{
    free(team->mine);
    free(team->rows);
    pthread_cond_destroy(&team->turn);
    pthread_mutex_destroy(&team->lock);
}

static double combine_two(enum perf_combine combine, double a, double b)
{
    switch (combine) {
    case PERF_COMBINE_SUM:
        return a + b;
    case PERF_COMBINE_MIN:
        return b < a ? b : a;
    case PERF_COMBINE_MAX:
        return b > a ? b : a;
    default:
        return a;
    }
}

static void add_numbers(struct perf_team *team, int thread, enum perf_combine combine, const double *numbers,
                        size_t count)
{
    if (team->arrived == 0 || (combine == PERF_COMBINE_FIRST && thread == 0)) {
        if (count > 0)
            memcpy(team->mine, numbers, count * sizeof(double));
    } else if (combine != PERF_COMBINE_FIRST) {
        for (size_t i = 0; i < count; i++)
            team->mine[i] = combine_two(combine, team->mine[i], numbers[i]);
    }
}

/* Room for count numbers a process. Under the lock. */
static enum perf_status make_room(struct perf_team *team, size_t count)
{
    double *mine, *rows;

    if (count <= team->capacity)
        return PERF_OK;
    mine = realloc(team->mine, count * sizeof(double));
    if (mine)
        team->mine = mine;
    rows = realloc(team->rows, count * (size_t)team->processes * sizeof(double));
    if (rows)
        team->rows = rows;
    if (!mine || !rows)
        return perf_fail(PERF_INTERNAL, "no memory for %zu numbers of %d processes", count, team->processes);
    team->capacity = count;
    return PERF_OK;
}

/* Under the lock. */
static void fail_locked(struct perf_team *team, enum perf_status status)
{
    if (team->failure == PERF_OK) {
        __atomic_store_n(&team->failure, status, __ATOMIC_RELEASE);
        perf_rendezvous_fail(team->rendezvous, status);
    }
    pthread_cond_broadcast(&team->turn);
}

void perf_team_fail(struct perf_team *team, enum perf_status status)
{
    pthread_mutex_lock(&team->lock);
    fail_locked(team, status);
    pthread_mutex_unlock(&team->lock);
}

enum perf_status perf_team_gather(struct perf_team *team, int thread, const char *what,
                                  enum perf_combine combine, const double *numbers, size_t count,
                                  double *rows_out)
{
    enum perf_status status;
    uint64_t generation;

    pthread_mutex_lock(&team->lock);
    generation = team->generation;
    if (team->failure == PERF_OK) {
        status = make_room(team, count);
        if (status != PERF_OK)
            fail_locked(team, status);
    }
    if (team->failure == PERF_OK) {
        add_numbers(team, thread, combine, numbers, count);
        if (++team->arrived == team->threads) {
            /* Everybody else of this process waits below, so the lock may be kept over the exchange. */
            status = perf_rendezvous_exchange(team->rendezvous, what, team->mine, count * sizeof(double),
                                              team->rows);
            if (status != PERF_OK)
                fail_locked(team, status);
            team->arrived = 0;
            team->generation++;
            pthread_cond_broadcast(&team->turn);
        }
        while (team->generation == generation && team->failure == PERF_OK)
            pthread_cond_wait(&team->turn, &team->lock);
    }
    if (team->failure == PERF_OK && count > 0)
        memcpy(rows_out, team->rows, count * (size_t)team->processes * sizeof(double));
    status = team->failure;
    pthread_mutex_unlock(&team->lock);
    return status;
}

enum perf_status perf_team_reduce(struct perf_team *team, int thread, enum perf_combine combine,
                                  double *number)
{
    double *rows = malloc((size_t)team->processes * sizeof(double));
    enum perf_status status;

    if (!rows)
        return perf_fail(PERF_INTERNAL, "no memory for the numbers of %d processes", team->processes);
    status = perf_team_gather(team, thread, "reduce", combine, number, 1, rows);
    if (status == PERF_OK) {
        *number = rows[0];
        for (int p = 1; p < team->processes; p++)
            *number = combine_two(combine, *number, rows[p]);
    }
    free(rows);
    return status;
}

enum perf_status perf_team_barrier(struct perf_team *team, int thread)
{
    return perf_team_gather(team, thread, "barrier", PERF_COMBINE_FIRST, NULL, 0, NULL);
}
