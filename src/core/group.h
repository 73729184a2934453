/*
 * group.h - what a thread has recorded between ncclGroupStart and ncclGroupEnd.
 *
 * Every call that does something is a group of its own: it opens one, records, and closes it. So there is one
 * way to run anything, and nesting costs a counter.
 */
#ifndef RONDO_CORE_GROUP_H
#define RONDO_CORE_GROUP_H

#include "comm.h"

/* Operations of one communicator. */
struct rondo_batch {
    struct ncclComm *comm; /* a reference is held */
    struct rondo_task *tasks;
    size_t count, room;
    void **streams; /* distinct, in order of first use */
    size_t stream_count;
    struct rondo_plan *plan;     /* from here on launch.c's */
    struct rondo_flight *flight; /* made with the plan */
    void *stream;                /* where it runs; NULL stands for itself */
    bool is_entered;
};

/* Why a group failed. */
#define RONDO_GROUP_TEXT 800

struct rondo_group_failure {
    ncclResult_t code;
    char text[RONDO_GROUP_TEXT];
    uint64_t deadline; /* for telling other ranks */
};

/* Something that takes a while and may need the other ranks' help at once: making or closing a communicator.
 */
struct rondo_job {
    ncclResult_t (*run)(struct rondo_job *job);
    void (*stop)(struct rondo_job *job); /* make run end soon, from another thread. NULL: it does by itself */
    /* The group failed; undo it whether or not it ran, and tell the other ranks what they might wait for.
     * Blocks no longer than for that. NULL: nothing to undo. */
    void (*cancel)(struct rondo_job *job, const struct rondo_group_failure *failure);
    /* All of the failed group is undone: wait until other ranks have heard of it, or the deadline. NULL:
     * not wanted. */
    void (*settle)(struct rondo_job *job, uint64_t deadline);
    ncclComm_t handle; /* the communicator it is about */
    void *argument;    /* the job's own, freed with it */
    uint64_t thread;   /* that recorded it */
    ncclResult_t result;
    char *text; /* of a result that is a failure; NULL where there was no memory for it */
    bool is_started, has_run, is_cancelled;
    struct rondo_job *next; /* about the same communicator: runs after this one, on its thread */
    bool is_chained;        /* is somebody's next */
};

void rondo_group_open(void);

/* End what open() began, with rc the result of the call so far. Yields rc if it is a failure; else, when the
 * outermost group ends, the group's result; else ncclSuccess. */
ncclResult_t rondo_group_close(ncclResult_t rc);

/* ncclGroupEnd: the same, but refuses when nothing is open. */
ncclResult_t rondo_group_end(void);

/* Add a task of a communicator, to run on stream. ncclSystemError: no memory. */
ncclResult_t rondo_group_add_task(struct ncclComm *comm, const struct rondo_task *task, void *stream);

/* Add a job; it is copied. ncclSystemError: no memory, and the caller still owns argument. */
ncclResult_t rondo_group_add_job(const struct rondo_job *job);

/* Whether the calling thread's group is going to make or close this communicator. */
bool rondo_group_has_job(ncclComm_t handle);

#endif
