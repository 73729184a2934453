/* iterations.h - -I: the time of every iteration, by events on the streams. */
#ifndef PERF_ITERATIONS_H
#define PERF_ITERATIONS_H

#include "failure.h"

#include <stddef.h>

struct perf_worker;

struct perf_iterations {
    int count;        /* of iterations; 0: not measured */
    int skipped;      /* leading ones, left out of the figures below */
    double *times_us; /* count: over all processes, the slowest device's */
    double *rows_us;  /* processes * count */
    double min, max, average, p50, p95, p99, deviation;
    double variation_percent; /* 100 * deviation / average */
};

/* One event before and one after each iteration, for each device of a worker. */
struct perf_iteration_events {
    int count; /* iterations */
    int devices;
    cudaEvent_t *events; /* devices rows of count + 1 */
};

/* For iterations 0 these do nothing. destroy takes what a failed create left. */
enum perf_status perf_iteration_events_create(struct perf_worker *worker, int count,
                                              struct perf_iteration_events *events);
enum perf_status perf_iteration_events_record(struct perf_worker *worker,
                                              struct perf_iteration_events *events, int i);
void perf_iteration_events_destroy(struct perf_iteration_events *events);

/* When the streams are empty, with all workers: read the events and fill in everything. */
enum perf_status perf_iterations_read(struct perf_worker *worker, struct perf_iteration_events *events,
                                      struct perf_iterations *iterations_out);
void perf_iterations_free(struct perf_iterations *iterations);

/* The figures from times_us, count and skipped. */
void perf_iterations_summarize(struct perf_iterations *iterations);

#endif
