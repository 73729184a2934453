/* ranges.c - disjoint address ranges in order, and the gaps between them. */
#include "cpu/ranges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Index of the first range that starts above address. */
static size_t find_above(const struct rondo_ranges *ranges, uint64_t address)
{
    size_t low = 0, high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].start > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool rondo_ranges_fit(const struct rondo_ranges *ranges, uint64_t limit, uint64_t bytes, uint64_t align,
                      uint64_t *start_out)
{
    uint64_t start = 0; /* of the gap before item i, aligned */

    for (size_t i = 0; i <= ranges->count; i++) {
        uint64_t end = i < ranges->count ? ranges->items[i].start : limit;
        if (start <= end && end - start >= bytes) {
            *start_out = start;
            return true;
        }
        if (i < ranges->count)
            start = (ranges->items[i].start + ranges->items[i].bytes + align - 1) & ~(align - 1);
    }
    return false;
}

bool rondo_ranges_insert(struct rondo_ranges *ranges, const struct rondo_range *range)
{
    size_t at = find_above(ranges, range->start);

    assert(range->bytes > 0);
    if (ranges->count == ranges->room) {
        size_t room = ranges->room ? 2 * ranges->room : 64;
        struct rondo_range *items = realloc(ranges->items, room * sizeof(*items));
        if (!items)
            return false;
        ranges->items = items;
        ranges->room = room;
    }
    memmove(&ranges->items[at + 1], &ranges->items[at], (ranges->count - at) * sizeof(*ranges->items));
    ranges->items[at] = *range;
    ranges->count++;
    ranges->bytes += range->bytes;
    return true;
}

const struct rondo_range *rondo_ranges_find(const struct rondo_ranges *ranges, uint64_t address)
{
    size_t above = find_above(ranges, address);

    if (above == 0 || address - ranges->items[above - 1].start >= ranges->items[above - 1].bytes)
        return NULL;
    return &ranges->items[above - 1];
}

void rondo_ranges_remove(struct rondo_ranges *ranges, const struct rondo_range *range)
{
    size_t at = (size_t)(range - ranges->items);

    ranges->bytes -= range->bytes;
    ranges->count--;
    memmove(&ranges->items[at], &ranges->items[at + 1], (ranges->count - at) * sizeof(*ranges->items));
}

void rondo_ranges_clear(struct rondo_ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct rondo_ranges){0};
}
