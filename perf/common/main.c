/* main.c - a run from argv to exit status. */
#include "json.h"
#include "report.h"
#include "sizes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What tells processes where they are: who shares a host, and a group. */
struct place {
    char host[256];
    char boot[64];
    int color;
    int devices;
};

static void read_boot_id(char *text, size_t bytes)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, bytes - 1) : 0;

    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static bool is_same_host(const struct place *a, const struct place *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->boot, b->boot) == 0;
}

/* Without a GPU there are as many devices as asked for; ask for what this run needs, unless the user has.
 * Before the first CUDA call. */
static void provide_cpu_devices(const struct perf_run *run)
{
    int first = run->options.first_device;
    int needed = run->local_processes * run->device_count;
    char text[16];

    if (first >= 0)
        needed = first + run->device_count;
    snprintf(text, sizeof(text), "%d", needed > 8 ? needed : 8);
    setenv("RONDO_CPU_DEVICES", text, 0);
}

static enum perf_status find_place(struct perf_run *run)
{
    struct place mine = {.devices = run->device_count};
    struct place *all = calloc((size_t)run->identity.size, sizeof(*all));
    enum perf_status status = PERF_OK;

    if (!all)
        return perf_fail(PERF_INTERNAL, "no memory for the places of %d processes", run->identity.size);
    snprintf(mine.host, sizeof(mine.host), "%s", perf_host_name());
    read_boot_id(mine.boot, sizeof(mine.boot));
    if (!perf_split_color(run->identity.rank, getenv("NCCL_TESTS_SPLIT"), getenv("NCCL_TESTS_SPLIT_MASK"),
                          &mine.color))
        status = perf_fail(PERF_USAGE,
                           "NCCL_TESTS_SPLIT or NCCL_TESTS_SPLIT_MASK is not understood: give an operator "
                           "(AND & OR | MOD %% DIV /) and a number; the mask is one in hex");
    if (status == PERF_OK)
        status = perf_rendezvous_exchange(run->rendezvous, "places", &mine, sizeof(mine), all);
    for (int p = 0; p < run->identity.size && status == PERF_OK; p++) {
        bool is_before = p < run->identity.rank;

        if (all[p].devices != mine.devices)
            status = perf_fail(
                PERF_USAGE, "rank %d has %d devices (-t times -g), rank %d has %d: start all with the same",
                p, all[p].devices, run->identity.rank, mine.devices);
        run->local_rank += is_before && is_same_host(&all[p], &mine);
        run->local_processes += is_same_host(&all[p], &mine);
        run->group_process += is_before && all[p].color == mine.color;
        run->group_processes += all[p].color == mine.color;
    }
    run->group = mine.color;
    run->ranks = (unsigned)(run->group_processes * run->device_count);
    free(all);
    return status;
}

/* Rank 0 of each group makes an id, and all of them go to everybody. */
static enum perf_status share_unique_id(struct perf_run *run)
{
    struct tagged {
        int color;
        int is_root;
        ncclUniqueId id;
    } mine = {.color = run->group, .is_root = run->group_process == 0};
    struct tagged *all = calloc((size_t)run->identity.size, sizeof(*all));
    enum perf_status status = PERF_OK;
    ncclResult_t result;

    if (!all)
        return perf_fail(PERF_INTERNAL, "no memory for the ids of %d processes", run->identity.size);
    result = mine.is_root ? ncclGetUniqueId(&mine.id) : ncclSuccess;
    if (result != ncclSuccess)
        status = perf_fail_nccl("ncclGetUniqueId", result, NULL);
    if (status == PERF_OK)
        status = perf_rendezvous_exchange(run->rendezvous, "unique ids", &mine, sizeof(mine), all);
    for (int p = 0; p < run->identity.size && status == PERF_OK; p++)
        if (all[p].is_root && all[p].color == run->group)
            run->unique_id = all[p].id;
    free(all);
    return status;
}

