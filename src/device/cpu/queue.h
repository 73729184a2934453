/*
 * queue.h - streams as queues: which item may run next, and who drives it. Everything here needs the lock.
 *
 * What changes a queue calls rondo_queue_settle, which works out the state of that queue and of all that
 * waited for it, and finds each one that can run a driver: first a caller that waits for that very queue,
 * then the driver that made it ready, and else it is left to the worker.
 */
#ifndef RONDO_CPU_QUEUE_H
#define RONDO_CPU_QUEUE_H

#include "cpu/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A queue that is in no list of an owner yet; NULL: no memory. */
struct rondo_queue *rondo_queue_make(int device, unsigned flags, int priority, enum rondo_queue_role role);

/* Nobody will use it again: it is freed once its items are done. */
void rondo_queue_close(struct rondo_queue *queue);

/* Append an item (copied). false: no memory. Settling is left to the caller if the queue was idle. */
bool rondo_queue_append(struct rondo_queue *queue, const struct rondo_item *item);

/* Remove the head, which is done, and tell who waits. Settle the queue afterwards. */
void rondo_queue_pop(struct rondo_caller *self, struct rondo_queue *queue);

/* Work out the queue's state; it is in no list. driver (NULL: none) is the calling thread's own. */
void rondo_queue_settle(struct rondo_caller *self, struct rondo_driver *driver, struct rondo_queue *queue);

/* Wait until queue->completed is ticket. unwatch may free the queue. */
void rondo_driver_watch(struct rondo_driver *driver, struct rondo_queue *queue, uint64_t ticket);
void rondo_driver_unwatch(struct rondo_driver *driver);

void rondo_mark_put(struct rondo_mark *mark);

/* Free pooled items; none is in use. */
void rondo_queue_trim(void);

#ifdef __cplusplus
}
#endif
#endif
