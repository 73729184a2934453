/* verify.h - count the elements that are not what they must be. */
#ifndef PERF_VERIFY_H
#define PERF_VERIFY_H

#include <stddef.h>
#include <stdint.h>

/* Elements of which the raw bits, as unsigned numbers, are further apart than tolerance. Buffers may start at
 * any byte. */
uint64_t perf_verify_count(const void *got, const void *wanted, size_t count, unsigned bytes,
                           unsigned tolerance);

#endif
