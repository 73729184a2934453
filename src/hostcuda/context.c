/*
 * context.c - the table that both runtimes of a process share, and the marker by which libnccl finds the CPU
 * device.
 *
 * Its one idea is *when a device counts as in use*: from the first call that needs its primary context. A
 * process that only counted devices may fork and use them in the child; one that had used a device may not,
 * because the child has the memory but none of the threads, so there every call is refused until it execs.
 */
#include "context.h"
#include "contexts.h"
#include "registry.h"

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool is_forked, is_unloading, is_used;
static atomic_bool is_active[RONDO_CONTEXTS]; /* by device: its primary context */
static _Thread_local bool is_detached;        /* the thread gave its context up: cuCtxSetCurrent(NULL) */

static void after_fork_in_child(void)
{
    if (atomic_load_explicit(&is_used, memory_order_relaxed)) /* the child has one thread: no order to keep */
        atomic_store_explicit(&is_forked, true, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

__attribute__((destructor)) static void note_unloading(void)
{
    atomic_store_explicit(&is_unloading, true, memory_order_relaxed); /* a flag alone: publishes nothing */
}

static enum rondo_context_state context_state(int device)
{
    if (atomic_load_explicit(&is_unloading, memory_order_relaxed))
        return RONDO_CONTEXT_UNLOADING;
    if (atomic_load_explicit(&is_forked, memory_order_relaxed))
        return RONDO_CONTEXT_FORKED;
    if (device >= 0 && device < RONDO_CONTEXTS &&
        !atomic_load_explicit(&is_active[device], memory_order_relaxed)) {
        pthread_once(&once, watch_forks);
        atomic_store_explicit(&is_used, true, memory_order_relaxed);
        atomic_store_explicit(&is_active[device], true, memory_order_relaxed);
    }
    return RONDO_CONTEXT_READY;
}

static ncclResult_t context_bind(int device)
{
    ncclResult_t rc = rondo_cpu_instance()->device.set_current(device);

    if (rc == ncclSuccess)
        is_detached = false;
    return rc;
}

static ncclResult_t context_report(ncclResult_t code, const char *file, int line, const char *text)
{
    return rondo_error_record(code, file, line, "%s", text);
}

static ncclResult_t context_reset(int device)
{
    const struct rondo_cpu_ops *cpu = rondo_cpu_instance();
    struct rondo_event *event;
    struct rondo_range range;
    ncclResult_t rc = cpu->device_synchronize(device);

    if (rc != ncclSuccess)
        return rc;
    while (rondo_registry_event_take_any(device, &event))
        cpu->device.event_destroy(event);
    while (rondo_registry_range_take_any(device, &range)) {
        if (range.kind == RONDO_RANGE_PINNED && (rc = cpu->host_release(range.base)) != ncclSuccess)
            return rc;
    }
    rondo_registry_peers_clear(device);
    rc = cpu->device_reset(device);
    if (rc == ncclSuccess)
        rondo_context_set_active(device, false);
    return rc;
}

bool rondo_context_is_active(int device)
{
    return device >= 0 && device < RONDO_CONTEXTS &&
           atomic_load_explicit(&is_active[device], memory_order_relaxed);
}

void rondo_context_set_active(int device, bool active)
{
    if (device >= 0 && device < RONDO_CONTEXTS)
        atomic_store_explicit(&is_active[device], active, memory_order_relaxed);
}

bool rondo_context_is_detached(void)
{
    return is_detached;
}

void rondo_context_detach(void)
{
    is_detached = true;
}

const struct rondo_context *rondo_hostcuda_context(uint32_t abi, uint32_t *abi_out)
{
    static const struct rondo_context table = {
        .abi = RONDO_CONTEXT_ABI,
        .cpu = rondo_cpu_instance,
        .state = context_state,
        .bind = context_bind,
        .report = context_report,
        .attribute = rondo_context_attribute,
        .event_add = rondo_registry_event_add,
        .event_find = rondo_registry_event_find,
        .event_take = rondo_registry_event_take,
        .range_add = rondo_registry_range_add,
        .range_find = rondo_registry_range_find,
        .range_take = rondo_registry_range_take,
        .peer_set = rondo_registry_peer_set,
        .reset = context_reset,
    };

    *abi_out = RONDO_CONTEXT_ABI;
    return abi == RONDO_CONTEXT_ABI ? &table : NULL;
}

/* What libnccl looks for: type rondo_hostcuda_marker. */
__attribute__((visibility("default"))) const struct rondo_device_ops *
rondo_hostcuda_device(uint32_t abi, uint32_t *abi_out);

const struct rondo_device_ops *rondo_hostcuda_device(uint32_t abi, uint32_t *abi_out)
{
    *abi_out = RONDO_DEVICE_ABI;
    return abi == RONDO_DEVICE_ABI ? &rondo_cpu_instance()->device : NULL;
}
