/*
 * registry.c - what of the runtime's objects must be found again by address.
 *
 * A program hands back addresses that it got from us, or that it made up. Looking them up before they are
 * used is what turns a stale event or a foreign pointer into an error instead of a crash. One lock; the
 * tables are small.
 *
 * Ranges are an array sorted by base that never overlap, so an address is found by bisection. Events are a
 * set with open addressing and linear probing; a removal closes the gap it leaves.
 */
#include "registry.h"

#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 1024 /* the most RONDO_CPU_DEVICES allows */

struct event_slot {
    struct rondo_event *event; /* NULL: free */
    struct rondo_event_facts facts;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct event_slot *event_slots; /* capacity is 0 or a power of two, at most half full */
static size_t event_capacity, event_count;

static struct rondo_range *ranges;
static size_t range_capacity, range_count;

static unsigned char peers[DEVICES_MAX][DEVICES_MAX / 8]; /* untouched pages cost nothing */

static size_t home_slot(const struct rondo_event *event)
{
    return (size_t)(((uintptr_t)event >> 4) * 0x9e3779b97f4a7c15u) & (event_capacity - 1);
}

/* The slot of event, or the free slot that ends its probe sequence. */
static struct event_slot *probe_events(const struct rondo_event *event)
{
    size_t i = home_slot(event);

    while (event_slots[i].event && event_slots[i].event != event)
        i = (i + 1) & (event_capacity - 1);
    return &event_slots[i];
}

static bool grow_events(void)
{
    size_t old_capacity = event_capacity;
    struct event_slot *old = event_slots;
    size_t capacity = old_capacity ? old_capacity * 2 : 64;
    struct event_slot *grown = calloc(capacity, sizeof(*grown));

    if (!grown)
        return false;
    event_slots = grown;
    event_capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].event)
            *probe_events(old[i].event) = old[i];
    }
    free(old);
    return true;
}

ncclResult_t rondo_registry_event_add(struct rondo_event *event, const struct rondo_event_facts *facts)
{
    pthread_mutex_lock(&lock);
    bool has_room = 2 * (event_count + 1) <= event_capacity || grow_events();
    if (has_room) {
        *probe_events(event) = (struct event_slot){.event = event, .facts = *facts};
        event_count++;
    }
    pthread_mutex_unlock(&lock);
    if (!has_room)
        return rondo_fail(ncclSystemError, "note an event: no memory for the table of %zu events",
                          event_count + 1);
    return ncclSuccess;
}

