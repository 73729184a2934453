/*
 * runtime.c - how a call of the runtime begins and ends: the way to the CPU device, and the thread's last
 * error.
 */
#include "runtime.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Weak, so that a foreign libcuda.so.1 found in place of ours is an error with a number, not a program that
 * won't load. */
extern const struct rondo_context *rondo_hostcuda_context(uint32_t abi, uint32_t *abi_out)
    __attribute__((weak));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct rondo_context *shared; /* written once, under once */
static uint32_t shared_abi;
static atomic_bool is_unloading;
static _Thread_local cudaError_t last_error;
static _Thread_local bool is_in_host_function;

static void find_context(void)
{
    if (rondo_hostcuda_context)
        shared = rondo_hostcuda_context(RONDO_CONTEXT_ABI, &shared_abi);
}

__attribute__((destructor)) static void note_unloading(void)
{
    atomic_store_explicit(&is_unloading, true, memory_order_relaxed); /* a flag alone: publishes nothing */
}

/* Without our libcuda there is nobody to keep a text, so it goes to stderr, once. */
static cudaError_t refuse_foreign_driver(void)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&is_told)) {
        if (!rondo_hostcuda_context)
            fprintf(stderr,
                    "hostcuda: the libcuda.so.1 in this process is not hostcuda's; put the folder of this "
                    "libcudart before others in LD_LIBRARY_PATH\n");
        else
            fprintf(stderr,
                    "hostcuda: libcudart (interface %u) and libcuda.so.1 (interface %u) are of different "
                    "builds; use both from one folder\n",
                    RONDO_CONTEXT_ABI, shared_abi);
    }
    return cudaErrorInsufficientDriver;
}

cudaError_t rondo_runtime_enter(enum rondo_runtime_need need, struct rondo_call *call_out)
{
    int device = -1, count = 0;

    if (atomic_load_explicit(&is_unloading, memory_order_relaxed))
        return cudaErrorCudartUnloading;
    pthread_once(&once, find_context);
    if (!shared)
        return refuse_foreign_driver();
    if (is_in_host_function)
        return rondo_runtime_fail(cudaErrorNotPermitted,
                                  "a host function called the CUDA runtime, which would wait "
                                  "for itself; signal another thread instead");
    const struct rondo_cpu_ops *cpu = shared->cpu();
    enum rondo_context_state state = shared->state(-1);
    if (state == RONDO_CONTEXT_READY && need != RONDO_NEED_LIBRARY) {
        ncclResult_t rc = cpu->device.count(&count);
        if (rc != ncclSuccess)
            return rondo_runtime_translate(rc, cudaErrorInitializationError);
        if (count == 0)
            return cudaErrorNoDevice;
        rc = cpu->device.get_current(&device);
        if (rc != ncclSuccess)
            return rondo_runtime_translate(rc, cudaErrorInvalidDevice);
        state = shared->state(need == RONDO_NEED_CONTEXT ? device : -1);
    }
    if (state == RONDO_CONTEXT_UNLOADING)
        return cudaErrorCudartUnloading;
    if (state == RONDO_CONTEXT_FORKED)
        return rondo_runtime_fail(
            cudaErrorInitializationError,
            "use the CUDA runtime in a child of a process that had already used it: fork copied "
            "no threads; fork before the first use, or exec in the child");
    *call_out = (struct rondo_call){.context = shared, .cpu = cpu, .device = device};
    return cudaSuccess;
}

cudaError_t rondo_runtime_record(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

cudaError_t rondo_runtime_translate_memory(ncclResult_t rc, cudaError_t if_invalid)
{
    /* The device's capacity, or the system's. */
    if (rc == ncclUnhandledCudaError || rc == ncclSystemError)
        return cudaErrorMemoryAllocation;
    return rondo_runtime_translate(rc, if_invalid);
}

cudaError_t rondo_runtime_translate(ncclResult_t rc, cudaError_t if_invalid)
{
    switch (rc) {
    case ncclSuccess:
        return cudaSuccess;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
        return if_invalid;
    case ncclUnhandledCudaError:
        return cudaErrorInitializationError; /* a forked child of a process that had used the device layer */
    case ncclSystemError:
        return cudaErrorOperatingSystem;
    case ncclInProgress:
        return cudaErrorNotReady;
    default:
        return cudaErrorUnknown;
    }
}

/* The nearest code of the interface that keeps texts; only the text is ever seen. */
static ncclResult_t nearest_code(cudaError_t error)
{
    switch (error) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
        return ncclInvalidArgument;
    case cudaErrorMemoryAllocation:
    case cudaErrorOperatingSystem:
        return ncclSystemError;
    default:
        return ncclInvalidUsage;
    }
}

cudaError_t rondo_runtime_fail_at(cudaError_t error, const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    pthread_once(&once, find_context);
    if (shared)
        shared->report(nearest_code(error), file, line, text);
    return error;
}

cudaError_t rondo_runtime_check_device(const struct rondo_call *call, int device)
{
    int count = 0;
    ncclResult_t rc = call->cpu->device.count(&count);

    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInitializationError);
    if (count == 0)
        return cudaErrorNoDevice;
    if (device < 0 || device >= count)
        return rondo_runtime_fail(cudaErrorInvalidDevice, "use device %d: there are %d, numbered from 0",
                                  device, count);
    return cudaSuccess;
}

cudaError_t rondo_runtime_check_span(const struct rondo_call *call, const void *address, size_t bytes,
                                     const char *role)
{
    struct rondo_pointer_info info;

    if (bytes == 0)
        return cudaSuccess;
    if (!address)
        return rondo_runtime_fail(cudaErrorInvalidValue, "%s of %zu bytes is NULL", role, bytes);
    ncclResult_t rc = call->cpu->device.query_pointer(address, &info);
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidValue);
    if (info.kind == RONDO_MEMORY_UNKNOWN)
        return cudaSuccess; /* the caller's own memory, or a peer's */
    if (info.kind == RONDO_MEMORY_VACANT)
        return rondo_runtime_fail(
            cudaErrorInvalidValue,
            "%s at %p: %zu bytes are wanted, but nothing is allocated there on device %d", role, address,
            bytes, info.device);
    size_t offset = (size_t)((const char *)address - (const char *)info.base);
    if (offset > info.bytes || bytes > info.bytes - offset)
        return rondo_runtime_fail(
            cudaErrorInvalidValue,
            "%s at %p: %zu bytes are wanted, but its allocation of %zu bytes at %p ends after "
            "%zu",
            role, address, bytes, info.bytes, info.base,
            offset < info.bytes ? info.bytes - offset : (size_t)0);
    return cudaSuccess;
}

struct host_call {
    void (*function)(void *argument);
    void *argument;
};

static void run_host_call(void *owned)
{
    struct host_call host_call = *(struct host_call *)owned;

    free(owned);
    is_in_host_function = true;
    host_call.function(host_call.argument);
    is_in_host_function = false;
}

cudaError_t rondo_runtime_queue_host_function(const struct rondo_call *call, void *stream,
                                              void (*function)(void *argument), void *argument)
{
    struct host_call *host_call = malloc(sizeof(*host_call));

    if (!host_call)
        return rondo_runtime_fail(cudaErrorMemoryAllocation, "queue a host function: no memory for %zu bytes",
                                  sizeof(*host_call));
    *host_call = (struct host_call){.function = function, .argument = argument};
    ncclResult_t rc = call->cpu->host_function(call->device, stream, run_host_call, host_call);
    if (rc != ncclSuccess)
        free(host_call);
    return rondo_runtime_translate(rc, cudaErrorInvalidResourceHandle);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;

    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}
