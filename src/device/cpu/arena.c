/* arena.c - the memory of the devices: allocations are ranges of one sealed memfd a device. */
#include "cpu/arena.h"

#include "base/error.h"
#include "base/host.h"
#include "cpu/ordinals.h"
#include "cpu/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALL_ALIGN 512u
#define PAGE_ALIGN 4096u /* for what is as large as a page, so that releasing it gives whole pages back */

struct arena {
    int fd;
    char *base; /* NULL until the device's first allocation */
    uint64_t bytes;
    struct rondo_ranges ranges; /* offsets */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct arena arenas[RONDO_CPU_MAX_DEVICES];
static int arenas_used;            /* 1 + the highest device with an arena */
static struct rondo_ranges pinned; /* host memory: addresses */
static uint64_t releases = 1;      /* atomic; advanced under the lock before an allocation goes */

/* What the calling thread has asked about last, true as long as nothing was released since: programs use the
 * same two buffers again and again. */
#define RECENT 2
static _Thread_local struct recent {
    uint64_t releases; /* 0: nothing */
    struct rondo_pointer_info info;
} recent[RECENT];
static _Thread_local unsigned next_recent;

static ncclResult_t open_arena(int device, struct arena **arena_out)
{
    struct arena *arena = &arenas[device];

    if (!arena->base) {
        void *base;
        uint64_t bytes = rondo_cpu_device_capacity();
        ncclResult_t rc = rondo_sealed_create("device memory", bytes, &arena->fd, &base);
        if (rc != ncclSuccess)
            return rc;
        arena->base = base;
        arena->bytes = bytes;
        if (arenas_used <= device)
            arenas_used = device + 1;
    }
    *arena_out = arena;
    return ncclSuccess;
}

static struct arena *find_arena(const void *pointer, int *device_out)
{
    for (int i = 0; i < arenas_used; i++) {
        if (arenas[i].base && (uintptr_t)pointer - (uintptr_t)arenas[i].base < arenas[i].bytes) {
            *device_out = i;
            return &arenas[i];
        }
    }
    return NULL;
}

/* Whether pages are only handed out against a strict account. There a first touch that finds the account
 * empty is a SIGBUS, so memory must be committed when it is allocated. */
static bool commit_is_strict(void)
{
    static int strict = -1; /* under the lock */

    if (strict < 0) {
        char text[2] = "";
        int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            strict = read(fd, text, 1) == 1 && text[0] == '2';
            close(fd);
        } else {
            strict = 0;
        }
    }
    return strict == 1;
}

/* Pages nobody touched cost nothing, so only a single request is compared with what is there now: a
 * communicator's sparse mailboxes may add up to more than the host has. */
static ncclResult_t check_host(const char *what, uint64_t bytes)
{
    uint64_t available = rondo_host_memory_available();

    if (available != 0 && bytes > available)
        return rondo_fail(ncclUnhandledCudaError,
                          "allocate %llu bytes of %s: the host has %llu bytes available now",
                          (unsigned long long)bytes, what, (unsigned long long)available);
    return ncclSuccess;
}

static ncclResult_t fit(struct arena *arena, int device, uint64_t bytes, bool is_lasting, uint64_t *start_out)
{
    uint64_t rounded =
        bytes > arena->bytes ? bytes : (bytes + SMALL_ALIGN - 1) & ~(uint64_t)(SMALL_ALIGN - 1);
    ncclResult_t rc;

    if (!rondo_ranges_fit(&arena->ranges, arena->bytes, rounded,
                          bytes >= PAGE_ALIGN ? PAGE_ALIGN : SMALL_ALIGN, start_out))
        return rondo_fail(ncclUnhandledCudaError,
                          "allocate %llu bytes on device %d: %llu of its %llu bytes are in use; "
                          "RONDO_CPU_DEVICE_MEMORY sets the capacity",
                          (unsigned long long)bytes, device, (unsigned long long)arena->ranges.bytes,
                          (unsigned long long)arena->bytes);
    rc = check_host("device memory", rounded);
    if (rc != ncclSuccess)
        return rc;
    if (commit_is_strict() && fallocate(arena->fd, 0, (off_t)*start_out, (off_t)rounded) != 0)
        return rondo_fail(
            ncclUnhandledCudaError,
            "commit %llu bytes on device %d: %s; the host accounts strictly (vm.overcommit_memory=2)",
            (unsigned long long)bytes, device, strerror(errno));
    struct rondo_range range = {.start = *start_out, .bytes = bytes, .is_lasting = is_lasting};
    if (!rondo_ranges_insert(&arena->ranges, &range))
        return rondo_fail(ncclSystemError,
                          "allocate %llu bytes on device %d: no memory for the list of allocations",
                          (unsigned long long)bytes, device);
    return ncclSuccess;
}

