/* graph.c - -G: capture the iterations on each device's stream, then time launches of what was captured. */
#include "bench.h"

#include <stdlib.h>

struct graphs {
    int count;
    cudaGraph_t *graphs;
    cudaGraphExec_t *launchable;
};

static enum perf_status fail_graph(const char *what, cudaError_t error)
{
    if (error == cudaErrorNotSupported)
        return perf_fail(PERF_UNSUPPORTED, "-G: %s: %s", what, cudaGetErrorString(error));
    return perf_fail_cuda(what, error);
}

static enum perf_status begin_capture(struct perf_worker *worker)
{
    for (int d = 0; d < worker->run->options.gpus; d++) {
        cudaError_t error;

        cudaSetDevice(worker->devices[d].device);
        error = cudaStreamBeginCapture(worker->devices[d].stream, cudaStreamCaptureModeThreadLocal);
        if (error != cudaSuccess)
            return fail_graph("cudaStreamBeginCapture", error);
    }
    return PERF_OK;
}

static enum perf_status end_capture(struct perf_worker *worker, struct graphs *graphs)
{
    for (int d = 0; d < graphs->count; d++) {
        cudaError_t error;

        cudaSetDevice(worker->devices[d].device);
        error = cudaStreamEndCapture(worker->devices[d].stream, &graphs->graphs[d]);
        if (error != cudaSuccess)
            return fail_graph("cudaStreamEndCapture", error);
        error = cudaGraphInstantiate(&graphs->launchable[d], graphs->graphs[d], 0);
        if (error != cudaSuccess)
            return fail_graph("cudaGraphInstantiate", error);
    }
    return PERF_OK;
}

static enum perf_status launch_all(struct perf_worker *worker, struct graphs *graphs)
{
    for (int i = 0; i < worker->run->options.graph_launches; i++) {
        for (int d = 0; d < graphs->count; d++) {
            cudaError_t error;

            cudaSetDevice(worker->devices[d].device);
            error = cudaGraphLaunch(graphs->launchable[d], worker->devices[d].stream);
            if (error != cudaSuccess)
                return fail_graph("cudaGraphLaunch", error);
        }
    }
    return PERF_OK;
}

static void destroy_all(struct graphs *graphs)
{
    for (int d = 0; d < graphs->count; d++) {
        if (graphs->launchable && graphs->launchable[d])
            cudaGraphExecDestroy(graphs->launchable[d]);
        if (graphs->graphs && graphs->graphs[d])
            cudaGraphDestroy(graphs->graphs[d]);
    }
    free(graphs->launchable);
    free(graphs->graphs);
}

enum perf_status perf_bench_graph(struct perf_worker *worker, const struct perf_case *bench_case,
                                  double *seconds_out, double *cpu_seconds_out)
{
    struct perf_iteration_events none = {0};
    struct graphs graphs = {.count = worker->run->options.gpus};
    double start, excluded;
    enum perf_status status = PERF_OK;

    graphs.graphs = calloc((size_t)graphs.count, sizeof(*graphs.graphs));
    graphs.launchable = calloc((size_t)graphs.count, sizeof(*graphs.launchable));
    if (!graphs.graphs || !graphs.launchable)
        status = perf_fail(PERF_INTERNAL, "no memory for %d graphs", graphs.count);
    if (status == PERF_OK)
        status = begin_capture(worker);
    if (status == PERF_OK)
        status = perf_bench_iterations(worker, bench_case, &none, &excluded);
    if (status == PERF_OK)
        status = end_capture(worker, &graphs);
    if (status == PERF_OK)
        status = perf_team_barrier(&worker->run->team, worker->index);
    start = perf_now_s();
    if (status == PERF_OK)
        status = launch_all(worker, &graphs);
    *cpu_seconds_out = (perf_now_s() - start) / worker->run->options.graph_launches;
    if (status == PERF_OK)
        status = perf_bench_wait(worker);
    *seconds_out = (perf_now_s() - start) / worker->run->options.graph_launches;
    destroy_all(&graphs);
    return status;
}
