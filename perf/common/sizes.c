/* sizes.c - see sizes.h. */
#include "sizes.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#define GIB ((size_t)1 << 30)

bool perf_size_parse(const char *text, size_t *bytes_out)
{
    char *end;
    double value = strtod(text, &end);
    double unit = 1;

    if (end == text || !isfinite(value) || value < 0)
        return false;
    while (isspace((unsigned char)*end))
        end++;
    switch (toupper((unsigned char)*end)) {
    case '\0':
        break;
    case 'K':
        unit = 1024.0;
        break;
    case 'M':
        unit = 1024.0 * 1024;
        break;
    case 'G':
        unit = 1024.0 * 1024 * 1024;
        break;
    default:
        return false;
    }
    if (value * unit > 0x1p62)
        return false;
    *bytes_out = (size_t)(value * unit);
    return true;
}

bool perf_size_next(size_t bytes, size_t step, int factor, size_t *next_out)
{
    size_t next;

    if (factor > 1) {
        if (__builtin_mul_overflow(bytes, (size_t)factor, &next))
            return false;
        if (next == 0)
            next = 1; /* no factor leads on from nothing */
    } else if (step == 0 || __builtin_add_overflow(bytes, step, &next)) {
        return false;
    }
    *next_out = next;
    return true;
}

size_t perf_size_block(size_t elements, unsigned element_bytes, unsigned ranks)
{
    size_t alignment = 16 / element_bytes;

    return elements / ranks / alignment * alignment;
}

size_t perf_size_limit(size_t total_bytes, bool is_checking)
{
    size_t sixteenths = total_bytes / (16 * GIB) + (total_bytes % (16 * GIB) != 0);
    size_t reserve = (sixteenths < 4 ? sixteenths : 4) * GIB + GIB;

    if (total_bytes <= reserve)
        return total_bytes / 4; /* a device smaller than the reserve still runs something */
    return (total_bytes - reserve) / (is_checking ? 3 : 2);
}
