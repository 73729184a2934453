/*
 * loop.c - the bootstrap's thread: epoll, and a list of who wants to be called when.
 *
 * The thread sleeps in epoll_wait without the lock, so a handle may be closed and freed between the kernel's
 * report and the thread's next step. Every removal is counted; a report from before a removal is thrown away
 * whole. Nothing is lost: epoll is level-triggered and reports again what is still there.
 */
#include "loop.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define BATCH 32 /* events a turn: a choice, not measured; what does not fit comes with the next */
#define STACK_BYTES (64 * 1024)
#define LONGEST_SLEEP_MS 60000

/* What belongs to one thread; a new thread never meets the remains of an old one. */
struct loop {
    struct rondo_thread thread;
    int poller, waker;
    bool is_stopping; /* somebody waits to join */
};

struct rondo_loop_condition {
    pthread_cond_t condition;
};

static pthread_mutex_t loop_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loop *current; /* NULL: no thread */
static struct rondo_loop_source *sources;
static struct rondo_loop_handle *handles;
static uint64_t removals;

void rondo_loop_lock(void)
{
    pthread_mutex_lock(&loop_lock);
}

void rondo_loop_unlock(void)
{
    pthread_mutex_unlock(&loop_lock);
}

static void free_loop(struct loop *loop)
{
    if (loop->poller >= 0)
        close(loop->poller);
    if (loop->waker >= 0)
        close(loop->waker);
    free(loop);
}

/* In a child made by fork, with the lock held by the thread that forked. */
static void abandon_all(void)
{
    if (current)
        free_loop(current);
    current = NULL;
    while (handles)
        rondo_loop_unwatch(handles);
    while (sources) {
        struct rondo_loop_source *source = sources;

        rondo_loop_detach(source);
        source->abandon(source);
    }
    rondo_loop_unlock();
}

__attribute__((constructor)) static void guard_fork(void)
{
    pthread_atfork(rondo_loop_lock, rondo_loop_unlock, abandon_all);
}

/* Milliseconds until the first source wants its tick. */
static int sleep_ms(void)
{
    uint64_t first = UINT64_MAX, now = rondo_clock_ns();

    for (struct rondo_loop_source *source = sources; source; source = source->next)
        if (source->wake < first)
            first = source->wake;
    if (first <= now)
        return 0;
    if (first - now > LONGEST_SLEEP_MS * UINT64_C(1000000))
        return LONGEST_SLEEP_MS;
    return (int)((first - now) / 1000000) + 1;
}

/* A tick may detach any source, so start over after each. */
static void run_ticks(void)
{
    uint64_t now = rondo_clock_ns();
    struct rondo_loop_source *source = sources;

    while (source) {
        if (source->wake <= now) {
            source->wake = UINT64_MAX;
            source->tick(source, now);
            source = sources;
        } else {
            source = source->next;
        }
    }
}

static void run_events(struct loop *loop, const struct epoll_event *events, int count,
                       uint64_t removals_before)
{
    for (int i = 0; i < count && removals == removals_before; i++) {
        struct rondo_loop_handle *handle = events[i].data.ptr;
        uint64_t ignored;

        if (handle)
            handle->ready(handle, events[i].events);
        else if (read(loop->waker, &ignored, sizeof(ignored)) < 0)
            continue; /* another event drained it */
    }
}

static void run_loop(void *argument)
{
    struct loop *loop = argument;
    struct epoll_event events[BATCH];

    rondo_loop_lock();
    while (sources && !loop->is_stopping) {
        uint64_t removals_before = removals;
        int timeout = sleep_ms();
        int count;

        rondo_loop_unlock();
        count = epoll_wait(loop->poller, events, BATCH, timeout);
        rondo_loop_lock();
        if (loop->is_stopping)
            break;
        run_events(loop, events, count, removals_before);
        run_ticks();
    }
    if (!loop->is_stopping) { /* the last source ended itself: nobody will join */
        current = NULL;
        rondo_thread_detach(&loop->thread);
        free_loop(loop);
    }
    rondo_loop_unlock();
}

