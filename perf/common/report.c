/* report.c - the table, its head and its foot. */
#include "report.h"

#include <stdio.h>
#include <string.h>

#define COMPATIBLE_VERSION "2.19.6-rondo" /* of the programs whose output this is */

void perf_number_format(char *text, size_t bytes, double value, int width)
{
    for (int decimals = 2; decimals >= 0; decimals--)
        if (snprintf(text, bytes, "%.*f", decimals, value) <= width)
            return;
    snprintf(text, bytes, width >= 7 ? "%.1e" : "%.0e", value);
}

void perf_time_format(char *text, time_t when)
{
    struct tm parts;

    localtime_r(&when, &parts);
    strftime(text, 32, "%Y-%m-%d %H:%M:%S", &parts);
}

const char *perf_report_op(const struct perf_run *run, const struct perf_case *bench_case)
{
    return run->collective->op_text ? run->collective->op_text : perf_op_names[bench_case->op];
}

double perf_average_bus_bandwidth(const struct perf_run *run)
{
    return run->bus_bandwidth_count ? run->bus_bandwidth_sum / (double)run->bus_bandwidth_count : 0;
}

bool perf_is_bandwidth_enough(const struct perf_run *run)
{
    return perf_average_bus_bandwidth(run) >= 0.9 * run->options.min_bus_bandwidth;
}

void perf_report_header(const struct perf_run *run)
{
    const struct perf_options *o = &run->options;
    int library = 0;

    ncclGetVersion(&library);
    printf("# nccl-tests version %s nccl-headers=%d nccl-library=%d\n", COMPATIBLE_VERSION, NCCL_VERSION_CODE,
           library);
    printf("# Collective test starting: %s\n", run->collective->program);
    printf("# nThread %d nGpus %d minBytes %ld maxBytes %ld step: %ld(%s) warmup iters: %d iters: %d agg "
           "iters: %d "
           "validation: %d graph: %d unalign: %d\n",
           o->threads, o->gpus, (long)o->min_bytes, (long)o->max_bytes,
           o->step_factor > 1 ? (long)o->step_factor : (long)o->step_bytes,
           o->step_factor > 1 ? "factor" : "bytes", o->warmup_iters, o->iters, o->aggregated, o->check_rounds,
           o->graph_launches, o->unalign);
    if (o->blocking)
        printf("# Blocking Enabled: %s\n", o->blocking == 1   ? "wait and barrier after each operation"
                                           : o->blocking == 2 ? "wait after each operation"
                                                              : "wait and barrier after each iteration");
    if (o->per_iteration)
        printf("# Per-Iteration Report: enabled, skipping %d\n", o->per_iteration_skip);
    if (o->parallel_init)
        printf("# Parallel Init Enabled: threads call into NCCL concurrently\n");
    printf("#\n");
}

void perf_report_devices(const struct perf_run *run)
{
    printf("# Using devices\n");
    for (int i = 0; i < run->identity.size * run->device_count; i++) {
        const struct perf_device_info *info = &run->infos[i];

        printf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s\n", info->rank,
               info->group, info->pid, info->host, info->device, (unsigned)info->pci_domain,
               (unsigned)info->pci_bus, (unsigned)info->pci_device, info->name);
    }
}

void perf_report_hint(const struct perf_run *run)
{
    bool is_asked_for = run->options.procs > 0 || strcmp(run->identity.launcher, "none") != 0;

    if (run->identity.size * run->device_count > 1 || is_asked_for)
        return;
    printf("# Hint: one rank has nobody to exchange data with. For more: --procs <n>, -t <threads>, "
           "-g <devices>, or mpirun -np <n>\n");
}

/* One side's columns of -I: heading, and unit. */
static const char *iteration_columns(const struct perf_run *run, bool is_unit)
{
    if (!run->options.per_iteration)
        return "";
    return is_unit ? "     (us)     (us)     (us)      (%)" : "    i_min    i_max    i_p99    i_cv%";
}

