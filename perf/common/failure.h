/*
 * failure.h - how a perf program ends, and how a failure is told.
 *
 * The values are exit statuses and the lines have a fixed form, because scripts read both. Whoever first
 * understands a failure tells it with one of these functions; callers pass the status on.
 */
#ifndef PERF_FAILURE_H
#define PERF_FAILURE_H

#include <cuda_runtime.h>
#include <nccl.h>

enum perf_status {
    PERF_OK = 0,
    PERF_INTERNAL = 1,
    PERF_CUDA = 2,
    PERF_NCCL = 3,
    PERF_TIMEOUT = 4,
    PERF_UNSUPPORTED = 5, /* not implemented here, or not enough devices */
    PERF_USAGE = 6,
    PERF_WRONG = 7, /* wrong results, or bandwidth below the asked minimum */
};

/* Each prints one line that names what was tried and the answer, and yields its status. */
enum perf_status perf_fail_nccl_at(const char *file, int line, const char *what, ncclResult_t result,
                                   ncclComm_t comm);
enum perf_status perf_fail_cuda_at(const char *file, int line, const char *what, cudaError_t error);
enum perf_status perf_fail_at(const char *file, int line, enum perf_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define perf_fail_nccl(what, result, comm) \
    perf_fail_nccl_at(__FILE_NAME__, __LINE__, (what), (result), (comm))
#define perf_fail_cuda(what, error) perf_fail_cuda_at(__FILE_NAME__, __LINE__, (what), (error))
#define perf_fail(status, ...) perf_fail_at(__FILE_NAME__, __LINE__, (status), __VA_ARGS__)

/* This host's name up to the first dot; lives as long as the process. */
const char *perf_host_name(void);

#endif
