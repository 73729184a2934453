/* failure.c - the failure lines. They go to stdout, in line with the table they interrupt, as existing
 * parsers expect. */
#include "failure.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char host_name[256];
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

static void read_host_name(void)
{
    if (gethostname(host_name, sizeof(host_name) - 1) != 0)
        strcpy(host_name, "unknown");
    host_name[strcspn(host_name, ".")] = '\0';
}

const char *perf_host_name(void)
{
    pthread_once(&host_once, read_host_name);
    return host_name;
}

static void print_trace(const char *file, int line)
{
    printf(" .. %s pid %d: Test failure %s:%d\n", perf_host_name(), (int)getpid(), file, line);
    fflush(stdout);
}

enum perf_status perf_fail_nccl_at(const char *file, int line, const char *what, ncclResult_t result,
                                   ncclComm_t comm)
{
    const char *last = ncclGetLastError(comm);

    printf("%s: Test NCCL failure %s:%d '%s: %s / %s'\n", perf_host_name(), file, line, what,
           ncclGetErrorString(result), last ? last : "");
    print_trace(file, line);
    return PERF_NCCL;
}

enum perf_status perf_fail_cuda_at(const char *file, int line, const char *what, cudaError_t error)
{
    printf("%s: Test CUDA failure %s:%d '%s: %s'\n", perf_host_name(), file, line, what,
           cudaGetErrorString(error));
    print_trace(file, line);
    return PERF_CUDA;
}

enum perf_status perf_fail_at(const char *file, int line, enum perf_status status, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    printf("%s: Test failure %s:%d '%s'\n", perf_host_name(), file, line, text);
    print_trace(file, line);
    return status;
}