bool rondo_registry_event_find(struct rondo_event *event, struct rondo_event_facts *facts_out)
{
    bool is_found = false;

    pthread_mutex_lock(&lock);
    if (event && event_capacity > 0) {
        const struct event_slot *slot = probe_events(event);
        is_found = slot->event != NULL;
        if (is_found)
            *facts_out = slot->facts;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

/* Free a slot and move later members of its run forward, so that no probe sequence is cut. */
static void close_gap(struct event_slot *slot)
{
    size_t gap = (size_t)(slot - event_slots);

    event_slots[gap].event = NULL;
    event_count--;
    for (size_t i = (gap + 1) & (event_capacity - 1); event_slots[i].event;
         i = (i + 1) & (event_capacity - 1)) {
        size_t home = home_slot(event_slots[i].event);
        size_t distance_home = (i - home) & (event_capacity - 1);
        size_t distance_gap = (i - gap) & (event_capacity - 1);

        if (distance_home >= distance_gap) {
            event_slots[gap] = event_slots[i];
            event_slots[i].event = NULL;
            gap = i;
        }
    }
}

bool rondo_registry_event_take(struct rondo_event *event)
{
    bool is_found = false;

    pthread_mutex_lock(&lock);
    if (event && event_capacity > 0) {
        struct event_slot *slot = probe_events(event);
        is_found = slot->event != NULL;
        if (is_found)
            close_gap(slot);
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

bool rondo_registry_event_take_any(int device, struct rondo_event **event_out)
{
    bool is_found = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < event_capacity && !is_found; i++) {
        if (!event_slots[i].event || event_slots[i].facts.device != device)
            continue;
        *event_out = event_slots[i].event;
        close_gap(&event_slots[i]);
        is_found = true;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

/* The number of ranges that begin at or below address; the last of them is the only one that can hold it. */
static size_t count_below(const char *address)
{
    size_t low = 0, high = range_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)ranges[middle].base <= (uintptr_t)address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool grow_ranges(void)
{
    size_t capacity = range_capacity ? range_capacity * 2 : 32;
    struct rondo_range *grown = realloc(ranges, capacity * sizeof(*grown));

    if (!grown)
        return false;
    ranges = grown;
    range_capacity = capacity;
    return true;
}

ncclResult_t rondo_registry_range_add(const struct rondo_range *range)
{
    ncclResult_t rc = ncclSuccess;
    struct rondo_range other;

    pthread_mutex_lock(&lock);
    size_t at = count_below(range->base);
    if (at > 0 && (uintptr_t)ranges[at - 1].base + ranges[at - 1].bytes > (uintptr_t)range->base) {
        other = ranges[at - 1];
        rc = ncclInvalidUsage;
    } else if (at < range_count && (uintptr_t)range->base + range->bytes > (uintptr_t)ranges[at].base) {
        other = ranges[at];
        rc = ncclInvalidUsage;
    } else if (range_count == range_capacity && !grow_ranges()) {
        rc = ncclSystemError;
    } else {
        memmove(&ranges[at + 1], &ranges[at], (range_count - at) * sizeof(*ranges));
        ranges[at] = *range;
        range_count++;
    }
    pthread_mutex_unlock(&lock);
    if (rc == ncclInvalidUsage)
        return rondo_fail(rc, "note %zu bytes of memory at %p: they overlap the %zu bytes at %p noted before",
                          range->bytes, (void *)range->base, other.bytes, (void *)other.base);
    if (rc != ncclSuccess)
        return rondo_fail(rc, "note %zu bytes of memory at %p: no memory for the table", range->bytes,
                          (void *)range->base);
    return ncclSuccess;
}

bool rondo_registry_range_find(const void *address, struct rondo_range *range_out)
{
    bool is_found = false;

    pthread_mutex_lock(&lock);
    size_t at = count_below(address);
    if (at > 0 && (uintptr_t)address - (uintptr_t)ranges[at - 1].base < ranges[at - 1].bytes) {
        *range_out = ranges[at - 1];
        is_found = true;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

static void remove_range(size_t at)
{
    range_count--;
    memmove(&ranges[at], &ranges[at + 1], (range_count - at) * sizeof(*ranges));
}

bool rondo_registry_range_take(const void *base, enum rondo_range_kind kind, struct rondo_range *range_out)
{
    bool is_found = false;

    pthread_mutex_lock(&lock);
    size_t at = count_below(base);
    if (at > 0 && ranges[at - 1].base == (const char *)base && ranges[at - 1].kind == kind) {
        *range_out = ranges[at - 1];
        remove_range(at - 1);
        is_found = true;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

bool rondo_registry_range_take_any(int device, struct rondo_range *range_out)
{
    bool is_found = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < range_count && !is_found; i++) {
        if (ranges[i].device != device)
            continue;
        *range_out = ranges[i];
        remove_range(i);
        is_found = true;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

bool rondo_registry_peer_set(int device, int peer, bool is_enabled)
{
    unsigned char bit = (unsigned char)(1u << (peer % 8));
    bool is_changed = false;

    if (device < 0 || device >= DEVICES_MAX || peer < 0 || peer >= DEVICES_MAX)
        return false;
    pthread_mutex_lock(&lock);
    unsigned char *byte = &peers[device][peer / 8];
    is_changed = ((*byte & bit) != 0) != is_enabled;
    *byte = (unsigned char)(is_enabled ? *byte | bit : *byte & ~bit);
    pthread_mutex_unlock(&lock);
    return is_changed;
}

void rondo_registry_peers_clear(int device)
{
    if (device < 0 || device >= DEVICES_MAX)
        return;
    pthread_mutex_lock(&lock);
    memset(peers[device], 0, sizeof(peers[device]));
    pthread_mutex_unlock(&lock);
}
