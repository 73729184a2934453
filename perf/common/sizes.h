/* sizes.h - the arithmetic of sizes: reading them, stepping through them, and what of them fits. */
#ifndef PERF_SIZES_H
#define PERF_SIZES_H

#include <stdbool.h>
#include <stddef.h>

/* "8", "1.5K", "2 M", "1g": powers of 1024. Only the first character after the number counts, as in the
 * programs whose command line this is. false: not a size. */
bool perf_size_parse(const char *text, size_t *bytes_out);

/* The size after this one: factor above 1 multiplies, else step is added. Always larger. false: there is
 * none. */
bool perf_size_next(size_t bytes, size_t step, int factor, size_t *next_out);

/* The part of elements that one of ranks gets when an operation cuts them into blocks that start at multiples
 * of 16 bytes. */
size_t perf_size_block(size_t elements, unsigned element_bytes, unsigned ranks);

/* The largest size that leaves a device of total_bytes some room: send, receive and, when checking, expected
 * data. */
size_t perf_size_limit(size_t total_bytes, bool is_checking);

#endif
