/*
 * context.h - what the runtimes of one process share: the part of hostcuda that lives in libcuda.so.1.
 *
 * A process may load libcudart.so.12 and libcudart.so.13 together. Both are thin: the CPU device, whether the
 * process has forked, which events and host ranges are alive, and which peers are enabled are kept once,
 * here. A runtime gets this table from rondo_hostcuda_context(). Unless a slot says otherwise: callable from
 * any thread, does not block.
 */
#ifndef RONDO_HOSTCUDA_CONTEXT_H
#define RONDO_HOSTCUDA_CONTEXT_H

#include "device/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RONDO_CUDA_DRIVER_VERSION 13000 /* what both libraries say; at least that of every runtime here */

#define RONDO_CONTEXT_ABI \
    (RONDO_DEVICE_ABI * 100u + 1u) /* libcudart and libcuda.so.1 of one build carry the same */

enum rondo_context_state {
    RONDO_CONTEXT_READY,
    RONDO_CONTEXT_FORKED,   /* a child of a process that had already used a device */
    RONDO_CONTEXT_UNLOADING /* the process is past this library's destructors */
};

enum rondo_range_kind {
    RONDO_RANGE_PINNED,     /* of host_allocate */
    RONDO_RANGE_REGISTERED, /* the caller's own memory */
    RONDO_RANGE_MANAGED     /* of allocate, for both sides */
};

/* A range of memory the device table alone cannot describe. */
struct rondo_range {
    char *base;
    size_t bytes;
    enum rondo_range_kind kind;
    unsigned flags; /* as given to the runtime */
    int device;
};

struct rondo_event_facts {
    int device;
    bool has_timing;
};

struct rondo_context {
    uint32_t abi;
    const struct rondo_cpu_ops *(*cpu)(void);

    /* May the caller go on? device >= 0 marks that device's primary context as in use. */
    enum rondo_context_state (*state)(int device);

    /* Make device the thread's current one, and its primary context the thread's context. */
    ncclResult_t (*bind)(int device);

    /* Keep a sentence for ncclGetLastError, write it at NCCL_DEBUG=WARN, and yield the code. */
    ncclResult_t (*report)(ncclResult_t code, const char *file, int line, const char *text);

    /* The value of a cudaDeviceAttr; ncclInvalidArgument when the number names none. */
    ncclResult_t (*attribute)(int device, int attribute, int *value_out);

    /* Events that are alive. find writes facts_out when it says true; take also forgets the event. */
    ncclResult_t (*event_add)(struct rondo_event *event, const struct rondo_event_facts *facts);
    bool (*event_find)(struct rondo_event *event, struct rondo_event_facts *facts_out);
    bool (*event_take)(struct rondo_event *event);

    /* Ranges. add: ncclInvalidUsage if it overlaps another. find takes any address inside; take only the
     * base. */
    ncclResult_t (*range_add)(const struct rondo_range *range);
    bool (*range_find)(const void *address, struct rondo_range *range_out);
    bool (*range_take)(const void *base, enum rondo_range_kind kind, struct rondo_range *range_out);

    /* Enable or disable the use of peer's memory from device; false: it was so already. */
    bool (*peer_set)(int device, int peer, bool is_enabled);

    /* Wait for the device, then free its memory, streams, events and pinned ranges, and forget its context.
     */
    ncclResult_t (*reset)(int device);
};

/* The table, or NULL when abi is not this build's; *abi_out always gets this build's. */
__attribute__((visibility("default"))) const struct rondo_context *rondo_hostcuda_context(uint32_t abi,
                                                                                          uint32_t *abi_out);

#endif