/* Device memory in use on this process's first device. */
static int64_t used_memory(const struct perf_run *run)
{
    size_t free_bytes = 0, total = 0;

    if (!run->options.report_memory || cudaSetDevice(run->devices[0].device) != cudaSuccess ||
        cudaMemGetInfo(&free_bytes, &total) != cudaSuccess)
        return 0;
    return (int64_t)(total - free_bytes);
}

static enum perf_status open_worker(struct perf_run *run, struct perf_device *devices, int count, int worker)
{
    int64_t before = used_memory(run), between;
    enum perf_status status;

    perf_watch_begin(&run->watch, worker);
    status = perf_comms_open(run, devices, count);
    perf_watch_end(&run->watch, worker);
    between = used_memory(run);
    if (status == PERF_OK)
        status = perf_buffers_open(run, devices, count);
    if (worker == 0) {
        run->memory_init = between - before;
        run->memory_buffers = used_memory(run) - between;
    }
    return status;
}

static void *worker_main(void *argument)
{
    struct perf_worker *worker = argument;
    struct perf_run *run = worker->run;
    enum perf_status status = PERF_OK;

    if (run->options.parallel_init)
        status = open_worker(run, worker->devices, run->options.gpus, worker->index);
    if (status == PERF_OK)
        status = perf_sweep(worker);
    if (status != PERF_OK) {
        perf_team_fail(&run->team, status);
        perf_comms_abort(run); /* siblings may wait for operations that we will never join */
    }
    perf_watch_end(&run->watch, worker->index);
    return NULL;
}

/* Run all workers, this thread as the first; count the results with errors over everything. */
static enum perf_status run_workers(struct perf_run *run)
{
    struct perf_worker *workers = calloc((size_t)run->options.threads, sizeof(*workers));
    pthread_t *threads = calloc((size_t)run->options.threads, sizeof(*threads));
    enum perf_status status = PERF_OK;
    int started = 1;

    if (!workers || !threads)
        status = perf_fail(PERF_INTERNAL, "no memory for %d threads", run->options.threads);
    for (int t = 0; t < run->options.threads && status == PERF_OK; t++) {
        workers[t] = (struct perf_worker){.run = run,
                                          .index = t,
                                          .devices = &run->devices[t * run->options.gpus],
                                          .prints = run->identity.rank == 0 && t == 0};
        if (t > 0 && pthread_create(&threads[t], NULL, worker_main, &workers[t]) != 0)
            status = perf_fail(PERF_INTERNAL, "start thread %d", t);
        started += t > 0 && status == PERF_OK;
    }
    if (status == PERF_OK)
        worker_main(&workers[0]);
    else
        perf_team_fail(&run->team, status);
    for (int t = 1; t < started; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < run->options.threads && workers; t++)
        run->out_of_bounds += workers[t].errors;
    free(threads);
    free(workers);
    return perf_team_failure(&run->team);
}

static enum perf_status add_up_errors(struct perf_run *run)
{
    double *rows = calloc((size_t)run->identity.size, sizeof(double));
    enum perf_status status;

    if (!rows)
        return perf_fail(PERF_INTERNAL, "no memory for the errors of %d processes", run->identity.size);
    status = perf_rendezvous_exchange(run->rendezvous, "errors", &run->out_of_bounds, sizeof(double), rows);
    run->out_of_bounds = 0;
    for (int p = 0; p < run->identity.size && status == PERF_OK; p++)
        run->out_of_bounds += rows[p];
    free(rows);
    return status;
}

static enum perf_status measure(struct perf_run *run, int argc, char **argv)
{
    bool is_root = run->identity.rank == 0;
    enum perf_status status;
    int64_t before;

    if (is_root)
        perf_report_header(run);
    status = perf_comms_prepare(run);
    if (status == PERF_OK && is_root) {
        perf_report_devices(run);
        perf_report_hint(run);
    }
    if (status == PERF_OK)
        perf_comms_limit_sizes(run);
    if (status == PERF_OK && is_root) {
        status = perf_json_open(run, argc, argv, &run->json);
    }
    if (status == PERF_OK)
        status = share_unique_id(run);
    if (status == PERF_OK)
        status = perf_watch_start(&run->watch, run, run->options.threads);
    if (status == PERF_OK && !run->options.parallel_init)
        status = open_worker(run, run->devices, run->device_count, 0);
    if (status != PERF_OK)
        return status;
    if (is_root)
        perf_report_columns(run);
    before = used_memory(run);
    status = run_workers(run);
    run->memory_operations = used_memory(run) - before;
    return status == PERF_OK ? add_up_errors(run) : status;
}

