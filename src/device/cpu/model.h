/*
 * model.h - the objects of the CPU device, and who may touch what.
 *
 *     queue    a stream: items in order. IDLE; BLOCKED, when its head must wait for another queue; PENDING,
 *              when it could run and nobody drives it; or CLAIMED, when a driver has it
 *     item     a launch, copy, fill, host function, record of an event, or wait for one
 *     strand   a fiber that runs one list of works of a launch
 *     driver   a thread inside a call that runs items; it lives on that thread's stack
 *     mark     a moment in a queue, made by recording an event
 *
 * One lock, rondo_cpu_lock(), guards every field that is not said to be otherwise. It is never held while a
 * fiber, a copy or anybody's function runs. The head item of a CLAIMED queue, and its strands, belong to the
 * driver alone, unless that driver is parked: then whoever holds the lock may take the queue away from it.
 */
#ifndef RONDO_CPU_MODEL_H
#define RONDO_CPU_MODEL_H

#include "cpu/hook.h"
#include "cpu/ordinals.h"
#include "device/cpu.h"

#include <pthread.h>

struct rondo_caller;
struct rondo_driver;
struct rondo_strand;

enum rondo_item_kind {
    RONDO_ITEM_LAUNCH,
    RONDO_ITEM_COPY,
    RONDO_ITEM_FILL,
    RONDO_ITEM_HOST,
    RONDO_ITEM_RECORD, /* done under the lock when its turn comes, without a driver */
    RONDO_ITEM_WAIT    /* same */
};

struct rondo_item {
    struct rondo_item *next;
    uint64_t order;         /* of all enqueues of the process; for the legacy stream's rules */
    uint64_t legacy_ticket; /* blocking streams: how many items of the legacy stream come first */
    enum rondo_item_kind kind;
    bool is_started;
    union {
        struct {
            struct rondo_launch what;
            struct rondo_line *stop;
            struct rondo_strand *live, *ended;
        } launch;
        struct {
            char *destination;
            const char *source;
            size_t bytes; /* left to do */
            int value;
        } transfer;
        struct {
            void (*function)(void *argument);
            void *argument;
        } host;
        struct rondo_mark *mark; /* holds a reference */
    } u;
};

enum rondo_queue_state { RONDO_QUEUE_IDLE, RONDO_QUEUE_BLOCKED, RONDO_QUEUE_PENDING, RONDO_QUEUE_CLAIMED };
enum rondo_queue_role {
    RONDO_QUEUE_USER,
    RONDO_QUEUE_LASTING, /* as USER, but a reset of the device spares it */
    RONDO_QUEUE_LEGACY,
    RONDO_QUEUE_PER_THREAD,
    RONDO_QUEUE_HIDDEN
};

struct rondo_queue {
    /* constant */
    int device;
    unsigned flags; /* enum rondo_stream_flags */
    int priority;
    enum rondo_queue_role role;
    void *handle; /* of a USER or LASTING queue */

    enum rondo_queue_state state;
    bool is_closed;   /* freed as soon as it is idle and unwatched */
    bool is_demanded; /* a driver waits for it; the one that has it is asked to give it up */
    struct rondo_item *head, *tail;
    uint64_t enqueued;
    uint64_t completed; /* atomic: written under the lock with release, read by waiting drivers without it */
    uint64_t owner;     /* id of the thread that enqueued last: likely the one that will wait */
    uint64_t released_ns;           /* PENDING: since when */
    struct rondo_driver *driver;    /* CLAIMED: whose */
    struct rondo_queue *blocked_by; /* BLOCKED: whose progress it needs */
    const void *key;                /* HIDDEN: what its items have in common */
    struct rondo_hook dependents;   /* BLOCKED queues to look at when this one advances */
    struct rondo_hook watchers;     /* drivers that wait for it */

    struct rondo_hook hook;    /* in the list its state says: dependents, pending, a driver's; or unsettled */
    struct rondo_hook in_busy; /* device->busy while there are items */
    struct rondo_hook in_owner; /* device->queues (USER, LASTING) or caller->queues (PER_THREAD, HIDDEN) */
};

struct rondo_mark {
    uint32_t references;
    uint64_t ns;                  /* when; valid once done */
    struct rondo_queue *queue;    /* where it is queued; NULL: done */
    uint64_t ticket;              /* queue->completed once it is done */
    struct rondo_hook dependents; /* BLOCKED queues to look at when it is done */
};

struct rondo_cpu_event {
    int device;
    bool has_timing;
    struct rondo_mark *mark; /* the last record; NULL: never recorded */
};

/* What a device has besides memory. Made at its first stream call. */
struct rondo_cpu_device {
    struct rondo_queue *legacy;
    struct rondo_hook busy;   /* queues with items */
    struct rondo_hook queues; /* USER queues */
};

enum rondo_driver_mode {
    RONDO_DRIVER_ENQUEUE,  /* runs what is ready, leaves */
    RONDO_DRIVER_QUERY,    /* same, and adopts what its thread left behind */
    RONDO_DRIVER_BLOCKING, /* stays until what it waits for has come */
    RONDO_DRIVER_WORKER
};

struct rondo_driver {
    /* constant */
    struct rondo_caller *caller;
    enum rondo_driver_mode mode;
    int whole_device; /* the device all of whose queues it waits for; -1 */

    struct rondo_hook queues; /* CLAIMED by it; changed only under the lock, by others only while is_parked */
    struct rondo_hook given;  /* CLAIMED on its behalf by others; it moves them to queues when it attends */
    uint32_t message;         /* atomic: something under the lock needs this driver's attention */
    bool is_parked;           /* asleep, or about to; its lines are enlisted */
    bool is_away;             /* inside a host function: nothing is given to it */

    /* What it waits for; written by its own thread under the lock. */
    struct rondo_queue *goal; /* until goal->completed >= ticket; also the queue it wants to drive itself */
    uint64_t ticket;
    struct rondo_line *line; /* or until this has reached target */
    uint64_t target;
    uint64_t deadline;         /* or this, by rondo_clock_ns() */
    struct rondo_hook watch;   /* in goal->watchers */
    struct rondo_hook waiting; /* in the engine's list of blocking drivers */
};

enum rondo_worker_state {
    RONDO_WORKER_NONE,
    RONDO_WORKER_RUNNING, /* it will look at the pending queues before it sleeps */
    RONDO_WORKER_NAPPING, /* it will look within a nap */
    RONDO_WORKER_ASLEEP,  /* only a ring wakes it */
    RONDO_WORKER_FAILED   /* no thread could be made; waiting callers adopt everything */
};

struct rondo_engine {
    pthread_mutex_t lock;
    struct rondo_hook pending;   /* queues, the longest released first */
    struct rondo_hook unsettled; /* queues whose state is being worked out */
    struct rondo_hook blocking;  /* drivers */
    uint64_t order;
    struct rondo_cpu_device *devices[RONDO_CPU_MAX_DEVICES];
    enum rondo_worker_state worker;
    struct rondo_driver *worker_driver; /* NULL: no thread */
    uint64_t left_ns;                   /* when work was last left behind */
};

extern struct rondo_engine rondo_engine;

#endif