ncclResult_t rondo_arena_allocate(int device, size_t bytes, bool is_lasting, void **pointer_out)
{
    struct arena *arena;
    uint64_t start;
    ncclResult_t rc = rondo_cpu_device_check(device);

    if (rc != ncclSuccess)
        return rc;
    if (bytes == 0) {
        *pointer_out = NULL;
        return ncclSuccess;
    }
    pthread_mutex_lock(&lock);
    rc = open_arena(device, &arena);
    if (rc == ncclSuccess)
        rc = fit(arena, device, bytes, is_lasting, &start);
    if (rc == ncclSuccess)
        *pointer_out = arena->base + start;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Give back the pages that no neighbour uses. The kernel zeroes what it cannot free, which is part of a page.
 */
static void empty_range(struct arena *arena, const struct rondo_range *range)
{
    const struct rondo_range *first = arena->ranges.items, *last = first + arena->ranges.count - 1;
    uint64_t low = range > first ? range[-1].start + range[-1].bytes : 0;
    uint64_t high = range < last ? range[1].start : arena->bytes;
    uint64_t start = range->start & ~(uint64_t)(PAGE_ALIGN - 1);
    uint64_t end = (range->start + range->bytes + PAGE_ALIGN - 1) & ~(uint64_t)(PAGE_ALIGN - 1);

    start = start > low ? start : low;
    end = end < high ? end : high;
    if (fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
                  (off_t)(end - start)) != 0)
        memset(arena->base + range->start, 0, range->bytes);
}

/* Release: pairs with the acquire in find_recent(). */
static void forget_recent(void)
{
    __atomic_store_n(&releases, releases + 1, __ATOMIC_RELEASE);
}

static void remove_allocation(struct arena *arena, const struct rondo_range *range)
{
    forget_recent();
    empty_range(arena, range);
    rondo_ranges_remove(&arena->ranges, range);
}

