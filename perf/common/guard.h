/*
 * guard.h - a thread that ends waits which nobody else would end.
 *
 * A worker notes when it starts to enqueue and when its streams are empty. In between, this thread looks a
 * few times a second: has a rank gone or failed, has NCCL found an error, has -T passed? Then it aborts the
 * communicators, which lets the worker return. If it still does not, this thread ends the process. Nobody
 * wakes it, so that it costs the measured operations nothing.
 */
#ifndef PERF_GUARD_H
#define PERF_GUARD_H

#include "failure.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct perf_run;

struct perf_watch {
    struct perf_run *run;
    pthread_t thread;
    bool is_running;
    pthread_mutex_t lock; /* of is_ending */
    pthread_cond_t change;
    bool is_ending;
    int64_t
        *since_ms; /* of each worker: start of what it is at; 0: nothing that could take for ever. Atomic. */
    int workers;
    int64_t abort_ms; /* when the communicators were aborted; 0: they were not. The watch thread's own. */
};

enum perf_status perf_watch_start(struct perf_watch *watch, struct perf_run *run, int workers);
void perf_watch_stop(struct perf_watch *watch);

/* begin may be called again without end: the clock of -T starts anew. */
void perf_watch_begin(struct perf_watch *watch, int worker);
void perf_watch_end(struct perf_watch *watch, int worker);

#endif
