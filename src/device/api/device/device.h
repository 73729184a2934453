/*
 * device.h - the device table: memory, streams, events and launches, on CUDA or on the CPU.
 *
 * Two rows; one of them serves a process. Above this table nobody asks which.
 *
 * Unless a slot says otherwise, all of them: may be called from any thread, need no current device, do not
 * block, and write outputs only on success. These errors are not repeated below:
 *
 *     ncclInvalidArgument      No such device; or a stream that was never made, or has been destroyed. With a
 *                              stream that somebody made, that stream's own device counts.
 *     ncclInvalidUsage         The slots that enqueue, query, wait or make a stream, inside a host function
 *                              or a launch's finished(): the stream that runs it cannot go on meanwhile.
 *     ncclUnhandledCudaError   In a child made by fork whose parent had used the device. Not of count,
 *                              properties, capture_state, map_ and unmap_ slots.
 *     ncclSystemError          At a thread's first call: no memory or descriptor to make it known.
 *
 * A stream is the caller's handle: cudaStream_t, with NULL, 1 (legacy) and 2 (per thread) meaning the default
 * streams of `device`.
 */
#ifndef RONDO_DEVICE_H
#define RONDO_DEVICE_H

#include "device/lane.h"
#include "device/work.h"

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the two tables and every struct they name; hostcuda and libnccl must agree. */
#define RONDO_DEVICE_ABI 3u

struct rondo_device_properties {
    char name[64];
    uint64_t memory_bytes; /* capacity */
    char busid[16];        /* "0000:01:00.0", distinct per device of a host */
    unsigned char uuid[16];
    int major, minor; /* compute capability */
};

/* What identifies an allocation to another process: which arena, and where in it. */
struct rondo_memory_name {
    uint64_t process; /* rondo_process_nonce() of the exporting process */
    int32_t device;
    uint32_t unused;
    uint64_t offset; /* bytes from the arena's start */
    uint64_t bytes;
    uint64_t arena_bytes; /* size of the whole arena */
};

enum rondo_memory_kind {
    RONDO_MEMORY_UNKNOWN, /* not ours; on the CPU row such memory is as good as any */
    RONDO_MEMORY_DEVICE,
    RONDO_MEMORY_HOST,
    RONDO_MEMORY_VACANT /* a device's address at which nothing is allocated, or no longer */
};

struct rondo_pointer_info {
    enum rondo_memory_kind kind;
    int device;   /* of DEVICE and VACANT */
    void *base;   /* of the allocation: DEVICE and HOST */
    size_t bytes; /* likewise */
};

struct rondo_event; /* opaque */

struct rondo_launch {
    const struct rondo_kernel_args *args; /* stays valid until finished() */
    uint32_t blocks;
    /* Called exactly once, by whichever thread saw the last fiber end, whether it ended well or was stopped.
     * Must not wait for anything, nor call the slots that enqueue, query or wait. */
    void (*finished)(void *owner);
    void *owner;
};

struct rondo_device_ops {
    uint32_t abi;     /* RONDO_DEVICE_ABI */
    const char *name; /* "cpu" or "cuda" */

    /* Calls are complete when they return: there is no runtime whose streams a program could wait on. Then
     * NULL is the only stream, for all slots. */
    bool is_synchronous;

    /* How many devices this process sees; may be 0. */
    ncclResult_t (*count)(int *count_out);
    ncclResult_t (*properties)(int device, struct rondo_device_properties *properties_out);

    /* The calling thread's current device, at first 0. get does not check that there is one. */
    ncclResult_t (*get_current)(int *device_out);
    ncclResult_t (*set_current)(int device);

    /* Device memory of bytes, 512-byte aligned, zero at first use, sparse: untouched pages cost nothing. The
     * caller owns *pointer_out until release, or until its device is reset; bytes 0 gives NULL.
     * ncclUnhandledCudaError: over the device's capacity, or more than the host has now; the message says
     * both figures. ncclSystemError: no memory for the list of allocations, or none to map the arena. */
    ncclResult_t (*allocate)(int device, size_t bytes, void **pointer_out);

    /* Give memory back at once; what is queued on it must have ended. Takes NULL. ncclInvalidArgument: the
     * pointer is not an allocation's start, or was released before. */
    ncclResult_t (*release)(void *pointer);

    /* As allocate, for memory of this library's own that peers address: all zero, and a program's reset of
     * the device spares it. */
    ncclResult_t (*allocate_lasting)(int device, size_t bytes, void **pointer_out);

    /* Name memory for other processes; any address inside an allocation, offset and bytes are then of the
     * whole. ncclInvalidArgument: it lies in no allocation. */
    ncclResult_t (*name_memory)(const void *pointer, struct rondo_memory_name *name_out);

    /* A descriptor of the whole arena of `device`, to be sent to a peer over a Unix socket; the caller closes
     * it. ncclSystemError: no descriptor is left, or the arena cannot be made. */
    ncclResult_t (*export_arena)(int device, int *fd_out);

    /* Map a peer's arena of arena_bytes. Takes over neither fd nor name. *base_out is valid until
     * unmap_arena. Seals and size of fd are checked before they are trusted. ncclInvalidArgument: they are
     * not such an arena's. ncclSystemError: no address space. */
    ncclResult_t (*map_arena)(int fd, uint64_t arena_bytes, void **base_out);

