/*
 * worker.c - the one thread of the process that drives what is left when nobody waits.
 *
 * Work is left behind by nearly every enqueue, and nearly always its thread comes back at once to wait for
 * it. Waking a sleeping thread each time would cost more than the work. So the worker naps while there is
 * activity, looks at what has been left for a while at the end of each nap, and sleeps for good, which costs
 * nothing, when there was none for a time. Only then does an enqueue wake it.
 */
#include "cpu/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "cpu/assign.h"
#include "cpu/caller.h"
#include "cpu/drive.h"
#include "cpu/switchboard.h"

#include <time.h>

/* Choices, not measured. Longer naps cost less CPU and leave what nobody waits for standing longer; a
 * longer time of activity saves wake-ups, at a look every NAP_LONG_NS. LOOK_NS is assign.c's age of a
 * queue: looking more often would find nothing. Two seconds bound a program's exit if one of its host
 * functions never returns. */
#define NAP_SHORT_NS 100000u /* after work was found */
#define NAP_LONG_NS 800000u  /* where naps grow to while none is */
#define ACTIVE_NS 10000000u  /* how long after the last work was left it keeps napping */
#define LOOK_NS 50000u       /* how often it looks while it has something to drive */
#define STOP_SECONDS 2

static pthread_mutex_t life =
    PTHREAD_MUTEX_INITIALIZER; /* serialises start and stop; taken before the engine's lock */
static struct rondo_thread thread;
static bool is_running; /* under life */
static bool is_over;    /* under life: the process ends */
static uint32_t quit;   /* atomic */

/* Under the lock: how long to sleep, and what that tells those who leave work. */
static uint64_t choose_sleep(uint64_t now, uint64_t *nap)
{
    if (rondo_hook_alone(&rondo_engine.pending) && now > rondo_engine.left_ns + ACTIVE_NS) {
        rondo_engine.worker = RONDO_WORKER_ASLEEP;
        return UINT64_MAX;
    }
    rondo_engine.worker = RONDO_WORKER_NAPPING;
    uint64_t until = now + *nap;
    *nap = *nap * 2 < NAP_LONG_NS ? *nap * 2 : NAP_LONG_NS;
    return until;
}

/* Look for work; returns when to look again, 0 for at once. */
static uint64_t look_around(struct rondo_driver *driver, uint64_t *nap, bool may_sleep)
{
    uint64_t until = 0, now = rondo_clock_ns();

    rondo_cpu_lock();
    rondo_engine.worker = RONDO_WORKER_RUNNING;
    rondo_driver_attend(driver);
    struct rondo_hook *last = driver->queues.previous;
    rondo_driver_adopt_aged(driver, now);
    if (driver->queues.previous != last)
        *nap = NAP_SHORT_NS;
    else if (may_sleep)
        until = choose_sleep(now, nap);
    rondo_cpu_unlock(driver->caller);
    return until;
}

static void run(struct rondo_driver *driver)
{
    uint64_t nap = NAP_SHORT_NS, spin_until = 0, next_look = 0;

    while (__atomic_load_n(&quit, __ATOMIC_ACQUIRE) == 0) { /* pairs with rondo_worker_stop */
        uint64_t until = 0, now = rondo_clock_ns();
        bool may_sleep = rondo_hook_alone(&driver->queues) || (spin_until != 0 && now >= spin_until);
        if (may_sleep || now >= next_look || __atomic_load_n(&driver->message, __ATOMIC_ACQUIRE) != 0) {
            until = look_around(driver, &nap, may_sleep);
            next_look = now + LOOK_NS;
        }
        if (rondo_driver_pass(driver)) {
            spin_until = 0;
        } else if (until != 0) {
            rondo_driver_park(driver, until);
            spin_until = 0;
        } else if (spin_until == 0) {
            spin_until = now + rondo_spin_begin(driver->caller);
        }
        rondo_spin_pause();
    }
}

static void set_state(enum rondo_worker_state state)
{
    rondo_cpu_lock();
    rondo_engine.worker = state;
    rondo_cpu_unlock(NULL);
}

static void run_worker(void *argument)
{
    struct rondo_caller *self;
    struct rondo_driver driver;

    (void)argument;
    if (rondo_caller_find(&self) != ncclSuccess) {
        set_state(RONDO_WORKER_FAILED);
        return;
    }
    rondo_driver_begin(&driver, self, RONDO_DRIVER_WORKER);
    rondo_cpu_lock();
    rondo_engine.worker_driver = &driver;
    rondo_cpu_unlock(self);
    run(&driver);
    rondo_cpu_lock();
    rondo_engine.worker = RONDO_WORKER_NONE;
    rondo_engine.worker_driver = NULL;
    rondo_driver_end(&driver);
    self->needs_worker =
        false; /* that would be this thread's successor; the next work left behind asks again */
    rondo_cpu_unlock(self);
}

void rondo_worker_start(void)
{
    pthread_mutex_lock(&life);
    if (!is_running && !is_over) {
        set_state(RONDO_WORKER_RUNNING);
        __atomic_store_n(&quit, 0, __ATOMIC_RELEASE);
        is_running = rondo_thread_start("rondo-cpu", 0, run_worker, NULL, &thread) == ncclSuccess;
        if (!is_running) {
            rondo_log(RONDO_LOG_WARN, RONDO_LOG_INIT,
                      "the CPU device has no worker thread: streams that nobody waits for stand still");
            set_state(RONDO_WORKER_FAILED);
        }
    }
    pthread_mutex_unlock(&life);
}

/* The thread may be inside a function of the program's that never returns; then it is left to itself. */
void rondo_worker_stop(bool for_good)
{
    struct timespec limit;

    pthread_mutex_lock(&life);
    is_over |= for_good;
    if (is_running) {
        __atomic_store_n(&quit, 1, __ATOMIC_RELEASE); /* pairs with run */
        rondo_cpu_lock();
        if (rondo_engine.worker_driver) {
            __atomic_store_n(&rondo_engine.worker_driver->message, 1,
                             __ATOMIC_RELEASE); /* or it may sleep without a look */
            rondo_doorbell_ring(rondo_switchboard_own(), rondo_engine.worker_driver->caller->bell + 1);
        }
        rondo_cpu_unlock(NULL);
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += STOP_SECONDS;
        if (pthread_timedjoin_np(thread.handle, NULL, &limit) != 0)
            rondo_thread_detach(&thread);
        is_running = false;
    }
    pthread_mutex_unlock(&life);
}
