/*
 * notice.c - telling the root that this rank cannot start.
 *
 * The same conversation as rendezvous.c has, but written down as a plain sequence that waits with poll in the
 * caller's thread: a rank without threads, memory or descriptors can still say so. A socket needs a free
 * descriptor. Where the process has none, a thread of our own parts with the process's table of descriptors,
 * closes all in its copy, and talks from there; the process's stay as they are.
 */
#include "notice.h"

#include "link.h"
#include "rendezvous.h"
#include "root.h"

#include "base/clock.h"
#include "base/socket.h"
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Choices, not measured: how late a stop word may be seen, between attempts, and the least that one
 * attempt gets. */
#define SLICE_NS UINT64_C(10000000)
#define PAUSE_NS UINT64_C(20000000)
#define ATTEMPT_NS UINT64_C(200000000)
#define STACK_BYTES (64 * 1024)

enum outcome { TAKEN, GONE, FAILED, NO_SOCKET };

struct line {
    int fd;
    uint64_t deadline;
    const volatile uint32_t *stop;
};

static bool may_go_on(const struct line *line)
{
    return rondo_clock_ns() < line->deadline &&
           !(line->stop &&
             __atomic_load_n(line->stop, __ATOMIC_ACQUIRE) != 0); /* pairs with whoever aborts */
}

static bool await(const struct line *line, short events)
{
    struct pollfd entry = {.fd = line->fd, .events = events};

    while (may_go_on(line)) {
        int ready = poll(&entry, 1, (int)(SLICE_NS / 1000000));

        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
    }
    return false;
}

static bool is_transient(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static bool put(const struct line *line, const void *data, size_t bytes)
{
    const unsigned char *from = data;

    while (bytes > 0) {
        ssize_t sent = send(line->fd, from, bytes, MSG_NOSIGNAL);

        if (sent < 0 && (!is_transient(errno) || !await(line, POLLOUT)))
            return false;
        if (sent > 0) {
            from += sent;
            bytes -= (size_t)sent;
        }
    }
    return true;
}

static bool get(const struct line *line, void *data, size_t bytes)
{
    unsigned char *to = data;

    while (bytes > 0) {
        ssize_t got = recv(line->fd, to, bytes, 0);

        if (got == 0 || (got < 0 && (!is_transient(errno) || !await(line, POLLIN))))
            return false;
        if (got > 0) {
            to += got;
            bytes -= (size_t)got;
        }
    }
    return true;
}

static bool prove(const struct line *line, const struct rondo_id *id, int rank)
{
    struct rondo_entry entry = {.purpose = RONDO_PURPOSE_ROOT, .from = rank, .to = -1};
    struct rondo_hello hello;
    struct rondo_proof proof;
    struct rondo_welcome welcome;

    if (rondo_hello_make(&hello) != ncclSuccess || !put(line, &hello, sizeof(hello)) ||
        !get(line, &proof, sizeof(proof)) ||
        rondo_proof_check(&id->secret, &hello, &proof) != RONDO_VERDICT_GOOD)
        return false;
    rondo_entry_seal(&id->secret, &hello, &proof, &entry);
    return put(line, &entry, sizeof(entry)) && get(line, &welcome, sizeof(welcome)) &&
           rondo_welcome_check(&id->secret, &hello, &proof, &welcome) == RONDO_VERDICT_GOOD;
}

/* The answer says to all what the report said; that it comes means that the report has been read. */
static bool tell(const struct line *line, struct rondo_report *report, const char *reason)
{
    struct rondo_frame head = {.kind = RONDO_FRAME_REPORT};
    socklen_t bytes = sizeof(report->listener);

    head.bytes = sizeof(*report) + report->bytes;
    if (getsockname(line->fd, &report->listener.any, &bytes) != 0)
        return false;
    return put(line, &head, sizeof(head)) && put(line, report, sizeof(*report)) &&
           put(line, reason, report->bytes) && get(line, &head, sizeof(head));
}

struct notice {
    const struct rondo_id *id;
    struct rondo_report report;
    const char *reason;
    struct line line;
    bool tries_on; /* without a socket too: there is no other way left */
};

static enum outcome try_once(struct notice *notice)
{
    struct line *line = &notice->line;
    enum outcome outcome = FAILED;
    int error;

    if (rondo_socket_connect_start(&notice->id->root, &line->fd, &error) != ncclSuccess)
        return NO_SOCKET;
    if (error == 0 && await(line, POLLOUT))
        error = rondo_socket_connect_finish(line->fd);
    if (error == ECONNREFUSED && !notice->id->is_fixed) /* a root of its own exists before its id does */
        outcome = GONE;
    else if (error == 0 && prove(line, notice->id, notice->report.rank) &&
             tell(line, &notice->report, notice->reason))
        outcome = TAKEN;
    close(line->fd);
    return outcome;
}

static enum outcome try_until_deadline(struct notice *notice)
{
    enum outcome outcome = FAILED;

    while (may_go_on(&notice->line)) {
        outcome = try_once(notice);
        if (outcome == TAKEN || outcome == GONE || (outcome == NO_SOCKET && !notice->tries_on))
            break;
        rondo_clock_sleep_ns(PAUSE_NS);
    }
    return outcome;
}

/* All are closed, not just one: a peer that waits for the end of a pipe or socket of the process must not
 * wait for this thread's copy of it. stdout and stderr stay, so that no socket gets their numbers. */
static void run_apart(void *argument)
{
    struct notice *notice = argument;

    if (unshare(CLONE_FILES) != 0)
        return;
    notice->tries_on = true;
    close(STDIN_FILENO);
    (void)close_range(STDERR_FILENO + 1, UINT_MAX, 0); /* without it one is closed, which is enough */
    (void)try_until_deadline(notice);
}

void rondo_notice_send(const struct rondo_id *id, int rank, int ranks, ncclResult_t code, const char *reason,
                       uint64_t deadline, const volatile uint32_t *stop)
{
    uint64_t least = rondo_clock_ns() + ATTEMPT_NS;
    struct notice notice = {.id = id,
                            .report = {.version = RONDO_BOOTSTRAP_VERSION,
                                       .rank = rank,
                                       .ranks = ranks,
                                       .patience_ms = UINT32_MAX,
                                       .code = code,
                                       .bytes = (uint32_t)strnlen(reason, RONDO_REASON_MOST)},
                            .reason = reason,
                            .line = {.deadline = deadline > least ? deadline : least, .stop = stop}};
    struct rondo_thread thread;

    if (rondo_root_hear(&id->root, &notice.report, reason) || try_until_deadline(&notice) != NO_SOCKET)
        return;
    if (rondo_thread_start("rondo-notice", STACK_BYTES, run_apart, &notice, &thread) == ncclSuccess)
        rondo_thread_join(&thread);
    if (notice.tries_on)
        return;
    /* There are no threads, or none with a table of its own; the program may yet close something. */
    notice.tries_on = true;
    (void)try_until_deadline(&notice);
}
