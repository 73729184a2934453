/* bench.c - enqueue, wait, and the clock around them. */
#include "bench.h"
#include "number.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/* On the CPU device a query runs what is ready and a synchronize sleeps when nothing is: a few queries catch
 * short operations without going to sleep, then the core is left to the other ranks. */
#define CPU_DEVICE_QUERIES 8

double perf_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct perf_shape perf_case_shape(const struct perf_worker *worker, const struct perf_case *bench_case,
                                  int device)
{
    const struct perf_type *type = bench_case->type;

    return worker->run->collective->shape(bench_case->bytes / type->bytes, type->bytes,
                                          worker->devices[device].rank, worker->run->ranks);
}

static size_t larger_count(const struct perf_shape *shape)
{
    return shape->send_count > shape->recv_count ? shape->send_count : shape->recv_count;
}

size_t perf_case_bytes(const struct perf_worker *worker, const struct perf_case *bench_case)
{
    struct perf_shape shape = perf_case_shape(worker, bench_case, 0);

    return larger_count(&shape) * bench_case->type->bytes;
}

struct perf_place perf_bench_place(const struct perf_worker *worker, const struct perf_case *bench_case,
                                   int device, size_t turn)
{
    const struct perf_device *d = &worker->devices[device];
    struct perf_shape shape = perf_case_shape(worker, bench_case, device);
    size_t bytes = bench_case->type->bytes;
    size_t total = larger_count(&shape) * bytes;
    size_t places = total > 0 ? worker->run->options.max_bytes / total : 1;
    size_t start = (size_t)worker->run->options.unalign * bytes + (places > 0 ? turn % places * total : 0);

    if (!bench_case->in_place)
        return (struct perf_place){.send = d->send + start, .recv = d->recv + start};
    return (struct perf_place){.send = d->recv + start + shape.in_place_send_start * bytes,
                               .recv = d->recv + start + shape.in_place_recv_start * bytes};
}

/* An operation of mulsum lives for one call: the library keeps what it needs. */
static ncclResult_t make_operation(const struct perf_case *bench_case, struct perf_call *call,
                                   const char **what)
{
    unsigned scalar = perf_mulsum_scalar(call->rank);
    uint64_t bits =
        bench_case->type->kind == PERF_REAL ? perf_number_encode(bench_case->type, scalar) : scalar;

    call->op = perf_op_nccl(bench_case->op);
    if (bench_case->op != PERF_MULSUM)
        return ncclSuccess;
    *what = "ncclRedOpCreatePreMulSum";
    return ncclRedOpCreatePreMulSum(&call->op, &bits, bench_case->type->id, ncclScalarHostImmediate,
                                    call->comm);
}

static ncclResult_t enqueue_device(struct perf_worker *worker, const struct perf_case *bench_case, int device,
                                   size_t turn, unsigned step, const char **what)
{
    const struct perf_device *d = &worker->devices[device];
    struct perf_place place = perf_bench_place(worker, bench_case, device, turn);
    struct perf_call call = {
        .send = place.send,
        .recv = place.recv,
        .count = perf_case_shape(worker, bench_case, device).param_count,
        .type = bench_case->type,
        .root = bench_case->root,
        .rank = d->rank,
        .ranks = worker->run->ranks,
        .comm = __atomic_load_n(&d->comm, __ATOMIC_ACQUIRE), /* pairs with the exchange in perf_comms_abort */
        .stream = d->stream,
    };
    ncclResult_t result;

    *what = "ncclCommAbort by another thread";
    if (!call.comm)
        return ncclInvalidUsage;
    if (worker->run->options.gpus > 1)
        cudaSetDevice(d->device);
    result = make_operation(bench_case, &call, what);
    if (result == ncclSuccess)
        result = worker->run->collective->enqueue(&call, step, what);
    if (bench_case->op == PERF_MULSUM && result == ncclSuccess) {
        *what = "ncclRedOpDestroy";
        result = ncclRedOpDestroy(call.op, call.comm);
    }
    return result;
}

static unsigned steps_of(const struct perf_worker *worker)
{
    const struct perf_collective *collective = worker->run->collective;

    return collective->steps ? collective->steps(worker->run->ranks) : 1;
}

enum perf_status perf_bench_enqueue(struct perf_worker *worker, const struct perf_case *bench_case,
                                    size_t turn)
{
    bool is_grouped = worker->run->options.gpus > 1;
    ncclResult_t result = ncclSuccess, end;
    const char *what = "ncclGroupStart";

    perf_watch_begin(&worker->run->watch, worker->index); /* until perf_bench_wait */
    for (unsigned step = 0; step < steps_of(worker) && result == ncclSuccess; step++) {
        if (is_grouped)
            result = ncclGroupStart();
        for (int d = 0; d < worker->run->options.gpus && result == ncclSuccess; d++)
            result = enqueue_device(worker, bench_case, d, turn, step, &what);
        if (!is_grouped)
            continue;
        end = ncclGroupEnd();
        if (result == ncclSuccess && end != ncclSuccess) {
            result = end;
            what = "ncclGroupEnd";
        }
    }
    if (result == ncclSuccess)
        return PERF_OK;
    if (perf_team_failure(&worker->run->team) != PERF_OK) /* then this is only its echo */
        return perf_team_failure(&worker->run->team);
    return perf_fail_nccl(what, result, NULL);
}

