/*
 * drive.h - running the items of claimed queues, waiting, and sleeping.
 */
#ifndef RONDO_CPU_DRIVE_H
#define RONDO_CPU_DRIVE_H

#include "cpu/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Everything here is called with the lock free. */

/* Let each claimed queue go on once, without waiting. Returns whether anything went on. */
bool rondo_driver_pass(struct rondo_driver *driver);

/* Sleep until a line, a message or the goal calls, or until the time given. The last pass found nothing to
 * do. Returns whether the thread slept. */
bool rondo_driver_park(struct rondo_driver *driver, uint64_t until);

/* Drive and sleep until the goal, the line's target or the deadline has come. */
void rondo_driver_wait(struct rondo_driver *driver);

/* How long to look for work before sleeping, by RONDO_SPIN_NS or by what this thread has met before; and what
 * came of it. */
uint64_t rondo_spin_begin(struct rondo_caller *self);
void rondo_spin_end(struct rondo_caller *self, bool slept);

static inline void rondo_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#ifdef __cplusplus
}
#endif
#endif
