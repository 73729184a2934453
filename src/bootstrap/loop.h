/*
 * loop.h - the one thread of a process that does the bootstrap's I/O.
 *
 * Roots, and the small network of each communicator, are sources: they keep the thread alive and are called
 * when time passes. Their sockets are handles, called when something can be read or written. All of them, and
 * all calls from the API's side, run under one lock; so no two pieces of the bootstrap ever run at once, and
 * none of them may block. The thread starts with the first source and ends with the last.
 *
 * A child made by fork has no such thread. It closes the sockets, so that a parent's death is seen by its
 * peers, and the sources it inherits are told that they are abandoned.
 */
#ifndef RONDO_BOOTSTRAP_LOOP_H
#define RONDO_BOOTSTRAP_LOOP_H

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct rondo_loop_handle {
    int fd;                                                           /* -1: not watched */
    void (*ready)(struct rondo_loop_handle *handle, uint32_t events); /* EPOLL* bits */
    struct rondo_loop_handle *next, *previous;
};

struct rondo_loop_source {
    uint64_t wake; /* tick is called when the clock passes this; UINT64_MAX: not wanted */
    void (*tick)(struct rondo_loop_source *source,
                 uint64_t now);                        /* sets wake anew; may detach and free the source */
    void (*abandon)(struct rondo_loop_source *source); /* in a forked child: the sockets are closed */
    struct rondo_loop_source *next, *previous;
};

/* Everything below, and everything of links, gates, roots and meshes, is called with the lock held, from any
 * thread. Taking the lock blocks no longer than one step of somebody else; it is not recursive. */
void rondo_loop_lock(void);
void rondo_loop_unlock(void);

/* Unlock after a detach: when no source is left, end the thread and block until it has ended, which waits for
 * nobody else. Not from the thread itself, nor with the lock wanted afterwards. */
void rondo_loop_unlock_settled(void);

/* What callers wait on while the thread works. create and destroy need no lock; the caller owns
 * *condition_out, on which nobody may wait when it is destroyed. destroy takes NULL. ncclSystemError: no
 * memory. */
struct rondo_loop_condition;
ncclResult_t rondo_loop_condition_create(struct rondo_loop_condition **condition_out);
void rondo_loop_condition_destroy(struct rondo_loop_condition *condition);

/* Block until a signal, or for ns at most, with the lock released meanwhile; may also return early, so
 * callers look again at what they wait for. Not from the loop's own thread. signal wakes all who wait. */
void rondo_loop_condition_wait(struct rondo_loop_condition *condition, uint64_t ns);
void rondo_loop_condition_signal(struct rondo_loop_condition *condition);

/* Call tick of the source from now on; the first source starts the thread. The source stays the caller's, who
 * keeps it where it is until detach. ncclSystemError: no memory, descriptor or thread; the source is not
 * attached. */
ncclResult_t rondo_loop_attach(struct rondo_loop_source *source);

/* No call of tick or abandon follows. Only of a source that is attached. The thread goes on until the lock is
 * given up, see rondo_loop_unlock_settled. */
void rondo_loop_detach(struct rondo_loop_source *source);

/* A source's wake has become earlier: let the thread compute anew when to wake. */
void rondo_loop_wake(void);

/* Watch handle->fd for EPOLL* bits. Only while a source is attached. From now on the loop owns the
 * descriptor; the handle stays the caller's, who keeps it where it is until unwatch. ncclSystemError: epoll
 * refuses (no memory, or fs.epoll.max_user_watches is reached); then the descriptor is closed and handle->fd
 * is -1. */
ncclResult_t rondo_loop_watch(struct rondo_loop_handle *handle, uint32_t events);

/* Watch for other bits. A handle that is not watched is left as it is. */
void rondo_loop_change(struct rondo_loop_handle *handle, uint32_t events);

/* Stop watching and close; a handle that is not watched is left as it is. No call of ready follows. */
void rondo_loop_unwatch(struct rondo_loop_handle *handle);

#endif
