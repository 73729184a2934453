/*
 * ranges.h - disjoint address ranges in order, and the gaps between them.
 *
 * One sorted array. What is free is what lies between, so there is no second structure to keep in step.
 * Arithmetic only: the caller locks, and the caller's memory is never touched.
 */
#ifndef RONDO_CPU_RANGES_H
#define RONDO_CPU_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_range {
    uint64_t start, bytes;
    bool is_lasting; /* stays when all others are removed */
};

struct rondo_ranges {
    struct rondo_range *items; /* ordered by start, never touching zero bytes */
    size_t count, room;
    uint64_t bytes; /* sum over items */
};

/* The lowest place in [0, limit) where bytes fit at a multiple of align (a power of two). false: none. */
bool rondo_ranges_fit(const struct rondo_ranges *ranges, uint64_t limit, uint64_t bytes, uint64_t align,
                      uint64_t *start_out);

/* Add a range that overlaps no other. false: no memory. */
bool rondo_ranges_insert(struct rondo_ranges *ranges, const struct rondo_range *range);

/* The range that contains address, NULL if none does. Valid until the next change. */
const struct rondo_range *rondo_ranges_find(const struct rondo_ranges *ranges, uint64_t address);

/* Remove a range that rondo_ranges_find returned. */
void rondo_ranges_remove(struct rondo_ranges *ranges, const struct rondo_range *range);

/* Forget all of them and free the array. */
void rondo_ranges_clear(struct rondo_ranges *ranges);

#ifdef __cplusplus
}
#endif
#endif