ncclResult_t rondo_arena_release(void *pointer)
{
    int device;
    ncclResult_t rc = ncclSuccess;

    if (!pointer)
        return ncclSuccess;
    pthread_mutex_lock(&lock);
    struct arena *arena = find_arena(pointer, &device);
    uint64_t offset = arena ? (uint64_t)((char *)pointer - arena->base) : 0;
    const struct rondo_range *range = arena ? rondo_ranges_find(&arena->ranges, offset) : NULL;
    if (!range) {
        rc = rondo_fail(ncclInvalidArgument,
                        "release %p: it is no allocation of a device, or was released before", pointer);
    } else if (range->start != offset) {
        rc = rondo_fail(ncclInvalidArgument,
                        "release %p: it lies %llu bytes inside an allocation; release that one's start",
                        pointer, (unsigned long long)(offset - range->start));
    } else {
        remove_allocation(arena, range);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void rondo_arena_reset(int device)
{
    struct arena *arena = &arenas[device];

    pthread_mutex_lock(&lock);
    for (size_t i = arena->ranges.count; i-- > 0;) { /* from the end: removing one moves those after it */
        const struct rondo_range *range = &arena->ranges.items[i];

        if (range->is_lasting)
            continue;
        remove_allocation(arena, range);
    }
    if (arena->ranges.count == 0)
        rondo_ranges_clear(&arena->ranges);
    pthread_mutex_unlock(&lock);
}

ncclResult_t rondo_arena_name(const void *pointer, struct rondo_memory_name *name_out)
{
    int device;
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&lock);
    struct arena *arena = find_arena(pointer, &device);
    const struct rondo_range *range =
        arena ? rondo_ranges_find(&arena->ranges, (uint64_t)((const char *)pointer - arena->base)) : NULL;
    if (range)
        *name_out = (struct rondo_memory_name){.process = rondo_process_nonce(),
                                               .device = device,
                                               .offset = range->start,
                                               .bytes = range->bytes,
                                               .arena_bytes = arena->bytes};
    else
        rc = rondo_fail(ncclInvalidArgument,
                        "name %p for other processes: it lies in no allocation of a device", pointer);
    pthread_mutex_unlock(&lock);
    return rc;
}

ncclResult_t rondo_arena_export(int device, int *fd_out)
{
    struct arena *arena;
    ncclResult_t rc = rondo_cpu_device_check(device);

    if (rc != ncclSuccess)
        return rc;
    pthread_mutex_lock(&lock);
    rc = open_arena(device, &arena);
    if (rc == ncclSuccess)
        rc = rondo_sealed_export("device memory", arena->fd, fd_out);
    pthread_mutex_unlock(&lock);
    return rc;
}

ncclResult_t rondo_arena_map(int fd, uint64_t arena_bytes, void **base_out)
{
    return rondo_sealed_map("device memory", fd, arena_bytes, base_out);
}

ncclResult_t rondo_arena_unmap(void *base, uint64_t arena_bytes)
{
    if (base && munmap(base, arena_bytes) != 0)
        return rondo_fail(ncclInvalidArgument, "unmap a peer's device memory at %p: %s", base,
                          strerror(errno));
    return ncclSuccess;
}

ncclResult_t rondo_arena_info(int device, uint64_t *free_out, uint64_t *total_out)
{
    uint64_t available = rondo_host_memory_available();
    ncclResult_t rc = rondo_cpu_device_check(device);

    if (rc != ncclSuccess)
        return rc;
    pthread_mutex_lock(&lock);
    uint64_t total = rondo_cpu_device_capacity();
    uint64_t left = total - arenas[device].ranges.bytes;
    pthread_mutex_unlock(&lock);
    *free_out = available != 0 && available < left ? available : left;
    *total_out = total;
    return ncclSuccess;
}

ncclResult_t rondo_pinned_allocate(size_t bytes, void **pointer_out)
{
    ncclResult_t rc;

    if (bytes == 0) {
        *pointer_out = NULL;
        return ncclSuccess;
    }
    rc = check_host("host memory", bytes);
    if (rc != ncclSuccess)
        return rc;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return rondo_fail(ncclUnhandledCudaError, "allocate %zu bytes of host memory: %s", bytes,
                          strerror(errno));
    pthread_mutex_lock(&lock);
    struct rondo_range range = {.start = (uint64_t)(uintptr_t)base, .bytes = bytes};
    bool listed = rondo_ranges_insert(&pinned, &range);
    pthread_mutex_unlock(&lock);
    if (!listed) {
        munmap(base, bytes);
        return rondo_fail(ncclSystemError,
                          "allocate %zu bytes of host memory: no memory for the list of allocations", bytes);
    }
    *pointer_out = base;
    return ncclSuccess;
}

ncclResult_t rondo_pinned_release(void *pointer)
{
    size_t bytes = 0;

    if (!pointer)
        return ncclSuccess;
    pthread_mutex_lock(&lock);
    const struct rondo_range *range = rondo_ranges_find(&pinned, (uint64_t)(uintptr_t)pointer);
    if (range && range->start == (uint64_t)(uintptr_t)pointer) {
        bytes = range->bytes;
        forget_recent();
        rondo_ranges_remove(&pinned, range);
    }
    pthread_mutex_unlock(&lock);
    if (bytes == 0)
        return rondo_fail(ncclInvalidArgument,
                          "release host memory at %p: it is no allocation of host memory", pointer);
    munmap(pointer, bytes);
    return ncclSuccess;
}

static const struct rondo_pointer_info *find_recent(const void *pointer)
{
    uint64_t now = __atomic_load_n(&releases, __ATOMIC_ACQUIRE);

    for (int i = 0; i < RECENT; i++) {
        if (recent[i].releases == now &&
            (uintptr_t)pointer - (uintptr_t)recent[i].info.base < recent[i].info.bytes)
            return &recent[i].info;
    }
    return NULL;
}

ncclResult_t rondo_pointer_query(const void *pointer, struct rondo_pointer_info *info_out)
{
    struct rondo_pointer_info info = {.kind = RONDO_MEMORY_UNKNOWN};
    const struct rondo_pointer_info *known = find_recent(pointer);
    const struct rondo_range *range = NULL;

    if (known) {
        *info_out = *known;
        return ncclSuccess;
    }
    pthread_mutex_lock(&lock);
    struct arena *arena = find_arena(pointer, &info.device);
    if (arena) {
        info.kind = RONDO_MEMORY_VACANT;
        range = rondo_ranges_find(&arena->ranges, (uint64_t)((const char *)pointer - arena->base));
        if (range)
            info = (struct rondo_pointer_info){RONDO_MEMORY_DEVICE, info.device, arena->base + range->start,
                                               range->bytes};
    } else {
        range = rondo_ranges_find(&pinned, (uint64_t)(uintptr_t)pointer);
        if (range)
            info = (struct rondo_pointer_info){RONDO_MEMORY_HOST, 0, (void *)(uintptr_t)range->start,
                                               range->bytes};
    }
    if (range)
        recent[next_recent++ % RECENT] = (struct recent){.releases = releases, .info = info};
    pthread_mutex_unlock(&lock);
    *info_out = info;
    return ncclSuccess;
}
