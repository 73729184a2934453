/* clock.c - monotonic time in nanoseconds. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

uint64_t rondo_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists on every Linux */
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void rondo_clock_sleep_ns(uint64_t ns)
{
    uint64_t now = rondo_clock_ns();
    uint64_t end = ns > UINT64_MAX / 4 - now ? UINT64_MAX / 4 : now + ns; /* tv_sec must stay a valid time */
    struct timespec until = {.tv_sec = (time_t)(end / SECOND_NS), .tv_nsec = (long)(end % SECOND_NS)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

uint64_t rondo_clock_deadline(uint64_t seconds)
{
    uint64_t now = rondo_clock_ns();

    return seconds > (UINT64_MAX - now) / SECOND_NS ? UINT64_MAX : now + seconds * SECOND_NS;
}
