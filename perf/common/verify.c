/* verify.c - equal memory is the rule, so that is asked first; elements are looked at one by one only where
 * it differs. */
#include "verify.h"

#include <string.h>

static uint64_t load(const char *from, unsigned bytes)
{
    uint64_t word = 0;

    memcpy(&word, from, bytes); /* little-endian, like every machine this runs on */
    return word;
}

uint64_t perf_verify_count(const void *got, const void *wanted, size_t count, unsigned bytes,
                           unsigned tolerance)
{
    const char *a = got, *b = wanted;
    uint64_t wrong = 0;

    if (memcmp(a, b, count * bytes) == 0)
        return 0;
    for (size_t i = 0; i < count; i++, a += bytes, b += bytes) {
        uint64_t x = load(a, bytes), y = load(b, bytes);

        if ((x > y ? x - y : y - x) > tolerance)
            wrong++;
    }
    return wrong;
}
