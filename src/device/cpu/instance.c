/* instance.c - the two tables of the CPU device. */
#include "device/cpu.h"

#include "base/error.h"
#include "cpu/arena.h"
#include "cpu/calls.h"
#include "cpu/ordinals.h"
#include "cpu/switchboard.h"

static ncclResult_t count_devices(int *count_out)
{
    *count_out = rondo_cpu_device_count();
    return ncclSuccess;
}

static ncclResult_t get_current(int *device_out)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_find(&self);

    if (rc == ncclSuccess)
        *device_out = self->device;
    return rc;
}

static ncclResult_t set_current(int device)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_find(&self);

    if (rc == ncclSuccess)
        rc = rondo_cpu_device_check(device);
    if (rc == ncclSuccess)
        self->device = device;
    return rc;
}

/* A forked child shares the parent's memory and must change nothing in it. These take no caller record, so
 * ask first. */
static ncclResult_t allocate_any(int device, size_t bytes, bool is_lasting, void **pointer_out)
{
    struct rondo_caller *self;
    ncclResult_t rc =
        rondo_caller_find(&self); /* from here on the device is in use, as far as fork is concerned */

    return rc == ncclSuccess ? rondo_arena_allocate(device, bytes, is_lasting, pointer_out) : rc;
}

static ncclResult_t allocate(int device, size_t bytes, void **pointer_out)
{
    return allocate_any(device, bytes, false, pointer_out);
}

static ncclResult_t allocate_lasting(int device, size_t bytes, void **pointer_out)
{
    return allocate_any(device, bytes, true, pointer_out);
}

static ncclResult_t release(void *pointer)
{
    ncclResult_t rc = rondo_fork_check();

    return rc == ncclSuccess ? rondo_arena_release(pointer) : rc;
}

static ncclResult_t name_memory(const void *pointer, struct rondo_memory_name *name_out)
{
    ncclResult_t rc = rondo_fork_check();

    return rc == ncclSuccess ? rondo_arena_name(pointer, name_out) : rc;
}

static ncclResult_t export_arena(int device, int *fd_out)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_find(&self);

    return rc == ncclSuccess ? rondo_arena_export(device, fd_out) : rc;
}

static struct rondo_switchboard *switchboard(void)
{
    struct rondo_caller *self;

    return rondo_caller_find(&self) == ncclSuccess ? rondo_switchboard_own() : NULL;
}

static ncclResult_t export_switchboard(int *fd_out)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_find(&self);

    return rc == ncclSuccess ? rondo_switchboard_export(fd_out) : rc;
}

static ncclResult_t query_pointer(const void *pointer, struct rondo_pointer_info *info_out)
{
    ncclResult_t rc = rondo_fork_check();

    return rc == ncclSuccess ? rondo_pointer_query(pointer, info_out) : rc;
}

static ncclResult_t create_stream(int device, void **stream_out)
{
    ncclResult_t rc = rondo_cpu_device_check(device);

    return rc == ncclSuccess
               ? rondo_stream_create(device, RONDO_STREAM_NON_BLOCKING | RONDO_STREAM_LASTING, 0, stream_out)
               : rc;
}

static ncclResult_t stream_device(void *stream, int *device_out)
{
    unsigned flags;
    int priority;

    return rondo_stream_info(stream, device_out, &flags, &priority);
}

static ncclResult_t create_event(int device, struct rondo_event **event_out)
{
    return rondo_event_create(device, false, event_out);
}

static ncclResult_t capture_state(int device, void *stream, uint64_t *id_out)
{
    int owner;
    ncclResult_t rc = rondo_cpu_device_check(device);

    if (rc == ncclSuccess)
        rc = stream_device(stream, &owner);
    if (rc == ncclSuccess)
        *id_out = 0; /* the CPU device has no graphs of its own */
    return rc;
}

static ncclResult_t memory_info(int device, uint64_t *free_out, uint64_t *total_out)
{
    ncclResult_t rc = rondo_fork_check();

    return rc == ncclSuccess ? rondo_arena_info(device, free_out, total_out) : rc;
}

static ncclResult_t host_allocate(size_t bytes, void **pointer_out)
{
    struct rondo_caller *self;
    ncclResult_t rc = rondo_caller_find(&self);

    return rc == ncclSuccess ? rondo_pinned_allocate(bytes, pointer_out) : rc;
}

static ncclResult_t host_release(void *pointer)
{
    ncclResult_t rc = rondo_fork_check();

    return rc == ncclSuccess ? rondo_pinned_release(pointer) : rc;
}

static const struct rondo_cpu_ops instance = {
    .device =
        {
            .abi = RONDO_DEVICE_ABI,
            .name = "cpu",
            .is_synchronous = false,
            .count = count_devices,
            .properties = rondo_cpu_device_properties,
            .get_current = get_current,
            .set_current = set_current,
            .allocate = allocate,
            .release = release,
            .allocate_lasting = allocate_lasting,
            .name_memory = name_memory,
            .export_arena = export_arena,
            .map_arena = rondo_arena_map,
            .unmap_arena = rondo_arena_unmap,
            .switchboard = switchboard,
            .export_switchboard = export_switchboard,
            .map_switchboard = rondo_switchboard_map,
            .unmap_switchboard = rondo_switchboard_unmap,
            .query_pointer = query_pointer,
            .launch = rondo_stream_launch,
            .synchronize = rondo_stream_synchronize,
            .query = rondo_stream_query,
            .stream_create = create_stream,
            .stream_destroy = rondo_stream_destroy,
            .stream_device = stream_device,
            .event_create = create_event,
            .event_record = rondo_event_record,
            .event_query = rondo_event_query,
            .stream_wait = rondo_stream_wait,
            .event_destroy = rondo_event_destroy,
            .capture_state = capture_state,
            .wait_line = rondo_line_wait,
            .forward_errors = rondo_error_forward,
        },
    .stream_create_with_priority = rondo_stream_create,
    .stream_info = rondo_stream_info,
    .copy_async = rondo_stream_copy,
    .fill_async = rondo_stream_fill,
    .host_function = rondo_stream_host,
    .device_synchronize = rondo_device_synchronize,
    .device_reset = rondo_device_reset,
    .memory_info = memory_info,
    .host_allocate = host_allocate,
    .host_release = host_release,
    .event_create_timed = rondo_event_create,
    .event_synchronize = rondo_event_synchronize,
    .event_elapsed = rondo_event_elapsed,
};

const struct rondo_cpu_ops *rondo_cpu_instance(void)
{
    return &instance;
}
