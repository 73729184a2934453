/* json.c - the schema of the -J file. */
#include "json.h"
#include "json_writer.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define SCHEMA_VERSION 3
#define NAMES_TRIED 1000

extern char **environ;

struct perf_json {
    struct json_writer writer;
};

/* A file that nobody else has, so that an earlier result is never overwritten. */
static enum perf_status open_file(const char *path, FILE **file_out)
{
    char name[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    snprintf(name, sizeof(name), "%s", path);
    for (int i = 0; fd < 0 && errno == EEXIST && i < NAMES_TRIED; i++) {
        snprintf(name, sizeof(name), "%s.%d", path, i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    *file_out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!*file_out)
        return perf_fail(PERF_USAGE, "create the output file '%s' (-J): %s", name, strerror(errno));
    printf("# Writing JSON output to %s\n", name);
    return PERF_OK;
}

static bool is_json_name(const char *path)
{
    size_t length = strlen(path);

    return length >= 5 && strcasecmp(path + length - 5, ".json") == 0;
}

/* Of the environment, what bears on the result; the rest is nobody's business. */
static void write_environment(struct json_writer *w)
{
    static const char *const prefixes[] = {"NCCL_", "RONDO_", "CUDA_", "OMPI_COMM_WORLD_", "SLURM_"};

    json_begin(w, "env", '[');
    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
            if (strncmp(*variable, prefixes[i], strlen(prefixes[i])) == 0)
                json_string(w, NULL, *variable);
    json_end(w, ']');
}

static void write_config(struct json_writer *w, const struct perf_options *o)
{
    json_integer(w, "nthreads", o->threads);
    json_integer(w, "ngpus", o->gpus);
    json_integer(w, "minimum_bytes", (int64_t)o->min_bytes);
    json_integer(w, "maximum_bytes", (int64_t)o->max_bytes);
    if (o->step_factor > 1)
        json_integer(w, "step_factor", o->step_factor);
    else
        json_integer(w, "step_bytes", (int64_t)o->step_bytes);
    json_integer(w, "warmup_iters", o->warmup_iters);
    json_integer(w, "iterations", o->iters);
    json_integer(w, "aggregated_iterations", o->aggregated);
    json_integer(w, "validation", o->check_rounds);
    json_integer(w, "graph", o->graph_launches);
    json_bool(w, "blocking_collectives", o->blocking != 0);
    json_bool(w, "per_iter_timing", o->per_iteration);
    json_integer(w, "per_iter_skip", o->per_iteration_skip);
    json_bool(w, "parallel_init", o->parallel_init);
}

static void write_devices(struct json_writer *w, const struct perf_run *run)
{
    char text[64];

    json_begin(w, "devices", '[');
    for (int i = 0; i < run->identity.size * run->device_count; i++) {
        const struct perf_device_info *info = &run->infos[i];

        json_begin(w, NULL, '{');
        json_integer(w, "rank", info->rank);
        json_integer(w, "group", info->group);
        json_integer(w, "pid", info->pid);
        json_string(w, "hostname", info->host);
        json_integer(w, "device", info->device);
        snprintf(text, sizeof(text), "%04x:%02x:%02x", (unsigned)info->pci_domain, (unsigned)info->pci_bus,
                 (unsigned)info->pci_device);
        json_string(w, "device_hex", text);
        json_string(w, "device_info", info->name);
        json_end(w, '}');
    }
    json_end(w, ']');
}

enum perf_status perf_json_open(const struct perf_run *run, int argc, char **argv,
                                struct perf_json **json_out)
{
    struct perf_json *json;
    struct json_writer *w;
    enum perf_status status;
    char now[32];
    int version = 0;

    *json_out = NULL;
    if (!run->options.json_path)
        return PERF_OK;
    if (!is_json_name(run->options.json_path)) {
        printf("# Warning: the output file '%s' (-J) does not end in .json: nothing is written\n",
               run->options.json_path);
        return PERF_OK;
    }
    json = calloc(1, sizeof(*json));
    if (!json)
        return perf_fail(PERF_INTERNAL, "no memory for the output file");
    w = &json->writer;
    status = open_file(run->options.json_path, &w->file);
    if (status != PERF_OK) {
        free(json);
        return status;
    }
    ncclGetVersion(&version);
    perf_time_format(now, time(NULL));
    json_begin(w, NULL, '{');
    json_integer(w, "version", SCHEMA_VERSION);
    json_string(w, "start_time", now);
    json_begin(w, "args", '[');
    for (int i = 0; i < argc; i++)
        json_string(w, NULL, argv[i]);
    json_end(w, ']');
    write_environment(w);
    json_integer(w, "nccl_version", version);
    json_begin(w, "config", '{');
    write_config(w, &run->options);
    write_devices(w, run);
    json_end(w, '}');
    json_begin(w, "results", '[');
    *json_out = json;
    return PERF_OK;
}

static void write_iterations(struct json_writer *w, const char *key, const struct perf_iterations *it,
                             int processes)
{
    if (it->count == 0)
        return;
    json_begin(w, key, '{');
    json_integer(w, "skipped_iterations", it->skipped);
    json_number(w, "min_us", it->min);
    json_number(w, "max_us", it->max);
    json_number(w, "avg_us", it->average);
    json_number(w, "p50_us", it->p50);
    json_number(w, "p95_us", it->p95);
    json_number(w, "p99_us", it->p99);
    json_number(w, "stdev_us", it->deviation);
    json_number(w, "cv_pct", it->variation_percent);
    json_begin(w, "times_us", '[');
    for (int i = 0; i < it->count; i++)
        json_number(w, NULL, it->times_us[i]);
    json_end(w, ']');
    json_begin(w, "per_process_max_times_us", '[');
    for (int p = 0; p < processes; p++) {
        json_begin(w, NULL, '[');
        for (int i = 0; i < it->count; i++)
            json_number(w, NULL, it->rows_us[(size_t)p * (size_t)it->count + (size_t)i]);
        json_end(w, ']');
    }
    json_end(w, ']');
    json_end(w, '}');
}

static void write_side(struct json_writer *w, const char *key, const struct perf_run *run,
                       const struct perf_sample *sample)
{
    json_begin(w, key, '{');
    json_number(w, run->options.report_cpu_time ? "cpu_time" : "time", sample->time_us);
    json_number(w, "alg_bw", sample->algorithm_gbs);
    json_number(w, "bus_bw", sample->bus_gbs);
    if (sample->is_checked)
        json_number(w, "nwrong", sample->wrong);
    else
        json_string(w, "nwrong", NULL);
    json_end(w, '}');
}

void perf_json_result(struct perf_json *json, const struct perf_worker *worker,
                      const struct perf_case *bench_case, const struct perf_sample *out_of_place,
                      const struct perf_sample *in_place)
{
    struct json_writer *w = &json->writer;
    const struct perf_run *run = worker->run;
    char root[16];

    snprintf(root, sizeof(root), "%d", bench_case->root);
    json_begin(w, NULL, '{');
    json_integer(w, "size", (int64_t)perf_case_bytes(worker, bench_case));
    json_integer(w, "count", (int64_t)perf_case_shape(worker, bench_case, 0).param_count);
    json_string(w, "type", bench_case->type->name);
    json_string(w, "redop", perf_report_op(run, bench_case));
    json_string(w, "root", root);
    write_side(w, "out_of_place", run, out_of_place);
    write_iterations(w, "out_of_place_per_iter", &out_of_place->iterations, run->identity.size);
    write_side(w, "in_place", run, in_place);
    write_iterations(w, "in_place_per_iter", &in_place->iterations, run->identity.size);
    json_integer(w, "actual_iterations", run->options.iters);
    json_string(w, "experiment_name", NULL);
    json_end(w, '}');
    fflush(w->file);
}

void perf_json_close(struct perf_json *json, const struct perf_run *run, const char *error)
{
    struct json_writer *w;
    char now[32];

    if (!json)
        return;
    w = &json->writer;
    json_end(w, ']');
    json_begin(w, "out_of_bounds", '{');
    json_integer(w, "count", (int64_t)run->out_of_bounds);
    if (run->compared > 0 && !error)
        json_bool(w, "okay", run->out_of_bounds == 0);
    else
        json_string(w, "okay", NULL); /* not validated is not okay */
    json_end(w, '}');
    json_begin(w, "average_bus_bandwidth", '{');
    json_number(w, "bandwidth", perf_average_bus_bandwidth(run));
    if (run->options.min_bus_bandwidth >= 0)
        json_bool(w, "okay", perf_is_bandwidth_enough(run));
    else
        json_string(w, "okay", "unchecked");
    json_end(w, '}');
    json_begin(w, "errors", '[');
    if (error && *error)
        json_string(w, NULL, error);
    json_end(w, ']');
    perf_time_format(now, time(NULL));
    json_string(w, "end_time", now);
    json_end(w, '}');
    putc('\n', w->file);
    if (fclose(w->file) != 0)
        perf_fail(PERF_INTERNAL, "write the output file (-J): %s", strerror(errno));
    free(json);
}