    /* Takes NULL. ncclInvalidArgument: the system refuses to unmap that. */
    ncclResult_t (*unmap_arena)(void *base, uint64_t arena_bytes);

    /* This process's doorbells, which live as long as it; NULL, with a recorded error, when there is no
     * memory for them or after fork. */
    struct rondo_switchboard *(*switchboard)(void);

    /* Their descriptor for peers; the caller closes it. ncclSystemError: no descriptor is left. */
    ncclResult_t (*export_switchboard)(int *fd_out);

    /* Map and unmap a peer's, as arenas. */
    ncclResult_t (*map_switchboard)(int fd, struct rondo_switchboard **board_out);
    ncclResult_t (*unmap_switchboard)(struct rondo_switchboard *board);

    /* What an address is; kind UNKNOWN, and success, for memory that is none of the table's. Cheap enough for
     * every call that communicates. */
    ncclResult_t (*query_pointer)(const void *pointer, struct rondo_pointer_info *info_out);

    /* Queue a kernel; *launch is copied. What can run without waiting has run when it returns (CPU row);
     * never waits for a peer. ncclInvalidArgument: the stream is another device's. ncclSystemError: no
     * memory; then finished is not called. */
    ncclResult_t (*launch)(int device, void *stream, const struct rondo_launch *launch);

    /* Block until all work queued so far is done; on the CPU row the caller runs it. Ends early only with the
     * work: whoever must not wait for ever raises the stop line of what is queued. */
    ncclResult_t (*synchronize)(int device, void *stream);

    /* *done_out: whether all queued work is done. Runs what can be run, never blocks. */
    ncclResult_t (*query)(int device, void *stream, bool *done_out);

    /* A stream of `device` for the library's own work: ordered with no other, the default streams included.
     * The caller owns *stream_out and gives it to the other slots like a program's handle, until
     * stream_destroy; a program's reset of the device spares it. ncclInvalidUsage: the row is_synchronous and
     * has no streams. ncclSystemError: no memory. */
    ncclResult_t (*stream_create)(int device, void **stream_out);

    /* Returns at once; what is queued still runs, and the handle is refused from now on. Default streams are
     * refused as well. */
    ncclResult_t (*stream_destroy)(void *stream);

    /* The device a stream belongs to; of a default stream, the calling thread's current one. */
    ncclResult_t (*stream_device)(void *stream, int *device_out);

    /* An event that has not been recorded, which counts as done. The caller owns *event_out until
     * event_destroy. ncclSystemError: no memory. */
    ncclResult_t (*event_create)(int device, struct rondo_event **event_out);

    /* Let the event mean all that is queued on the stream so far; who waits for an earlier record is left
     * alone. When is_synchronous it first waits for that, like synchronize. ncclInvalidArgument: no such
     * event. ncclSystemError: no memory; the event is as before. */
    ncclResult_t (*event_record)(struct rondo_event *event, int device, void *stream);

    /* *done_out: whether what the last record meant is done. Runs what can be run, never blocks.
     * ncclInvalidArgument: no such event. */
    ncclResult_t (*event_query)(struct rondo_event *event, bool *done_out);

    /* Queue a wait for the event's last record; the host does not block, unless is_synchronous: then the wait
     * is done when it returns. The event may be destroyed afterwards. ncclInvalidArgument: no such event.
     * ncclSystemError: no memory. */
    ncclResult_t (*stream_wait)(int device, void *stream, struct rondo_event *event);

    /* Takes nothing from those who wait for it. Takes NULL, and ignores what is no event. */
    void (*event_destroy)(struct rondo_event *event);

    /* Whether the stream is being captured into a graph; *id_out identifies the capture (0: none). */
    ncclResult_t (*capture_state)(int device, void *stream, uint64_t *id_out);

    /* Block until line->value reaches target or the deadline, in rondo_clock_ns() units (UINT64_MAX: none),
     * running queued work of this process meanwhile. *reached_out says which. For host code that waits for
     * what kernels do. */
    ncclResult_t (*wait_line)(struct rondo_line *line, uint64_t target, uint64_t deadline, bool *reached_out);

    /* Where this instance sends its error texts (see error.h): libnccl calls it once on hostcuda's instance.
     * sink must be callable from any thread. */
    void (*forward_errors)(void (*sink)(ncclResult_t code, const char *file, int line, const char *text));
};

#ifdef __cplusplus
extern "C" {
#endif

/* The row that serves this process: RONDO_DEVICE if set; else hostcuda's marker means cpu (its instance of
 * this table); else a libcuda that reports a device means cuda; else this library's own cpu row. Decided once
 * and logged. Thread-safe; the first call loads libcuda where there is one. ncclInvalidUsage: RONDO_DEVICE
 * names a row that is not there, a libcuda reports devices and this version has no row for them, or hostcuda
 * is of another build (both ABI numbers are in the message). */
ncclResult_t rondo_device_select(const struct rondo_device_ops **ops_out);

#ifdef __cplusplus
}
#endif

#endif
