/* options.c - the command line, letter for letter that of the programs these replace, and --procs. */
#include "options.h"
#include "elements.h"
#include "failure.h"
#include "sizes.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_BAD_OPTION 255

enum { OPTION_PROCS = 0x100 };

/* One option: its letter, its long name, and where an integer argument goes (the others are treated by hand).
 */
struct option_row {
    const char *name;
    int letter;
    bool has_argument;
    size_t field; /* offset of an int in struct perf_options */
    bool is_flag; /* that int is a bool */
    const char *help;
};

#define NONE SIZE_MAX
#define INT_FIELD(name) offsetof(struct perf_options, name), false
#define BOOL_FIELD(name) offsetof(struct perf_options, name), true

static const struct option_row rows[] = {
    {"procs", OPTION_PROCS, true, INT_FIELD(procs), "<n>  start n processes on this host"},
    {"nthreads", 't', true, INT_FIELD(threads), "<n>  threads per process"},
    {"ngpus", 'g', true, INT_FIELD(gpus), "<n>  devices per thread"},
    {"minbytes", 'b', true, NONE, false, "<size>  first size, with K, M or G"},
    {"maxbytes", 'e', true, NONE, false, "<size>  last size"},
    {"stepbytes", 'i', true, NONE, false, "<size>  added from size to size"},
    {"stepfactor", 'f', true, INT_FIELD(step_factor), "<n>  multiplies from size to size, when above 1"},
    {"iters", 'n', true, INT_FIELD(iters), "<n>  timed iterations"},
    {"agg_iters", 'm', true, INT_FIELD(aggregated), "<n>  operations per iteration, in one group"},
    {"warmup_iters", 'w', true, INT_FIELD(warmup_iters), "<n>  iterations before the timed ones"},
    {"run_cycles", 'N', true, INT_FIELD(cycles), "<n>  repeat everything, 0: for ever"},
    {"parallel_init", 'p', true, BOOL_FIELD(parallel_init), "<0/1>  each thread makes its own communicators"},
    {"check", 'c', true, INT_FIELD(check_rounds), "<n>  rounds of verification, 0: none"},
    {"op", 'o', true, NONE, false, "<name/all>  operation, see below"},
    {"datatype", 'd', true, NONE, false, "<name/all>  type of the elements, see below"},
    {"root", 'r', true, NONE, false, "<rank>  of rooted operations, -1: each in turn"},
    {"blocking", 'z', true, INT_FIELD(blocking),
     "<0..3>  wait after each operation (1 with barrier, 2) or iteration (3)"},
    {"stream_null", 'y', true, BOOL_FIELD(null_stream), "<0/1>  use the NULL stream"},
    {"timeout", 'T', true, INT_FIELD(timeout_s), "<s>  give up on a wait after so many seconds, exit 4"},
    {"cudagraph", 'G', true, INT_FIELD(graph_launches),
     "<n>  capture the iterations and replay them n times; not in this version of the library: exit 5"},
    {"report_cputime", 'C', true, BOOL_FIELD(report_cpu_time), "<0/1>  report the time of enqueueing"},
    {"report_timestamps", 'S', true, BOOL_FIELD(report_timestamps),
     "<0/1>  add a column with the time of day"},
    {"output_file", 'J', true, NONE, false, "<path>  write JSON too, if it ends in .json"},
    {"average", 'a', true, INT_FIELD(average), "<0..3>  time over ranks: rank 0, mean, min, max"},
    {"local_register", 'R', true, INT_FIELD(registration),
     "<0..2>  register buffers, 2: symmetric windows; not in this version of the library: exit 3"},
    {"cta_policy", 'x', true, INT_FIELD(cta_policy),
     "<0..2>  ncclConfig_t.CTAPolicy; this version of the library takes it and does nothing with it"},
    {"device_implementation", 'D', true, INT_FIELD(device_api),
     "<n>  device interface kernel, needs -R 2; not in these programs: exit 5"},
    {"device_cta_count", 'V', true, INT_FIELD(device_ctas), "<n>  1..128 blocks for -D; no effect without"},
    {"memory", 'M', true, BOOL_FIELD(report_memory), "<0/1>  report device memory used"},
    {"unalign", 'u', true, INT_FIELD(unalign), "<elements>  shift both buffers"},
    {"per_iter_timing", 'I', true, BOOL_FIELD(per_iteration), "<0/1>  time every iteration"},
    {"per_iter_skip", 'K', true, INT_FIELD(per_iteration_skip),
     "<n>  leave the first n out of -I's statistics"},
    {"help", 'h', false, NONE, false, ""},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct perf_options defaults = {
    .threads = 1,
    .gpus = 1,
    .min_bytes = 32 << 20,
    .max_bytes = 32 << 20,
    .step_bytes = 1 << 20,
    .step_factor = 1,
    .iters = 20,
    .aggregated = 1,
    .warmup_iters = 1,
    .cycles = 1,
    .check_rounds = 1,
    .op = PERF_SUM,
    .type = 7, /* float */
    .average = 1,
    .cta_policy = -1,
    .device_ctas = 16,
    .inject_rank = -1,
    .min_bus_bandwidth = -1,
    .first_device = -1,
};

static void print_names(FILE *out)
{
    fprintf(out, "operations (-o):");
    for (int i = 0; i < PERF_OPS; i++)
        fprintf(out, " %s", perf_op_names[i]);
    fprintf(out, "; all: each in turn\n"
                 "  mulsum is a sum that counts the odd ranks' elements twice (ncclRedOpCreatePreMulSum)\n"
                 "types (-d):");
    for (int i = 0; i < PERF_TYPES; i++)
        fprintf(out, " %s", perf_types[i].name);
    fprintf(out,
            "; all: each in turn,\n"
            "  without the two f8 on a GPU before compute capability 9.0\n"
            "  As in nccl-tests an unknown name is no error: a line says so, and the run goes on with "
            "%s or %s.\n",
            perf_op_names[defaults.op], perf_types[defaults.type].name);
}

static void print_usage(FILE *out, const char *program)
{
    const char *base = strrchr(program, '/');

    fprintf(out, "usage: %s [options]\n", base ? base + 1 : program);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].letter < 0x100)
            fprintf(out, "  -%c,--%s %s\n", rows[i].letter, rows[i].name, rows[i].help);
        else
            fprintf(out, "     --%s %s\n", rows[i].name, rows[i].help);
    }
    print_names(out);
    fprintf(out,
            "environment:\n"
            "  NCCL_TESTS_DEVICE           first device of this process\n"
            "  NCCL_TESTS_SPLIT[_MASK]     split the processes into groups: \"%%2\", \"/4\", \"&0x3\", "
            "\"|1\"; mask in hex\n"
            "  NCCL_TESTS_MIN_BW           exit 7 if the average bus bandwidth is below 0.9 of this\n"
            "  RONDO_PERF_RENDEZVOUS       host:port of rank 0, where processes on several hosts meet\n"
            "  RONDO_PERF_TIMEOUT          seconds to wait for another process (default 1800; 60 to meet)\n"
            "  RONDO_PERF_INJECT           <rank>:<byte offset>: damage that byte of every result which has "
            "it before it\n"
            "                              is verified, to see the verifier find it (exit 7)\n"
            "  RONDO_CPU_DEVICES           devices of a machine without a GPU; set to what the run needs "
            "when unset\n"
            "Processes come from --procs, or from mpirun, srun or torchrun through their variables.\n"
            "Exit: 0 ok, 1 internal, 2 CUDA, 3 NCCL, 4 timeout, 5 not supported or too few devices, 6 usage, "
            "7 wrong,\n"
            "      255 a bad value or combination of options.\n");
}

