/*
 * caller.h - what the CPU device keeps for each thread that calls it, and the lock.
 */
#ifndef RONDO_CPU_CALLER_H
#define RONDO_CPU_CALLER_H

#include "cpu/model.h"

#include <pthread.h>

struct rondo_caller {
    uint64_t id;     /* from 1, never used twice */
    uint32_t bell;   /* its doorbell */
    uint32_t waiter; /* what it writes into lines it sleeps for */
    struct rondo_doorbell *doorbell;
    int device;                           /* current device */
    uint32_t spin_ns;                     /* how long it spins before it sleeps */
    bool in_callback;                     /* inside a host function or a launch's finished() */
    bool needs_worker;                    /* start the worker once the lock is free */
    struct rondo_hook queues;             /* its per-thread default streams and hidden ones */
    uint64_t rings[RONDO_DOORBELLS / 64]; /* doorbells to ring once the lock is free */
};

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's record. ncclUnhandledCudaError in a forked child of a process that had used the
 * device. */
ncclResult_t rondo_caller_find(struct rondo_caller **self_out);

/* Same, and refuses inside a callback, where what is to be waited for may be the callback itself. */
ncclResult_t rondo_caller_enter(const char *what, struct rondo_caller **self_out);

/* ncclUnhandledCudaError in such a child, for calls that need no record. */
ncclResult_t rondo_fork_check(void);

void rondo_cpu_lock(void);

/* Unlock, then ring who was to be rung meanwhile and start the worker if it is needed. self: NULL if nothing
 * under the lock could ask for that. */
void rondo_cpu_unlock(struct rondo_caller *self);

/* Under the lock: wake a driver's thread at the unlock. */
void rondo_caller_ring(struct rondo_caller *self, const struct rondo_driver *driver);

#ifdef __cplusplus
}
#endif
#endif
