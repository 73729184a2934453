/* thread.c - the library's own threads. */
#include "base/thread.h"

#include "base/error.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 16           /* the kernel's limit, with the terminating zero */
#define STACK_SPARE (64 * 1024) /* thread-local storage and, under sanitizers, their own frames */

struct start {
    char name[NAME_BYTES];
    void (*function)(void *argument);
    void *argument;
};

static void *run_thread(void *argument)
{
    struct start start = *(struct start *)argument;

    free(argument);
    pthread_setname_np(pthread_self(), start.name);
    start.function(start.argument);
    return NULL;
}

/* pthread_create with the signals blocked that the new thread shall not take; it inherits the mask. */
static int create_thread(const pthread_attr_t *attributes, struct start *start, pthread_t *handle_out)
{
    sigset_t blocked, before;
    int error;

    sigfillset(&blocked);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    sigdelset(&blocked, SIGTRAP);
    sigdelset(&blocked, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    error = pthread_create(handle_out, attributes, run_thread, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

ncclResult_t rondo_thread_start(const char *name, size_t stack_bytes, void (*function)(void *argument),
                                void *argument, struct rondo_thread *thread_out)
{
    struct start *start = malloc(sizeof(*start));
    pthread_attr_t attributes;
    pthread_t handle;
    int error;

    if (!start)
        return rondo_fail(ncclSystemError, "start thread %s: out of memory", name);
    snprintf(start->name, sizeof(start->name), "%s", name);
    start->function = function;
    start->argument = argument;
    pthread_attr_init(&attributes);
    if (stack_bytes > 0) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t bytes = stack_bytes + (size_t)sysconf(_SC_THREAD_STACK_MIN) + STACK_SPARE;

        pthread_attr_setstacksize(&attributes, (bytes + page - 1) / page * page);
    }
    error = create_thread(&attributes, start, &handle);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        free(start);
        return rondo_fail(ncclSystemError,
                          "start thread %s: %s; check ulimit -u and the pids limit of the control group",
                          name, strerror(error));
    }
    thread_out->handle = handle;
    return ncclSuccess;
}

void rondo_thread_join(struct rondo_thread *thread)
{
    pthread_join(thread->handle, NULL);
}

void rondo_thread_detach(struct rondo_thread *thread)
{
    pthread_detach(thread->handle);
}
