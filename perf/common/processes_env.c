/* processes_env.c - the launchers and the variables each leaves behind: one row a launcher, the first that
 * fits counts. */
#include "processes.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct launcher_row {
    const char *name;
    const char *rank;
    const char *size;
    const char *other_size; /* looked at first when set */
    const char *local_size;
    const char *nodes;        /* number of hosts; used when local_size is not there */
    const char *job_names[4]; /* variables that are equal in the whole job */
};

/* A process manager that runs inside another one's allocation comes first: mpirun and torchrun inside Slurm.
 */
static const struct launcher_row launchers[] = {
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     NULL,
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     NULL,
     {"PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid", "OMPI_MCA_ess_base_jobid"}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     NULL,
     "LOCAL_WORLD_SIZE",
     "GROUP_WORLD_SIZE",
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"MVAPICH2",
     "MV2_COMM_WORLD_RANK",
     "MV2_COMM_WORLD_SIZE",
     NULL,
     "MV2_COMM_WORLD_LOCAL_SIZE",
     NULL,
     {"PMI_JOBID"}},
    {"PMI",
     "PMI_RANK",
     "PMI_SIZE",
     NULL,
     "MPI_LOCALNRANKS",
     NULL,
     {"PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_STEP_NUM_TASKS",
     NULL,
     "SLURM_NNODES",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

/* A variable as a number from 0 up; -1 when it is not set, -2 when it is no such number. */
static int read_number(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    char *end;
    long value;

    if (!text || !*text)
        return -1;
    errno = 0;
    value = strtol(text, &end, 10);
    return errno || *end || value < 0 || value > INT_MAX ? -2 : (int)value;
}

/* srun sets the step's variables; a batch script's shell has the job's alone, and is one process. */
static bool is_batch_shell(const struct launcher_row *row)
{
    return strcmp(row->name, "Slurm") == 0 && getenv("SLURM_JOB_ID") && !getenv("SLURM_STEP_ID");
}

static void describe_job(const struct launcher_row *row, int size, struct perf_identity *identity)
{
    size_t used = (size_t)snprintf(identity->job, sizeof(identity->job), "%s/%d", row->name, size);
    bool found = false;

    for (int i = 0; i < 4 && row->job_names[i] && used < sizeof(identity->job); i++) {
        const char *value = getenv(row->job_names[i]);

        if (value) {
            used += (size_t)snprintf(identity->job + used, sizeof(identity->job) - used, "/%s", value);
            found = true;
        }
    }
    if (!found && used < sizeof(identity->job)) /* the launcher's daemon on this host is everybody's parent */
        snprintf(identity->job + used, sizeof(identity->job) - used, "/parent %d", (int)getppid());
}

static int local_processes(const struct launcher_row *row, int size)
{
    int local = read_number(row->local_size), nodes = read_number(row->nodes);

    if (local > 0)
        return local;
    return nodes == 1 || (nodes == -1 && row->nodes && strcmp(row->name, "Slurm") == 0) ? size : 0;
}

static enum perf_status read_launcher(const struct launcher_row *row, struct perf_identity *identity)
{
    int rank = read_number(row->rank), size = read_number(row->other_size);

    if (size == -1)
        size = read_number(row->size);
    if (rank < 0 || size < 1 || rank >= size)
        return perf_fail(PERF_USAGE,
                         "started by %s, but %s=%s and %s=%s are not a rank and a number of processes",
                         row->name, row->rank, getenv(row->rank), row->size,
                         getenv(row->size) ? getenv(row->size) : "(not set)");
    identity->launcher = row->name;
    identity->rank = rank;
    identity->size = size;
    identity->local_size = local_processes(row, size);
    describe_job(row, size, identity);
    return PERF_OK;
}

enum perf_status perf_identity_read(struct perf_identity *identity_out)
{
    *identity_out = (struct perf_identity){.launcher = "none", .size = 1, .local_size = 1};
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        const struct launcher_row *row = &launchers[i];

        if (read_number(row->rank) == -1 ||
            (read_number(row->size) == -1 && read_number(row->other_size) == -1))
            continue;
        if (!is_batch_shell(row))
            return read_launcher(row, identity_out);
        fprintf(stderr, "# in a Slurm job, but not started by srun: running as one process\n");
    }
    return PERF_OK;
}

static bool parse_split_value(const char *text, int base, int *value_out)
{
    char *end;
    long value;

    if (base == 0 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
        text += 2;
        base = 2;
    }
    value = strtol(text, &end, base);
    if (end == text || *end || value < 0 || value > INT_MAX)
        return false;
    *value_out = (int)value;
    return true;
}

bool perf_split_color(int rank, const char *split, const char *mask, int *color_out)
{
    static const struct {
        const char *word;
        char sign;
    } operators[] = {{"AND", '&'}, {"OR", '|'}, {"MOD", '%'}, {"DIV", '/'}};
    int value;
    char sign = '\0';

    *color_out = 0;
    if (mask) {
        if (!parse_split_value(mask, 16, &value))
            return false;
        *color_out = rank & value;
        return true;
    }
    if (!split)
        return true;
    for (size_t i = 0; i < 4 && !sign; i++) {
        size_t length = strlen(operators[i].word);

        if (strncmp(split, operators[i].word, length) == 0 || split[0] == operators[i].sign) {
            sign = operators[i].sign;
            split += split[0] == sign ? 1 : length;
        }
    }
    if (!sign || !parse_split_value(split, 0, &value) || (value == 0 && (sign == '%' || sign == '/')))
        return false;
    *color_out = sign == '&'   ? rank & value
                 : sign == '|' ? rank | value
                 : sign == '%' ? rank % value
                               : rank / value;
    return true;
}
