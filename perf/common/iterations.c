/* iterations.c - see iterations.h. */
#include "iterations.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cudaEvent_t *event_at(struct perf_iteration_events *events, int device, int i)
{
    return &events->events[(size_t)device * (size_t)(events->count + 1) + (size_t)i];
}

enum perf_status perf_iteration_events_create(struct perf_worker *worker, int count,
                                              struct perf_iteration_events *events)
{
    *events = (struct perf_iteration_events){.count = count, .devices = worker->run->options.gpus};
    if (count == 0)
        return PERF_OK;
    events->events = calloc((size_t)events->devices * (size_t)(count + 1), sizeof(cudaEvent_t));
    if (!events->events)
        return perf_fail(PERF_INTERNAL, "no memory for the events of %d iterations", count);
    for (int d = 0; d < events->devices; d++) {
        cudaSetDevice(worker->devices[d].device);
        for (int i = 0; i <= count; i++) {
            cudaError_t error = cudaEventCreate(event_at(events, d, i));

            if (error != cudaSuccess)
                return perf_fail_cuda("cudaEventCreate", error);
        }
    }
    return PERF_OK;
}

enum perf_status perf_iteration_events_record(struct perf_worker *worker,
                                              struct perf_iteration_events *events, int i)
{
    for (int d = 0; events->count > 0 && d < events->devices; d++) {
        cudaError_t error;

        cudaSetDevice(worker->devices[d].device);
        error = cudaEventRecord(*event_at(events, d, i), worker->devices[d].stream);
        if (error != cudaSuccess)
            return perf_fail_cuda("cudaEventRecord", error);
    }
    return PERF_OK;
}

void perf_iteration_events_destroy(struct perf_iteration_events *events)
{
    for (int d = 0; events->events && d < events->devices; d++)
        for (int i = 0; i <= events->count; i++)
            if (*event_at(events, d, i))
                cudaEventDestroy(*event_at(events, d, i));
    free(events->events);
    *events = (struct perf_iteration_events){0};
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest time that at least percent of all do not exceed. */
static double nearest_rank(const double *sorted, int count, double percent)
{
    int rank = (int)ceil(percent / 100 * count);

    return sorted[rank > 0 ? rank - 1 : 0];
}

void perf_iterations_summarize(struct perf_iterations *iterations)
{
    int count = iterations->count - iterations->skipped;
    double *sorted = count > 0 ? malloc((size_t)count * sizeof(double)) : NULL;
    double sum = 0, squares = 0;

    if (!sorted)
        return;
    memcpy(sorted, iterations->times_us + iterations->skipped, (size_t)count * sizeof(double));
    qsort(sorted, (size_t)count, sizeof(double), compare_times);
    for (int i = 0; i < count; i++)
        sum += sorted[i];
    iterations->average = sum / count;
    for (int i = 0; i < count; i++)
        squares += (sorted[i] - iterations->average) * (sorted[i] - iterations->average);
    iterations->min = sorted[0];
    iterations->max = sorted[count - 1];
    iterations->p50 = sorted[count / 2];
    iterations->p95 = nearest_rank(sorted, count, 95);
    iterations->p99 = nearest_rank(sorted, count, 99);
    iterations->deviation = sqrt(squares / count);
    iterations->variation_percent =
        iterations->average > 0 ? iterations->deviation / iterations->average * 100 : 0;
    free(sorted);
}

static enum perf_status read_events(struct perf_iteration_events *events, double *times_us)
{
    for (int d = 0; d < events->devices; d++) {
        for (int i = 0; i < events->count; i++) {
            float ms;
            cudaError_t error =
                cudaEventElapsedTime(&ms, *event_at(events, d, i), *event_at(events, d, i + 1));

            if (error != cudaSuccess)
                return perf_fail_cuda("cudaEventElapsedTime", error);
            if (d == 0 || ms * 1e3 > times_us[i])
                times_us[i] = ms * 1e3;
        }
    }
    return PERF_OK;
}

enum perf_status perf_iterations_read(struct perf_worker *worker, struct perf_iteration_events *events,
                                      struct perf_iterations *iterations_out)
{
    struct perf_run *run = worker->run;
    size_t count = (size_t)events->count;
    struct perf_iterations result = {.count = events->count, .skipped = run->options.per_iteration_skip};
    enum perf_status status;

    *iterations_out = (struct perf_iterations){0};
    if (count == 0)
        return PERF_OK;
    result.times_us = calloc(count, sizeof(double));
    result.rows_us = calloc(count * (size_t)run->identity.size, sizeof(double));
    if (!result.times_us || !result.rows_us)
        status = perf_fail(PERF_INTERNAL, "no memory for the times of %zu iterations", count);
    else
        status = read_events(events, result.times_us);
    if (status == PERF_OK)
        status = perf_team_gather(&run->team, worker->index, "iteration times", PERF_COMBINE_MAX,
                                  result.times_us, count, result.rows_us);
    if (status != PERF_OK) {
        perf_iterations_free(&result);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        result.times_us[i] = result.rows_us[i];
        for (int p = 1; p < run->identity.size; p++)
            if (result.rows_us[(size_t)p * count + i] > result.times_us[i])
                result.times_us[i] = result.rows_us[(size_t)p * count + i];
    }
    perf_iterations_summarize(&result);
    *iterations_out = result;
    return PERF_OK;
}

void perf_iterations_free(struct perf_iterations *iterations)
{
    free(iterations->times_us);
    free(iterations->rows_us);
    *iterations = (struct perf_iterations){0};
}
