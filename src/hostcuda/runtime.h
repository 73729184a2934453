/*
 * runtime.h - what every call of the runtime does first and last. Private to libcudart.
 *
 * A call begins with rondo_runtime_enter(), which finds the CPU device and the thread's current device or
 * says why the call cannot go on; and it ends with rondo_runtime_record(), which keeps an error for
 * cudaGetLastError.
 *
 * These files are compiled once for each libcudart. CUDART_VERSION says for which: 12080 or 13000.
 */
#ifndef RONDO_HOSTCUDA_RUNTIME_H
#define RONDO_HOSTCUDA_RUNTIME_H

#include "context.h"

#include "hostcuda/cuda_runtime_api.h"

/* What a call needs. */
enum rondo_runtime_need {
    RONDO_NEED_LIBRARY, /* neither a device nor leave to use one: counts, handles of the process */
    RONDO_NEED_DEVICE,  /* a current device */
    RONDO_NEED_CONTEXT  /* its primary context: the device counts as used from here on */
};

struct rondo_call {
    const struct rondo_context *context;
    const struct rondo_cpu_ops *cpu;
    int device; /* current; -1 when RONDO_NEED_LIBRARY */
};

/* Fills *call_out. Errors: cudaErrorInsufficientDriver, cudaErrorNoDevice, cudaErrorInitializationError after
 * fork, cudaErrorCudartUnloading, cudaErrorNotPermitted inside a host function. */
cudaError_t rondo_runtime_enter(enum rondo_runtime_need need, struct rondo_call *call_out);

/* Keep an error, NotReady included, as the thread's last one; yields it. Success changes nothing. */
cudaError_t rondo_runtime_record(cudaError_t error);

/* The CUDA number for a failure of the device layer; if_invalid is what ncclInvalidArgument means in this
 * call. */
cudaError_t rondo_runtime_translate(ncclResult_t rc, cudaError_t if_invalid);

/* Same, for calls that ask for memory: what was not to be had is cudaErrorMemoryAllocation. */
cudaError_t rondo_runtime_translate_memory(ncclResult_t rc, cudaError_t if_invalid);

/* Report a failure that the device layer does not know of: keeps the sentence, shows it at NCCL_DEBUG=WARN,
 * yields error. */
cudaError_t rondo_runtime_fail_at(cudaError_t error, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define rondo_runtime_fail(error, ...) rondo_runtime_fail_at((error), __FILE__, __LINE__, __VA_ARGS__)

/* cudaErrorInvalidDevice unless device exists. */
cudaError_t rondo_runtime_check_device(const struct rondo_call *call, int device);

/* cudaErrorInvalidValue when address lies in memory we know that ends before bytes more; NULL with bytes > 0
 * too. */
cudaError_t rondo_runtime_check_span(const struct rondo_call *call, const void *address, size_t bytes,
                                     const char *role);

/* Queue function(argument) on the stream as a host function: until it returns, calls on its thread that need
 * the runtime answer cudaErrorNotPermitted. */
cudaError_t rondo_runtime_queue_host_function(const struct rondo_call *call, void *stream,
                                              void (*function)(void *argument), void *argument);

#endif