static const struct option_row *find_row(int letter)
{
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].letter == letter)
            return &rows[i];
    return NULL;
}

static bool parse_int(const struct option_row *row, const char *text, int *value_out, FILE *err)
{
    char *end;
    long value;

    errno = 0;
    value =
        strtol(text, &end, 0); /* like its models, it reads "all" as 0 and ignores what follows a number */
    if (errno == ERANGE || value > INT_MAX || value < INT_MIN) {
        fprintf(err, "invalid number '%s' for '%s'\n", text, row->name);
        return false;
    }
    *value_out = (int)value;
    return true;
}

static bool store_int(const struct option_row *row, const char *argument, struct perf_options *options,
                      FILE *err)
{
    int value;

    if (!parse_int(row, argument, &value, err))
        return false;
    if (row->is_flag)
        *(bool *)((char *)options + row->field) = value != 0;
    else
        *(int *)((char *)options + row->field) = value;
    return true;
}

/* The options whose argument is no plain integer. */
static bool store_special(const struct option_row *row, const char *argument, struct perf_options *options,
                          FILE *out, FILE *err)
{
    size_t *size = row->letter == 'b'   ? &options->min_bytes
                   : row->letter == 'e' ? &options->max_bytes
                                        : &options->step_bytes;

    switch (row->letter) {
    case 'b':
    case 'e':
    case 'i':
        if (perf_size_parse(argument, size))
            return true;
        fprintf(err, "invalid size specified for '%s'\n", row->name);
        return false;
    case 'o':
        options->op = perf_op_find(argument);
        if (options->op == -2) {
            fprintf(out, "invalid op %s, defaulting to sum .. \n", argument);
            options->op = PERF_SUM;
        }
        return true;
    case 'd':
        options->type = perf_type_find(argument);
        if (options->type == -2) {
            fprintf(out, "invalid type %s, defaulting to float .. \n", argument);
            options->type = defaults.type;
        }
        return true;
    case 'r':
        return parse_int(row, argument, &options->root, err);
    default: /* J */
        options->json_path = argument;
        return true;
    }
}

