/*
 * rondo.c - the `rondo` command: what Rondo is and does on this machine, for people.
 *
 *   rondo variables [PREFIX]   every variable the library reads: what it is in this environment, what it may be
 *   rondo version              the interface's version, and the library that this command has loaded
 *
 * Exit status: 0; 1 when a variable has a value that the library ignores; 2 for a call that is no such command.
 */
#include "base/param.h"
#include "nccl.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: rondo variables [PREFIX]   what the library reads from the environment, and what it finds there\n"
    "       rondo version              the interface's version, and which library is loaded\n";

struct command {
    const char *name;
    int most; /* arguments */
    int (*run)(const char *argument);
};

/* "2^63-1" for the bound that means none. */
static const char *number_text(int64_t number, char out[24])
{
    if (number == INT64_MAX)
        return "2^63-1";
    snprintf(out, 24, "%" PRId64, number);
    return out;
}

static void print_range(enum rondo_param_id id)
{
    struct rondo_param_limits range = rondo_param_range(id);
    char initial[24], low[24], high[24];

    if (range.is_integer)
        printf("%s unless set, %s to %s", number_text(range.initial, initial), number_text(range.low, low),
               number_text(range.high, high));
    else
        printf("text");
}

/* One variable; false: its value is ignored. */
static bool print_variable(enum rondo_param_id id)
{
    const char *value = getenv(rondo_param_name(id));
    bool is_set = value && *value, is_used = !is_set || rondo_param_accepts(id, value);

    printf("%s%s%s%s\n    ", rondo_param_name(id), is_set ? "=" : "", is_set ? value : "",
           is_used ? "" : "   IGNORED: not in its range");
    print_range(id);
    printf("; %s\n", rondo_param_text(id));
    return is_used;
}

static bool is_known(const char *entry, size_t length)
{
    for (int i = 0; i < RONDO_PARAM_NUM; i++) {
        const char *name = rondo_param_name((enum rondo_param_id)i);

        if (strlen(name) == length && strncmp(name, entry, length) == 0)
            return true;
    }
    return false;
}

/* A variable that looks like one of ours and is none: of another library's version, or misspelt. */
static void print_strangers(const char *prefix)
{
    for (char **entry = environ; *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        bool is_ours = strncmp(*entry, "NCCL_", 5) == 0 || strncmp(*entry, "RONDO_", 6) == 0;

        if (is_ours && strncmp(*entry, prefix, strlen(prefix)) == 0 && !is_known(*entry, length))
            printf("%s\n    not read by the library\n", *entry);
    }
}

static int list_variables(const char *prefix)
{
    int status = 0;

    if (!prefix)
        prefix = "";
    for (int i = 0; i < RONDO_PARAM_NUM; i++) {
        enum rondo_param_id id = (enum rondo_param_id)i;

        if (strncmp(rondo_param_name(id), prefix, strlen(prefix)) == 0 && !print_variable(id))
            status = 1;
    }
    print_strangers(prefix);
    return status;
}

static int print_version(const char *unused)
{
    union {
        ncclResult_t (*function)(int *version);
        void *address;
    } entry = {.function = ncclGetVersion};
    Dl_info library;
    int version = 0;

    (void)unused;
    if (ncclGetVersion(&version) != ncclSuccess || dladdr(entry.address, &library) == 0) {
        fprintf(stderr, "rondo: ask the library for its version: %s\n", ncclGetLastError(NULL));
        return 2;
    }
    printf("Rondo with NCCL's interface %d.%d.%d: %s\n", version / 10000, version / 100 % 100, version % 100,
           library.dli_fname);
    return 0;
}

static const struct command commands[] = {{"variables", 1, list_variables}, {"version", 0, print_version}};

int main(int count, char **arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(arguments[1], commands[i].name) == 0 && count - 2 <= commands[i].most)
            return commands[i].run(arguments[2]);
    }
    if (count == 2 && (strcmp(arguments[1], "help") == 0 || strcmp(arguments[1], "--help") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    fputs(usage, stderr);
    return 2;
}
