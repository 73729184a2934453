/* sweep.c - everything a run measures, in the order of the table. */
#include "json.h"
#include "report.h"
#include "sizes.h"

#include <stdio.h>

/* The smallest and the largest that an index takes: "all", or one. */
struct range {
    int first;
    int last;
};

static struct range range_of(int chosen, int count)
{
    return chosen < 0 ? (struct range){0, count - 1} : (struct range){chosen, chosen};
}

/* "all" leaves out what a device is too old for. */
static bool is_type_supported(const struct perf_worker *worker, int type)
{
    int major = 0;

    if (worker->run->options.type >= 0 || perf_types[type].kind != PERF_REAL || perf_types[type].bytes > 1)
        return true;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, worker->devices[0].device) !=
        cudaSuccess)
        return false;
    return major >= 9;
}

static enum perf_status warm_up(struct perf_worker *worker, struct perf_case bench_case)
{
    const struct perf_options *options = &worker->run->options;
    enum perf_status status = perf_team_barrier(&worker->run->team, worker->index);
    size_t bytes = options->min_bytes;

    while (bytes <= options->max_bytes && status == PERF_OK) {
        bench_case.bytes = bytes;
        status = perf_bench_warm_up(worker, &bench_case);
        if (!perf_size_next(bytes, 0, 2, &bytes))
            break;
    }
    return status;
}

static enum perf_status measure_line(struct perf_worker *worker, struct perf_case bench_case)
{
    struct perf_run *run = worker->run;
    struct perf_sample out_of_place = {0}, in_place = {0};
    enum perf_status status;

    bench_case.in_place = false;
    status = perf_bench(worker, &bench_case, &out_of_place);
    bench_case.in_place = true;
    if (status == PERF_OK)
        status = perf_bench(worker, &bench_case, &in_place);
    if (status == PERF_OK && worker->prints) {
        run->bus_bandwidth_sum += out_of_place.bus_gbs + in_place.bus_gbs;
        run->bus_bandwidth_count += 2;
        run->compared +=
            (out_of_place.is_checked || in_place.is_checked) && perf_case_bytes(worker, &bench_case) > 0;
        perf_report_line(worker, &bench_case, &out_of_place, &in_place);
        if (run->json)
            perf_json_result(run->json, worker, &bench_case, &out_of_place, &in_place);
    }
    perf_iterations_free(&out_of_place.iterations);
    perf_iterations_free(&in_place.iterations);
    return status;
}

static enum perf_status sweep_sizes(struct perf_worker *worker, struct perf_case bench_case)
{
    const struct perf_options *options = &worker->run->options;
    enum perf_status status = warm_up(worker, bench_case);
    size_t bytes = options->min_bytes;

    while (bytes <= options->max_bytes && status == PERF_OK) {
        bench_case.bytes = bytes;
        status = measure_line(worker, bench_case);
        if (!perf_size_next(bytes, options->step_bytes, options->step_factor, &bytes))
            break;
    }
    return status;
}

static enum perf_status sweep_once(struct perf_worker *worker)
{
    struct perf_run *run = worker->run;
    const struct perf_collective *collective = run->collective;
    struct range types = range_of(run->options.type, PERF_TYPES);
    struct range ops = collective->op_text ? (struct range){0, 0} : range_of(run->options.op, PERF_OPS);
    struct range roots =
        collective->is_rooted ? range_of(run->options.root, (int)run->ranks) : (struct range){-1, -1};
    enum perf_status status = PERF_OK;

    for (int type = types.first; type <= types.last; type++) {
        if (!is_type_supported(worker, type))
            continue;
        for (int op = ops.first; op <= ops.last; op++)
            for (int root = roots.first; root <= roots.last && status == PERF_OK; root++)
                status = sweep_sizes(
                    worker,
                    (struct perf_case){.type = &perf_types[type], .op = (enum perf_op)op, .root = root});
    }
    return status;
}

/* Can these ranks run it at all? All workers of all groups agree, so that they stay in step. */
static enum perf_status ask_to_refuse(struct perf_worker *worker, bool *is_refused_out)
{
    struct perf_run *run = worker->run;
    const char *reason = run->collective->refuse ? run->collective->refuse(run->ranks) : NULL;
    double refused = reason != NULL;
    enum perf_status status = perf_team_reduce(&run->team, worker->index, PERF_COMBINE_MAX, &refused);

    if (status == PERF_OK && reason && worker->prints)
        printf("%s\n", reason);
    *is_refused_out = refused > 0;
    return status;
}

enum perf_status perf_sweep(struct perf_worker *worker)
{
    int cycles = worker->run->options.cycles;
    bool is_refused;
    enum perf_status status = ask_to_refuse(worker, &is_refused);

    for (int cycle = 0; (cycles == 0 || cycle < cycles) && status == PERF_OK && !is_refused; cycle++)
        status = sweep_once(worker);
    return status;
}