static bool refuse(FILE *err, const char *text)
{
    fprintf(err, "%s\n", text);
    return false;
}

/* Combinations that cannot be run end the program; those that only lose a feature warn. */
static bool settle(struct perf_options *o, FILE *out, FILE *err)
{
    if (o->min_bytes > o->max_bytes)
        return refuse(err, "invalid sizes: 'minbytes' is larger than 'maxbytes'");
    if (o->threads < 1 || o->gpus < 1 || o->threads > 4096 || o->gpus > 4096)
        return refuse(err, "invalid number of threads or devices: 'nthreads' and 'ngpus' are 1 to 4096");
    if (o->procs < 0 || o->procs > 4096)
        return refuse(err, "invalid number of processes: 'procs' is 1 to 4096");
    if (o->step_factor <= 1 && o->step_bytes == 0 && o->min_bytes < o->max_bytes)
        return refuse(err, "invalid size specified for 'stepbytes': with 0 there is no next size");
    if (o->iters < 0 || o->aggregated < 1 || o->warmup_iters < 0 || o->cycles < 0 || o->unalign < 0 ||
        o->timeout_s < 0)
        return refuse(err, "invalid number: counts must not be negative, and 'agg_iters' is at least 1");
    if (o->blocking < 0 || o->blocking > 3 || o->average < 0 || o->average > 3 || o->registration < 0 ||
        o->registration > 2)
        return refuse(err, "invalid number: 'blocking' and 'average' are 0 to 3, 'local_register' 0 to 2");
    if (o->device_api > 0 && o->registration != 2)
        return refuse(err, "device implementation (-D) needs symmetric memory: add -R 2");
    if (o->device_ctas < 1 || o->device_ctas > 128) {
        fprintf(out, "# Warning: device_cta_count must be 1 to 128, using 16\n");
        o->device_ctas = 16;
    }
    if (o->per_iteration && o->graph_launches > 0) {
        fprintf(out, "# Warning: per-iteration timing (-I) does not work with graphs (-G), it is off\n");
        o->per_iteration = false;
    }
    if (o->blocking == 3 && o->graph_launches > 0) {
        fprintf(out, "# Warning: blocking mode 3 does not work with graphs (-G), blocking is off\n");
        o->blocking = 0;
    }
    if (o->per_iteration_skip != 0 &&
        (!o->per_iteration || o->per_iteration_skip < 0 || o->per_iteration_skip >= o->iters)) {
        fprintf(
            out,
            "# Warning: per_iter_skip (-K) needs -I 1 and less than the number of iterations, it is off\n");
        o->per_iteration_skip = 0;
    }
    return true;
}