/* PERF_OK and *is_done_out false: some stream has work left. */
static enum perf_status query_streams(struct perf_worker *worker, bool *is_done_out)
{
    *is_done_out = true;
    for (int d = 0; d < worker->run->options.gpus; d++) {
        cudaError_t error;

        if (worker->run->options.gpus > 1)
            cudaSetDevice(worker->devices[d].device);
        error = cudaStreamQuery(worker->devices[d].stream);
        if (error == cudaErrorNotReady)
            *is_done_out = false;
        else if (error != cudaSuccess)
            return perf_fail_cuda("cudaStreamQuery", error);
    }
    return PERF_OK;
}

static enum perf_status synchronize_streams(struct perf_worker *worker)
{
    for (int d = 0; d < worker->run->options.gpus; d++) {
        cudaError_t error;

        if (worker->run->options.gpus > 1)
            cudaSetDevice(worker->devices[d].device);
        error = cudaStreamSynchronize(worker->devices[d].stream);
        if (error != cudaSuccess)
            return perf_fail_cuda("cudaStreamSynchronize", error);
    }
    return PERF_OK;
}

/* NCCL's errors become the run's before a result is looked at. */
static enum perf_status check_async_errors(struct perf_worker *worker)
{
    for (int d = 0; d < worker->run->options.gpus; d++) {
        ncclComm_t comm =
            __atomic_load_n(&worker->devices[d].comm, __ATOMIC_ACQUIRE); /* as in enqueue_device */
        ncclResult_t error = ncclSuccess;

        if (comm && ncclCommGetAsyncError(comm, &error) == ncclSuccess && error != ncclSuccess)
            return perf_fail_nccl("ncclCommGetAsyncError", error, comm);
    }
    return PERF_OK;
}

enum perf_status perf_bench_wait(struct perf_worker *worker)
{
    struct perf_run *run = worker->run;
    enum perf_status status = PERF_OK;
    bool is_done = false;

    perf_watch_begin(&run->watch, worker->index);
    for (int i = 0; status == PERF_OK && !is_done; i++) {
        status = query_streams(worker, &is_done);
        if (status != PERF_OK || is_done)
            break;
        if (perf_team_failure(&run->team) != PERF_OK) /* the watch thread aborts what we wait for */
            break;
        if (run->is_cpu_device && i == CPU_DEVICE_QUERIES) {
            status = synchronize_streams(worker);
            is_done = true;
        } else {
            sched_yield();
        }
    }
    perf_watch_end(&run->watch, worker->index);
    if (perf_team_failure(&run->team) != PERF_OK)
        return perf_team_failure(&run->team);
    return status == PERF_OK ? check_async_errors(worker) : status;
}

enum perf_status perf_bench_warm_up(struct perf_worker *worker, const struct perf_case *bench_case)
{
    enum perf_status status = PERF_OK;

    for (int i = 0; i < worker->run->options.warmup_iters && status == PERF_OK; i++)
        status = perf_bench_enqueue(worker, bench_case, (size_t)i);
    return status == PERF_OK ? perf_bench_wait(worker) : status;
}

static enum perf_status one_iteration(struct perf_worker *worker, const struct perf_case *bench_case,
                                      size_t turn)
{
    const struct perf_options *options = &worker->run->options;
    bool waits_each = options->blocking == 1 || options->blocking == 2;
    /* Steps of one operation build on each other, so they cannot share a group. */
    bool is_grouped = options->aggregated > 1 && !waits_each && steps_of(worker) == 1;
    enum perf_status status = PERF_OK;
    ncclResult_t result;

    if (is_grouped && (result = ncclGroupStart()) != ncclSuccess)
        return perf_fail_nccl("ncclGroupStart", result, NULL);
    for (int a = 0; a < options->aggregated && status == PERF_OK; a++) {
        status = perf_bench_enqueue(worker, bench_case, turn * (size_t)options->aggregated + (size_t)a);
        if (status == PERF_OK && waits_each)
            status = perf_bench_wait(worker);
        if (status == PERF_OK && options->blocking == 1)
            status = perf_team_barrier(&worker->run->team, worker->index);
    }
    if (is_grouped && (result = ncclGroupEnd()) != ncclSuccess && status == PERF_OK)
        status = perf_fail_nccl("ncclGroupEnd", result, NULL);
    return status;
}

enum perf_status perf_bench_iterations(struct perf_worker *worker, const struct perf_case *bench_case,
                                       struct perf_iteration_events *events, double *excluded_out)
{
    enum perf_status status = perf_iteration_events_record(worker, events, 0);