void perf_report_columns(const struct perf_run *run)
{
    const char *time = run->options.report_cpu_time ? "cputime" : "time";
    int stamp = run->options.report_timestamps ? 20 : 0;

    printf("#\n");
    if (run->options.per_iteration)
        printf("# %10s  %12s  %8s  %6s  %6s           out-of-place (+ per-iteration)                         "
               "           "
               "     in-place (+ per-iteration)\n",
               "", "", "", "", "");
    else
        printf(
            "# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          \n",
            "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s%s  %7s  %6s  %6s  %6s%s %*s\n", "size", "count",
           "type", "redop", "root", time, "algbw", "busbw", "#wrong", iteration_columns(run, false), time,
           "algbw", "busbw", "#wrong", iteration_columns(run, false), stamp, stamp ? "timestamp" : "");
    printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s%s  %7s  %6s  %6s  %6s%s %*s\n", "(B)",
           "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", iteration_columns(run, true), "(us)",
           "(GB/s)", "(GB/s)", "", iteration_columns(run, true), stamp, "");
}

static void print_side(const struct perf_sample *sample)
{
    char time[32], algorithm[32], bus[32], numbers[4][32];

    perf_number_format(time, sizeof(time), sample->time_us, 7);
    perf_number_format(algorithm, sizeof(algorithm), sample->algorithm_gbs, 6);
    perf_number_format(bus, sizeof(bus), sample->bus_gbs, 6);
    printf("  %7s  %6s  %6s", time, algorithm, bus);
    if (sample->is_checked)
        printf("  %6g", sample->wrong);
    else
        printf("  %6s", "N/A");
    if (sample->iterations.count == 0)
        return;
    perf_number_format(numbers[0], 32, sample->iterations.min, 7);
    perf_number_format(numbers[1], 32, sample->iterations.max, 7);
    perf_number_format(numbers[2], 32, sample->iterations.p99, 7);
    perf_number_format(numbers[3], 32, sample->iterations.variation_percent, 7);
    printf("  %7s  %7s  %7s  %7s", numbers[0], numbers[1], numbers[2], numbers[3]);
}

void perf_report_line(const struct perf_worker *worker, const struct perf_case *bench_case,
                      const struct perf_sample *out_of_place, const struct perf_sample *in_place)
{
    struct perf_shape shape = perf_case_shape(worker, bench_case, 0);
    size_t bytes = perf_case_bytes(worker, bench_case);
    char root[16], stamp[32];

    snprintf(root, sizeof(root), "%6i", bench_case->root);
    if (bytes != bench_case->bytes && bench_case->bytes % bench_case->type->bytes != 0)
        printf("# %zu bytes rounded down to %zu: whole elements of %u bytes\n", bench_case->bytes, bytes,
               bench_case->type->bytes);
    printf("%12li  %12li  %8s  %6s  %6s", (long)bytes, (long)shape.param_count, bench_case->type->name,
           perf_report_op(worker->run, bench_case), root);
    print_side(out_of_place);
    print_side(in_place);
    if (worker->run->options.report_timestamps) {
        perf_time_format(stamp, time(NULL));
        printf("%21s", stamp);
    }
    printf("\n");
}

static void format_memory(char *text, size_t bytes, int64_t amount)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)(amount > 0 ? amount : 0);
    int unit = 0;

    while (value >= 1024 && unit < 4) {
        value /= 1024;
        unit++;
    }
    snprintf(text, bytes, "%.2f %s", value, units[unit]);
}

static void print_memory(const struct perf_run *run)
{
    char texts[4][32];

    format_memory(texts[0], 32, run->memory_init);
    format_memory(texts[1], 32, run->memory_buffers);
    format_memory(texts[2], 32, run->memory_operations);
    format_memory(texts[3], 32, run->memory_init + run->memory_buffers + run->memory_operations);
    printf("# %-20s : Initialization %s | User-Allocated %s | Collective %s | Total  %s\n",
           "GPU memory usage", texts[0], texts[1], texts[2], texts[3]);
}

void perf_report_footer(const struct perf_run *run)
{
    const char *last = ncclGetLastError(NULL);
    bool is_validated = run->compared > 0;
    const char *verdict = !is_validated ? "(not validated)" : run->out_of_bounds > 0 ? "FAILED" : "OK";

    printf("# %-20s : %d %s\n", "Out of bounds values", (int)run->out_of_bounds, verdict);
    printf("# %-20s : %g %s\n", "Avg bus bandwidth", perf_average_bus_bandwidth(run),
           run->options.min_bus_bandwidth < 0 ? ""
           : perf_is_bandwidth_enough(run)    ? "OK"
                                              : "FAILED");
    printf("#\n");
    printf("# Collective test concluded: %s\n", run->collective->program);
    if (run->options.report_memory)
        print_memory(run);
    printf("#\n");
    if (last && *last)
        printf("# error: %s\n", last);
    else
        printf("\n");
}