/* A variable as a number from 0 to limit; *value_out stays where it is unset or empty. A limit on the
 * bandwidth that is misspelt and taken for 0 would be a check that nothing fails. */
static bool read_variable(const char *name, double limit, double *value_out, FILE *err)
{
    const char *text = getenv(name);
    char *end;
    double value;

    if (!text || *text == '\0')
        return true;
    value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= limit)) {
        fprintf(err, "%s is '%s': give a number from 0 to %g\n", name, text, limit);
        return false;
    }
    *value_out = value;
    return true;
}

static bool read_environment(struct perf_options *options, FILE *err)
{
    const char *inject = getenv("RONDO_PERF_INJECT");
    double device = options->first_device;
    char *end;

    if (inject) {
        errno = 0;
        options->inject_rank = (int)strtol(inject, &end, 10);
        if (end == inject || *end != ':' || end[1] == '\0' || options->inject_rank < 0) {
            fprintf(err, "RONDO_PERF_INJECT is '%s': give <rank>:<byte offset>\n", inject);
            return false;
        }
        options->inject_offset = strtoull(end + 1, &end, 0);
        if (*end != '\0' || errno != 0) {
            fprintf(err, "RONDO_PERF_INJECT is '%s': the byte offset is no number\n", inject);
            return false;
        }
    }
    if (!read_variable("NCCL_TESTS_MIN_BW", 1e9, &options->min_bus_bandwidth, err) ||
        !read_variable("NCCL_TESTS_DEVICE", 65535, &device, err))
        return false;
    options->first_device = (int)device;
    return true;
}

/* getopt's tables, made from ours. */
static void make_getopt_tables(struct option *longs, char *shorts)
{
    for (size_t i = 0; i < ROWS; i++) {
        longs[i] = (struct option){rows[i].name, rows[i].has_argument, NULL, rows[i].letter};
        if (rows[i].letter < 0x100) {
            *shorts++ = (char)rows[i].letter;
            if (rows[i].has_argument)
                *shorts++ = ':';
        }
    }
    longs[ROWS] = (struct option){0};
    *shorts = '\0';
}

enum perf_parse perf_options_parse(int argc, char **argv, FILE *out, FILE *err,
                                   struct perf_options *options_out, int *exit_status)
{
    struct option longs[ROWS + 1];
    char shorts[2 * ROWS + 1];
    int letter;

    *options_out = defaults;
    *exit_status = 0;
    make_getopt_tables(longs, shorts);
    optind = 0; /* glibc: start over, so that a process can parse twice */
    opterr = 0;
    while ((letter = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct option_row *row = find_row(letter);

        if (letter == 'h') {
            print_usage(out, argv[0]);
            return PERF_PARSE_EXIT;
        }
        if (!row) {
            if (optopt > 0 && optopt < 0x100)
                fprintf(out, "invalid option '%c'\n", optopt);
            else
                fprintf(out, "invalid option '%s'\n", argv[optind - 1]);
            print_usage(out, argv[0]);
            return PERF_PARSE_EXIT;
        }
        if (row->field != NONE ? !store_int(row, optarg, options_out, err)
                               : !store_special(row, optarg, options_out, out, err)) {
            *exit_status = EXIT_BAD_OPTION;
            return PERF_PARSE_EXIT;
        }
    }
    if (!settle(options_out, out, err)) {
        *exit_status = EXIT_BAD_OPTION;
        return PERF_PARSE_EXIT;
    }
    if (!read_environment(options_out, err)) {
        *exit_status = PERF_USAGE;
        return PERF_PARSE_EXIT;
    }
    return PERF_PARSE_RUN;
}
