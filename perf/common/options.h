/* options.h - what the command line and the environment ask for. */
#ifndef PERF_OPTIONS_H
#define PERF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct perf_options {
    int procs; /* --procs: processes to start on this host; 0: not asked for */
    int threads;
    int gpus;
    size_t min_bytes;
    size_t max_bytes;
    size_t step_bytes;
    int step_factor; /* used instead of step_bytes when above 1 */
    int iters;
    int aggregated;
    int warmup_iters;
    int cycles; /* 0: for ever */
    bool parallel_init;
    int check_rounds;
    int op;   /* enum perf_op, -1: all */
    int type; /* index in perf_types, -1: all */
    int root; /* -1: all */
    int blocking;
    bool null_stream;
    int timeout_s;
    int graph_launches;
    bool report_cpu_time;
    bool report_timestamps;
    const char *json_path; /* NULL: none. Points into argv. */
    int average;           /* 0 rank 0, 1 mean, 2 min, 3 max */
    int registration;
    int cta_policy; /* -1: not set */
    int device_api;
    int device_ctas;
    bool report_memory;
    int unalign;
    bool per_iteration;
    int per_iteration_skip;

    int inject_rank; /* RONDO_PERF_INJECT; -1: none */
    uint64_t inject_offset;
    double min_bus_bandwidth; /* NCCL_TESTS_MIN_BW; negative: none */
    int first_device;         /* NCCL_TESTS_DEVICE; -1: not set */
};

enum perf_parse {
    PERF_PARSE_RUN,  /* options are complete */
    PERF_PARSE_EXIT, /* leave with *exit_status */
};

/* Read argv (permutes it, as getopt does) and the environment. Talk goes to out, complaints to err.
 * options_out is written also when the answer is to exit; then it means nothing. */
enum perf_parse perf_options_parse(int argc, char **argv, FILE *out, FILE *err,
                                   struct perf_options *options_out, int *exit_status);

#endif