/* The run is over, well or not: undo everything, and say how it went. */
static enum perf_status conclude(struct perf_run *run, enum perf_status status)
{
    enum perf_status closing = PERF_OK;

    if (status != PERF_OK) {
        perf_team_fail(&run->team, status); /* tells the other processes */
        if (run->devices)
            perf_comms_abort(run);
    }
    if (run->devices) {
        closing = perf_buffers_close(run);
        if (closing == PERF_OK)
            closing = perf_comms_close(run);
        status = status == PERF_OK ? closing : status;
    }
    if (status == PERF_OK && run->identity.rank == 0)
        perf_report_footer(run);
    if (status == PERF_OK &&
        (run->out_of_bounds > 0 || (run->identity.rank == 0 && !perf_is_bandwidth_enough(run))))
        status = PERF_WRONG;
    perf_json_close(run->json, run,
                    status == PERF_OK || status == PERF_WRONG ? NULL : ncclGetLastError(NULL));
    perf_watch_stop(&run->watch);
    return status;
}

static void warn_of_missed_injection(const struct perf_run *run)
{
    int first = run->group_process * run->device_count;
    bool is_mine = run->options.inject_rank >= first && run->options.inject_rank < first + run->device_count;
    bool is_nobodys = run->options.inject_rank >= (int)run->ranks && run->identity.rank == 0;

    if ((is_mine || is_nobodys) && !run->is_injected)
        fprintf(stderr,
                "RONDO_PERF_INJECT has damaged nothing: no verified result of rank %d has byte %llu\n",
                run->options.inject_rank, (unsigned long long)run->options.inject_offset);
}

static int run_process(struct perf_run *run, int argc, char **argv)
{
    enum perf_status status = perf_rendezvous_open(&run->identity, &run->rendezvous);

    if (status != PERF_OK)
        return status;
    perf_team_init(&run->team, run->rendezvous, run->identity.size, run->options.threads);
    run->device_count = run->options.threads * run->options.gpus;
    if (run->options.timeout_s > 0) /* others may still verify, on cores that they share */
        perf_rendezvous_limit(run->rendezvous, 2 * run->options.timeout_s + 10);
    status = find_place(run);
    if (status == PERF_OK) {
        provide_cpu_devices(run);
        status = measure(run, argc, argv);
    }
    status = conclude(run, status);
    if (status == PERF_OK)
        warn_of_missed_injection(run);
    perf_team_fini(&run->team);
    perf_rendezvous_close(run->rendezvous);
    free(run->devices);
    free(run->infos);
    fflush(stdout);
    return status;
}

int perf_main(int argc, char **argv, const struct perf_collective *collective)
{
    struct perf_run run = {.collective = collective};
    FILE *talk = stdout, *nothing = NULL;
    int exit_status;
    enum perf_parse parse;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (perf_identity_read(&run.identity) != PERF_OK)
        return PERF_USAGE;
    if (run.identity.rank > 0 && (nothing = fopen("/dev/null", "w")) != NULL)
        talk = nothing; /* one process speaks for all */
    parse = perf_options_parse(argc, argv, talk, stderr, &run.options, &exit_status);
    if (nothing)
        fclose(nothing);
    if (parse == PERF_PARSE_EXIT)
        return exit_status;
    if (run.options.procs > 0 && run.identity.size > 1) {
        fprintf(stderr, "--procs %d, but %s has started %d processes already: use one of the two\n",
                run.options.procs, run.identity.launcher, run.identity.size);
        return PERF_USAGE;
    }
    if (run.options.procs > 1 && !perf_launch_local(run.options.procs, &run.identity, &exit_status))
        return exit_status;
    return run_process(&run, argc, argv);
}
