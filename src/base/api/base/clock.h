/* clock.h - monotonic time in nanoseconds. */
#ifndef RONDO_BASE_CLOCK_H
#define RONDO_BASE_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CLOCK_MONOTONIC in nanoseconds: equal for all processes of a host. */
uint64_t rondo_clock_ns(void);

/* Sleep at least this long; returns early only if the clock call itself fails. */
void rondo_clock_sleep_ns(uint64_t ns);

/* rondo_clock_ns() + seconds; saturates. UINT64_MAX means "no deadline" wherever a deadline is asked for. */
uint64_t rondo_clock_deadline(uint64_t seconds);

#ifdef __cplusplus
}
#endif
#endif