static ncclResult_t start_loop(void)
{
    struct loop *loop = malloc(sizeof(*loop));
    struct epoll_event event = {.events = EPOLLIN};
    ncclResult_t rc;

    if (!loop)
        return rondo_fail(ncclSystemError, "start the bootstrap's thread: out of memory");
    loop->is_stopping = false;
    loop->poller = epoll_create1(EPOLL_CLOEXEC);
    loop->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->poller < 0 || loop->waker < 0 ||
        epoll_ctl(loop->poller, EPOLL_CTL_ADD, loop->waker, &event) != 0) {
        rc = rondo_fail(ncclSystemError,
                        "start the bootstrap's thread: epoll and eventfd: %s",
                        rondo_error_system(errno));
        free_loop(loop);
        return rc;
    }
    /* The thread's first act is to take the lock, which the caller holds: it sees all that is set here. */
    rc = rondo_thread_start("rondo-bootstrap", STACK_BYTES, run_loop, loop, &loop->thread);
    if (rc != ncclSuccess) {
        free_loop(loop);
        return rc;
    }
    current = loop;
    return ncclSuccess;
}

ncclResult_t rondo_loop_attach(struct rondo_loop_source *source)
{
    ncclResult_t rc;

    source->previous = NULL;
    source->next = sources;
    if (!current) {
        rc = start_loop();
        if (rc != ncclSuccess)
            return rc;
    }
    if (sources)
        sources->previous = source;
    sources = source;
    rondo_loop_wake();
    return ncclSuccess;
}

void rondo_loop_detach(struct rondo_loop_source *source)
{
    if (source->previous)
        source->previous->next = source->next;
    else
        sources = source->next;
    if (source->next)
        source->next->previous = source->previous;
}

void rondo_loop_unlock_settled(void)
{
    struct loop *loop = current;

    if (!loop || sources) {
        rondo_loop_unlock();
        return;
    }
    loop->is_stopping = true;
    rondo_loop_wake();
    current = NULL;
    rondo_loop_unlock();
    rondo_thread_join(&loop->thread);
    free_loop(loop);
}

void rondo_loop_wake(void)
{
    uint64_t one = 1;

    if (current && write(current->waker, &one, sizeof(one)) < 0)
        return; /* the counter is full: the thread is awake anyway */
}

ncclResult_t rondo_loop_watch(struct rondo_loop_handle *handle, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = handle};

    if (epoll_ctl(current->poller, EPOLL_CTL_ADD, handle->fd, &event) != 0) {
        ncclResult_t rc =
            rondo_fail(ncclSystemError, "watch a socket with epoll: %s", rondo_error_system(errno));

        close(handle->fd);
        handle->fd = -1;
        return rc;
    }
    handle->previous = NULL;
    handle->next = handles;
    if (handles)
        handles->previous = handle;
    handles = handle;
    return ncclSuccess;
}

void rondo_loop_change(struct rondo_loop_handle *handle, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = handle};

    if (handle->fd >= 0)
        epoll_ctl(current->poller, EPOLL_CTL_MOD, handle->fd,
                  &event); /* cannot fail for a watched descriptor */
}

void rondo_loop_unwatch(struct rondo_loop_handle *handle)
{
    if (handle->fd < 0)
        return;
    /* Closing alone is not enough: a forked child holds the socket open until its handler has run. In the
     * child itself the poller is the parent's, whose registration must stay. */
    if (current)
        epoll_ctl(current->poller, EPOLL_CTL_DEL, handle->fd, NULL);
    close(handle->fd);
    handle->fd = -1;
    if (handle->previous)
        handle->previous->next = handle->next;
    else
        handles = handle->next;
    if (handle->next)
        handle->next->previous = handle->previous;
    removals++;
}

ncclResult_t rondo_loop_condition_create(struct rondo_loop_condition **condition_out)
{
    struct rondo_loop_condition *condition = malloc(sizeof(*condition));
    pthread_condattr_t attributes;

    if (!condition)
        return rondo_fail(ncclSystemError, "make a condition: out of memory");
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition->condition, &attributes);
    pthread_condattr_destroy(&attributes);
    *condition_out = condition;
    return ncclSuccess;
}

void rondo_loop_condition_destroy(struct rondo_loop_condition *condition)
{
    if (!condition)
        return;
    pthread_cond_destroy(&condition->condition);
    free(condition);
}

void rondo_loop_condition_wait(struct rondo_loop_condition *condition, uint64_t ns)
{
    uint64_t until = rondo_clock_ns() + ns;
    struct timespec time = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

    pthread_cond_timedwait(&condition->condition, &loop_lock, &time);
}

void rondo_loop_condition_signal(struct rondo_loop_condition *condition)
{
    pthread_cond_broadcast(&condition->condition);
}
