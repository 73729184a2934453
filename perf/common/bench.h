/* bench.h - one side of one line: time it, then verify it. */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include "iterations.h"
#include "run.h"

/* What is measured. */
struct perf_case {
    size_t bytes; /* as asked for */
    const struct perf_type *type;
    enum perf_op op;
    int root;
    bool in_place;
};

struct perf_sample {
    double time_us;
    double algorithm_gbs;
    double bus_gbs;
    bool is_checked;
    double wrong;                      /* elements, over all ranks */
    struct perf_iterations iterations; /* with -I; else empty */
};

/* The case's shape on a device. */
struct perf_shape perf_case_shape(const struct perf_worker *worker, const struct perf_case *bench_case,
                                  int device);

/* The size that the table shows: the larger of what a rank sends and receives. */
size_t perf_case_bytes(const struct perf_worker *worker, const struct perf_case *bench_case);

/* All workers call these together. The sample is the same for all of them. */
enum perf_status perf_bench_warm_up(struct perf_worker *worker, const struct perf_case *bench_case);
enum perf_status perf_bench(struct perf_worker *worker, const struct perf_case *bench_case,
                            struct perf_sample *sample_out);

/* Used by the parts of the bench. Enqueue one operation on all devices of the worker; turn chooses the place
 * in the buffers, so that successive operations do not find their data in a cache. */
enum perf_status perf_bench_enqueue(struct perf_worker *worker, const struct perf_case *bench_case,
                                    size_t turn);

/* Until the worker's streams are empty. */
enum perf_status perf_bench_wait(struct perf_worker *worker);

/* The buffers of a device at a turn. */
struct perf_place {
    char *send;
    char *recv;
};
struct perf_place perf_bench_place(const struct perf_worker *worker, const struct perf_case *bench_case,
                                   int device, size_t turn);

/* graph.c: capture the iterations once, then time launches of the graph. */
enum perf_status perf_bench_graph(struct perf_worker *worker, const struct perf_case *bench_case,
                                  double *seconds_out, double *cpu_seconds_out);

/* The iterations as they are enqueued, without waiting at the end; excluded_out: time spent in barriers that
 * do not count. */
enum perf_status perf_bench_iterations(struct perf_worker *worker, const struct perf_case *bench_case,
                                       struct perf_iteration_events *events, double *excluded_out);

/* check.c: fill the buffers for a round; run one operation and count the wrong elements on this worker's
 * devices. */
enum perf_status perf_check_fill(struct perf_worker *worker, const struct perf_case *bench_case,
                                 uint32_t round);
enum perf_status perf_check_round(struct perf_worker *worker, const struct perf_case *bench_case,
                                  uint32_t round, double *wrong_out);

double perf_now_s(void);

#endif
