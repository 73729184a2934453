/* guard.c - see guard.h. */
#include "guard.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 100
#define GRACE_MS 10000 /* for waits to return once the communicators are aborted */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* NCCL's own view, of every communicator of this process. */
static enum perf_status check_comms(struct perf_run *run)
{
    for (int i = 0; i < run->device_count; i++) {
        ncclComm_t comm =
            __atomic_load_n(&run->devices[i].comm, __ATOMIC_ACQUIRE); /* pairs with perf_comms_open */
        ncclResult_t error = ncclSuccess;

        if (!comm)
            continue;
        if (ncclCommGetAsyncError(comm, &error) == ncclSuccess && error != ncclSuccess &&
            error != ncclInProgress)
            return perf_fail_nccl("ncclCommGetAsyncError", error, comm);
    }
    return PERF_OK;
}

static bool is_any_busy(const struct perf_watch *watch)
{
    for (int i = 0; i < watch->workers; i++)
        if (__atomic_load_n(&watch->since_ms[i],
                            __ATOMIC_RELAXED)) /* a time alone: nothing is read on its account */
            return true;
    return false;
}

static enum perf_status check_time(const struct perf_watch *watch)
{
    int64_t limit_ms = (int64_t)watch->run->options.timeout_s * 1000, now = now_ms();

    for (int i = 0; limit_ms > 0 && i < watch->workers; i++) {
        int64_t since = __atomic_load_n(&watch->since_ms[i], __ATOMIC_RELAXED);

        if (since && now - since > limit_ms)
            return perf_fail(PERF_TIMEOUT, "an operation has not completed within %d s (-T)",
                             watch->run->options.timeout_s);
    }
    return PERF_OK;
}

/* While a worker is busy. */
static void look(struct perf_watch *watch)
{
    struct perf_run *run = watch->run;
    enum perf_status status = perf_team_failure(&run->team);

    if (watch->abort_ms) {
        if (now_ms() - watch->abort_ms > GRACE_MS) {
            perf_fail(status, "a wait did not end %d s after ncclCommAbort: leaving", GRACE_MS / 1000);
            fflush(NULL);
            _exit(status);
        }
        return;
    }
    if (status == PERF_OK)
        status = check_time(watch);
    if (status == PERF_OK)
        status = check_comms(run);
    if (status == PERF_OK)
        status = perf_rendezvous_check(run->rendezvous);
    if (status == PERF_OK)
        return;
    watch->abort_ms = now_ms();
    perf_team_fail(&run->team, status);
    perf_comms_abort(run);
}

static void *watch_main(void *argument)
{
    struct perf_watch *watch = argument;
    struct timespec until;

    pthread_mutex_lock(&watch->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    while (!watch->is_ending) {
        until.tv_nsec += LOOK_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        while (!watch->is_ending && pthread_cond_timedwait(&watch->change, &watch->lock, &until) == 0)
            ;
        if (watch->is_ending)
            break;
        pthread_mutex_unlock(&watch->lock);
        if (is_any_busy(watch))
            look(watch);
        pthread_mutex_lock(&watch->lock);
        clock_gettime(CLOCK_MONOTONIC, &until);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

enum perf_status perf_watch_start(struct perf_watch *watch, struct perf_run *run, int workers)
{
    pthread_condattr_t attributes;

    *watch = (struct perf_watch){.run = run, .workers = workers};
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->change, &attributes);
    pthread_condattr_destroy(&attributes);
    watch->since_ms = calloc((size_t)workers, sizeof(*watch->since_ms));
    if (!watch->since_ms || pthread_create(&watch->thread, NULL, watch_main, watch) != 0)
        return perf_fail(PERF_INTERNAL, "start the thread that watches over waits");
    watch->is_running = true;
    return PERF_OK;
}

void perf_watch_stop(struct perf_watch *watch)
{
    if (!watch->run)
        return;
    if (watch->is_running) {
        pthread_mutex_lock(&watch->lock);
        watch->is_ending = true;
        pthread_cond_signal(&watch->change);
        pthread_mutex_unlock(&watch->lock);
        pthread_join(watch->thread, NULL);
    }
    free(watch->since_ms);
    pthread_cond_destroy(&watch->change);
    pthread_mutex_destroy(&watch->lock);
    *watch = (struct perf_watch){0};
}

void perf_watch_begin(struct perf_watch *watch, int worker)
{
    __atomic_store_n(&watch->since_ms[worker], now_ms(),
                     __ATOMIC_RELAXED); /* read by is_any_busy and check_time */
}

void perf_watch_end(struct perf_watch *watch, int worker)
{
    __atomic_store_n(&watch->since_ms[worker], 0, __ATOMIC_RELAXED); /* as above */
}
