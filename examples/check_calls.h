/*
 * check_calls.h - the examples' way with failures: say what was tried and why it failed, and end the program.
 *
 * A function rather than a macro: the call that is checked stands visibly in the argument.
 */
#ifndef RONDO_EXAMPLES_CHECK_CALLS_H
#define RONDO_EXAMPLES_CHECK_CALLS_H

#include <cuda_runtime.h>
#include <nccl.h>

#include <stdio.h>
#include <stdlib.h>

static inline void check_cuda(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

static inline void check_nccl(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
    exit(1);
}

/* A positive number from the command line, or initial when there is none. */
static inline int positive_argument(int argc, char **argv, int index, int initial)
{
    int value = argc > index ? atoi(argv[index]) : initial;

    if (value > 0)
        return value;
    fprintf(stderr, "usage: %s: argument %d must be a positive number\n", argv[0], index);
    exit(2);
}

static inline int device_count(void)
{
    int count = 0;

    check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    return count;
}

/* Memory of the current device that holds a copy of bytes from host. */
static inline void *device_copy(const void *host, size_t bytes)
{
    void *device = NULL;

    check_cuda(cudaMalloc(&device, bytes), "cudaMalloc");
    check_cuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
    return device;
}

#endif
