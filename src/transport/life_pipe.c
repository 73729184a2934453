/*
 * life_pipe.c - a pipe whose writing end nobody but this program has.
 *
 * Made at first use and kept: a peer may hold its reading end over any number of communicators. A forked
 * child gives its copies up, or a child that lives on would keep the pipe open. Descriptors that a program
 * has closed may be its files by then, so they are only closed if they are still the pipe.
 */
#include "life_pipe.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2] = {-1, -1}; /* reading, writing */
static struct stat pipe_status;

/* Whether our number for an end has not become another file's. */
static bool is_ours(int end)
{
    struct stat status;

    return end >= 0 && fstat(end, &status) == 0 && status.st_dev == pipe_status.st_dev &&
           status.st_ino == pipe_status.st_ino;
}

static void lock_pipe(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_pipe(void)
{
    pthread_mutex_unlock(&lock);
}

static void let_go_in_child(void)
{
    for (int i = 0; i < 2; i++) {
        if (is_ours(ends[i]))
            close(ends[i]);
        ends[i] = -1;
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void guard_fork(void)
{
    pthread_atfork(lock_pipe, unlock_pipe, let_go_in_child);
}

/* The lock is held. */
static ncclResult_t open_pipe(void)
{
    int fresh[2];

    if (is_ours(ends[0]) && is_ours(ends[1]))
        return ncclSuccess;
    if (pipe2(fresh, O_CLOEXEC) != 0)
        return rondo_fail(ncclSystemError, "make the pipe by which peers see that this program goes on: %s",
                          rondo_error_system(errno));
    if (fstat(fresh[0], &pipe_status) != 0) {
        int error = errno;

        close(fresh[0]);
        close(fresh[1]);
        return rondo_fail(ncclSystemError, "look at a pipe that was just made: %s",
                          rondo_error_system(error));
    }
    ends[0] = fresh[0];
    ends[1] = fresh[1];
    return ncclSuccess;
}

ncclResult_t rondo_life_export(int *fd_out)
{
    ncclResult_t rc;
    int fd;

    lock_pipe();
    rc = open_pipe();
    fd = rc == ncclSuccess ? fcntl(ends[0], F_DUPFD_CLOEXEC, 0) : -1;
    if (rc == ncclSuccess && fd < 0)
        rc =
            rondo_fail(ncclSystemError, "hand a peer the pipe by which it sees that this program goes on: %s",
                       rondo_error_system(errno));
    unlock_pipe();
    if (rc == ncclSuccess)
        *fd_out = fd;
    return rc;
}
