/*
 * worker.h - the one thread of the process that drives what is left when nobody waits.
 */
#ifndef RONDO_CPU_WORKER_H
#define RONDO_CPU_WORKER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Make the thread if there is none. With the lock free. */
void rondo_worker_start(void);

/* End it; it leaves its queues pending. Waits for the function it may be in, but not for ever. Unless
 * for_good, the next work left behind starts another. */
void rondo_worker_stop(bool for_good);

#ifdef __cplusplus
}
#endif
#endif