    *excluded_out = 0;
    for (int i = 0; i < worker->run->options.iters && status == PERF_OK; i++) {
        status = one_iteration(worker, bench_case, (size_t)i);
        if (status == PERF_OK && worker->run->options.blocking == 3) {
            double start;

            status = perf_bench_wait(worker);
            start = perf_now_s();
            if (status == PERF_OK)
                status = perf_team_barrier(&worker->run->team, worker->index);
            *excluded_out += perf_now_s() - start;
        }
        if (status == PERF_OK)
            status = perf_iteration_events_record(worker, events, i + 1);
    }
    return status;
}

/* Time the iterations: seconds of all of them, and of their enqueueing alone. */
static enum perf_status time_iterations(struct perf_worker *worker, const struct perf_case *bench_case,
                                        double *seconds_out, double *cpu_seconds_out,
                                        struct perf_sample *sample)
{
    const struct perf_options *options = &worker->run->options;
    struct perf_iteration_events events;
    double start, excluded = 0;
    enum perf_status status =
        perf_iteration_events_create(worker, options->per_iteration ? options->iters : 0, &events);

    if (status == PERF_OK)
        status = perf_team_barrier(&worker->run->team, worker->index);
    start = perf_now_s();
    if (status == PERF_OK)
        status = perf_bench_iterations(worker, bench_case, &events, &excluded);
    *cpu_seconds_out = perf_now_s() - start - excluded;
    if (status == PERF_OK)
        status = perf_bench_wait(worker);
    *seconds_out = perf_now_s() - start - excluded;
    if (status == PERF_OK)
        status = perf_iterations_read(worker, &events, &sample->iterations);
    perf_iteration_events_destroy(&events);
    return status;
}

/* One time from those of all threads, as -a says. */
static enum perf_status combine_times(struct perf_worker *worker, double *time)
{
    static const enum perf_combine ways[] = {PERF_COMBINE_FIRST, PERF_COMBINE_SUM, PERF_COMBINE_MIN,
                                             PERF_COMBINE_MAX};
    struct perf_run *run = worker->run;
    enum perf_status status = perf_team_reduce(&run->team, worker->index, ways[run->options.average], time);

    if (run->options.average == 1)
        *time /= (double)run->identity.size * run->options.threads;
    return status;
}

static enum perf_status measure(struct perf_worker *worker, const struct perf_case *bench_case,
                                struct perf_sample *sample)
{
    struct perf_run *run = worker->run;
    const struct perf_options *options = &run->options;
    struct perf_shape shape = perf_case_shape(worker, bench_case, 0);
    double seconds = 0, cpu_seconds = 0, bytes;
    int operations = options->iters * options->aggregated;
    enum perf_status status;

    status = perf_bench_enqueue(worker, bench_case, 0);
    if (status == PERF_OK)
        status = perf_bench_wait(worker);
    if (status == PERF_OK)
        status = options->graph_launches > 0
                     ? perf_bench_graph(worker, bench_case, &seconds, &cpu_seconds)
                     : time_iterations(worker, bench_case, &seconds, &cpu_seconds, sample);
    if (status == PERF_OK)
        status = combine_times(worker, &seconds);
    if (status == PERF_OK)
        status = combine_times(worker, &cpu_seconds);
    if (status != PERF_OK)
        return status;
    seconds /= operations > 0 ? operations : 1;
    cpu_seconds /= operations > 0 ? operations : 1;
    bytes = run->collective->algorithm_bytes(&shape, bench_case->type->bytes, run->ranks);
    sample->time_us = (options->report_cpu_time ? cpu_seconds : seconds) * 1e6;
    sample->algorithm_gbs = seconds > 0 ? bytes / seconds * 1e-9 : 0;
    sample->bus_gbs = sample->algorithm_gbs * run->collective->bus_factor(run->ranks);
    return PERF_OK;
}

enum perf_status perf_bench(struct perf_worker *worker, const struct perf_case *bench_case,
                            struct perf_sample *sample_out)
{
    const struct perf_options *options = &worker->run->options;
    bool is_checked =
        options->check_rounds > 0 && (!bench_case->in_place || worker->run->collective->verifies_in_place);
    enum perf_status status = PERF_OK;
    double wrong, local_wrong = 0;

    *sample_out = (struct perf_sample){.is_checked = is_checked};
    if (options->check_rounds > 0)
        status = perf_check_fill(worker, bench_case, 99);
    if (status == PERF_OK)
        status = measure(worker, bench_case, sample_out);
    for (int i = 0; i < options->check_rounds && is_checked && status == PERF_OK && sample_out->wrong == 0;
         i++) {
        status = perf_check_round(worker, bench_case, ++worker->round, &wrong);
        local_wrong = wrong;
        if (status == PERF_OK)
            status = perf_team_reduce(&worker->run->team, worker->index, PERF_COMBINE_SUM, &wrong);
        sample_out->wrong = wrong;
    }
    worker->errors += local_wrong > 0;
    return status;
}
