/*
 * thread.h - the library's own threads: named, with a stack of a stated size, and deaf to the program's
 * signals.
 *
 * Every signal is blocked in them except those that a fault of the thread itself raises, so that the
 * program's handlers run on its own threads only and its crash reporters still work.
 */
#ifndef RONDO_BASE_THREAD_H
#define RONDO_BASE_THREAD_H

#include "nccl.h"

#include <pthread.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_thread {
    pthread_t handle;
};

/* Start function(argument) on a thread whose name is at most 15 characters of name, with a stack of at least
 * stack_bytes (0: the system's default). The caller joins or detaches *thread_out. ncclSystemError: the
 * system gave no thread. */
ncclResult_t rondo_thread_start(const char *name, size_t stack_bytes, void (*function)(void *argument),
                                void *argument, struct rondo_thread *thread_out);

/* Wait for the thread's end and free it. Not from the thread itself. */
void rondo_thread_join(struct rondo_thread *thread);

/* Let the thread free itself when it ends. */
void rondo_thread_detach(struct rondo_thread *thread);

#ifdef __cplusplus
}
#endif
#endif
