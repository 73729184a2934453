/*
 * cpu.h - the CPU device as hostcuda sees it: all of the device table, and what a CUDA runtime needs besides.
 *
 * One instance serves a process. With hostcuda that is the one in its libcuda.so.1, found by libnccl through
 * the marker symbol; without it, libnccl's own. The rules, and the errors that all slots share, are those of
 * device.h. CUDA error numbers never appear here; hostcuda translates.
 */
#ifndef RONDO_DEVICE_CPU_H
#define RONDO_DEVICE_CPU_H

#include "device/device.h"

/* Symbol of type rondo_hostcuda_marker in hostcuda's libcuda.so.1. */
#define RONDO_HOSTCUDA_MARKER "rondo_hostcuda_device"

/* Yields the instance, or NULL when abi is not the instance's own RONDO_DEVICE_ABI; *abi_out always gets
 * that. Pure. */
typedef const struct rondo_device_ops *(*rondo_hostcuda_marker)(uint32_t abi, uint32_t *abi_out);

enum rondo_stream_flags {
    RONDO_STREAM_BLOCKING = 0,
    RONDO_STREAM_NON_BLOCKING = 1,
    RONDO_STREAM_LASTING = 2 /* a library's own: device_reset spares it, stream_info does not show the flag */
};

struct rondo_cpu_ops {
    struct rondo_device_ops device; /* first: a pointer to one is a pointer to the other */

    /* A queue on the device given, or with -1 on the calling thread's. It owns no thread. flags: enum
     * rondo_stream_flags; NON_BLOCKING: unordered with the legacy default stream. priority is kept and told,
     * and changes nothing. device.stream_destroy ends it. ncclInvalidArgument: other flags. ncclSystemError:
     * no memory. */
    ncclResult_t (*stream_create_with_priority)(int device, unsigned flags, int priority, void **stream_out);

    /* What a stream was made with; a default stream is the calling thread's device's. */
    ncclResult_t (*stream_info)(void *stream, int *device_out, unsigned *flags_out, int *priority_out);

    /* Queue a copy or fill of bytes; the memory is any this process can address, must stay so until it is
     * done, and in a copy may overlap. A small one on an idle stream is done at once. ncclInvalidArgument:
     * NULL with bytes above 0. ncclSystemError: no memory. */
    ncclResult_t (*copy_async)(int device, void *stream, void *destination, const void *source, size_t bytes);
    ncclResult_t (*fill_async)(int device, void *stream, void *destination, int value, size_t bytes);

    /* Queue a host function. It runs once, in stream order, on some thread that drives, on that thread's own
     * stack, not a fiber's; it may take any time. ncclInvalidArgument: NULL. ncclSystemError: no memory. */
    ncclResult_t (*host_function)(int device, void *stream, void (*function)(void *argument), void *argument);

    /* Block until all that is queued on the device's streams by now is done; the caller runs it. */
    ncclResult_t (*device_synchronize)(int device);

    /* Free all memory and streams of the device made through this table, after waiting like
     * device_synchronize; what is lasting, the host's memory and events stay. Ends the worker thread when
     * nothing else is queued.
     */
    ncclResult_t (*device_reset)(int device);

    /* The device's capacity in bytes, and how much of it can be had now: not more than the host has. */
    ncclResult_t (*memory_info)(int device, uint64_t *free_out, uint64_t *total_out);

    /* Host memory of bytes that both sides can touch, zero at first use, known to query_pointer as HOST,
     * 4096-byte aligned. The caller owns *pointer_out until release; bytes 0 gives NULL.
     * ncclUnhandledCudaError: more than the host has now, or the system refuses. ncclSystemError: no memory
     * for the list of allocations. */
    ncclResult_t (*host_allocate)(size_t bytes, void **pointer_out);

    /* Takes NULL. ncclInvalidArgument: no such allocation. */
    ncclResult_t (*host_release)(void *pointer);

    /* Events with time. As device.event_create, which makes them without. */
    ncclResult_t (*event_create_timed)(int device, bool has_timing, struct rondo_event **event_out);

    /* Block until what the last record meant is done; the caller runs it. ncclInvalidArgument: no such event.
     */
    ncclResult_t (*event_synchronize)(struct rondo_event *event);

    /* Milliseconds between two records that are done. Does not block. ncclInvalidUsage: either has no record,
     * or was made without timing. ncclInProgress: either is not done. ncclInvalidArgument: no such event. */
    ncclResult_t (*event_elapsed)(struct rondo_event *start, struct rondo_event *end,
                                  float *milliseconds_out);
};

#ifdef __cplusplus
extern "C" {
#endif

/* This library's own instance: constant, never NULL. Thread-safe. */
const struct rondo_cpu_ops *rondo_cpu_instance(void);

#ifdef __cplusplus
}
#endif

#endif
