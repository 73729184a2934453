/*
 * assign.h - who drives which queue. Everything here needs the lock.
 *
 * A queue that can run goes to a caller that waits for that very queue, else to the driver that just made it
 * ready, else to the pending list. From there it is taken by the thread that enqueued to it, when that comes
 * back to wait or to query, or by the worker once nobody has come for a while.
 */
#ifndef RONDO_CPU_ASSIGN_H
#define RONDO_CPU_ASSIGN_H

#include "cpu/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies and fills up to this size are done inside the call that enqueues them. A choice, not measured: it
 * keeps that call to some microseconds, and saves small copies a change of threads. */
#define RONDO_SMALL_TRANSFER ((size_t)64 << 10)

/* Find a driver for a queue that can run and is in no list. driver (NULL: none) is the calling thread's own.
 */
void rondo_queue_assign(struct rondo_caller *self, struct rondo_driver *driver, struct rondo_queue *queue);

/* Begin (without the lock) and end the life of a driver. end gives away what it still has. */
void rondo_driver_begin(struct rondo_driver *driver, struct rondo_caller *caller,
                        enum rondo_driver_mode mode);
void rondo_driver_end(struct rondo_driver *driver);

/* Claim what the driver should drive besides what it has: what its thread left behind, and its goal with what
 * must run before that. */
void rondo_driver_adopt(struct rondo_driver *driver);

/* The worker: claim what has been left for a while. */
void rondo_driver_adopt_aged(struct rondo_driver *driver, uint64_t now);

/* Give away every queue but this one (NULL: all). */
void rondo_driver_release(struct rondo_driver *driver, const struct rondo_queue *kept);

/* Take over what others gave, and give what others demand. */
void rondo_driver_attend(struct rondo_driver *driver);

#ifdef __cplusplus
}
#endif
#endif
