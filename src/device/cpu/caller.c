/*
 * caller.c - what the CPU device keeps for each thread, the engine's lock, and what fork and exit do to them.
 *
 * Doorbells are rung after the lock is free: a ring may be a system call, and who wakes wants the lock.
 */
#include "cpu/caller.h"

#include "base/error.h"
#include "cpu/queue.h"
#include "cpu/switchboard.h"
#include "cpu/worker.h"

#include <stdlib.h>

struct rondo_engine rondo_engine = {
    .pending = {&rondo_engine.pending, &rondo_engine.pending},
    .unsettled = {&rondo_engine.unsettled, &rondo_engine.unsettled},
    .blocking = {&rondo_engine.blocking, &rondo_engine.blocking},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor runs at thread exit */
static bool has_key;
static uint64_t last_id;
static _Thread_local struct rondo_caller
    *current; /* only ever read on a thread's own stack, never on a fiber's */

/* Written in a child of fork before any other of its code runs. The child has the parent's records but not
 * its threads, and shares the parent's memory and doorbells: it must not touch them. */
static bool is_forked;

static void mark_child(void)
{
    is_forked = true;
}

static void forget_thread(void *argument)
{
    struct rondo_caller *self = argument;

    current = NULL;
    if (is_forked)
        return;
    rondo_cpu_lock();
    while (!rondo_hook_alone(&self->queues))
        rondo_queue_close(rondo_hook_owner(self->queues.next, struct rondo_queue, in_owner));
    rondo_cpu_unlock(self);
    rondo_doorbell_give_back(self->bell);
    free(self);
}

static void init_once(void)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP); /* held for well under a microsecond */
    pthread_mutex_init(&rondo_engine.lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    has_key = pthread_key_create(&key, forget_thread) ==
              0; /* without it, exiting threads leave their records behind */
    pthread_atfork(NULL, NULL, mark_child);
}

/* At exit, or when the library is unloaded, the worker must not go on: what it would run is about to vanish.
 */
__attribute__((destructor)) static void leave_process(void)
{
    if (is_forked)
        return;
    rondo_worker_stop(true);
    if (has_key)
        pthread_key_delete(key);
    has_key = false;
}

static ncclResult_t make_caller(struct rondo_caller **self_out)
{
    struct rondo_switchboard *board = rondo_switchboard_own();
    struct rondo_caller *self = board ? calloc(1, sizeof(*self)) : NULL;

    if (!board)
        return ncclSystemError;
    if (!self)
        return rondo_fail(ncclSystemError, "make a thread known to the CPU device: out of memory");
    self->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    self->bell = rondo_doorbell_take(&self->waiter);
    self->doorbell = &board->bells[self->bell];
    rondo_hook_init(&self->queues);
    if (has_key)
        pthread_setspecific(key, self);
    current = self;
    *self_out = self;
    return ncclSuccess;
}

ncclResult_t rondo_fork_check(void)
{
    if (!is_forked)
        return ncclSuccess;
    return rondo_fail(ncclUnhandledCudaError,
                      "use the CPU device in a forked child: its parent had used it before the fork; "
                      "fork first, or exec");
}

ncclResult_t rondo_caller_find(struct rondo_caller **self_out)
{
    ncclResult_t rc = rondo_fork_check();

    if (rc != ncclSuccess)
        return rc;
    if (current) {
        *self_out = current;
        return ncclSuccess;
    }
    pthread_once(&once, init_once);
    return make_caller(self_out);
}

ncclResult_t rondo_caller_enter(const char *what, struct rondo_caller **self_out)
{
    ncclResult_t rc = rondo_caller_find(self_out);

    if (rc == ncclSuccess && (*self_out)->in_callback)
        return rondo_fail(ncclInvalidUsage,
                          "%s inside a host function: the stream that runs it cannot go on meanwhile", what);
    return rc;
}

void rondo_cpu_lock(void)
{
    pthread_mutex_lock(&rondo_engine.lock);
}

void rondo_cpu_unlock(struct rondo_caller *self)
{
    pthread_mutex_unlock(&rondo_engine.lock);
    if (!self)
        return;
    for (uint32_t i = 0; i < RONDO_DOORBELLS / 64; i++) {
        while (self->rings[i] != 0) {
            uint32_t bit = (uint32_t)__builtin_ctzll(self->rings[i]);
            self->rings[i] &= self->rings[i] - 1;
            rondo_doorbell_ring(rondo_switchboard_own(), i * 64 + bit + 1);
        }
    }
    if (self->needs_worker) {
        self->needs_worker = false;
        rondo_worker_start();
    }
}

void rondo_caller_ring(struct rondo_caller *self, const struct rondo_driver *driver)
{
    uint32_t bell = driver->caller->bell;

    if (driver->caller != self)
        self->rings[bell / 64] |= (uint64_t)1 << (bell % 64);
}
