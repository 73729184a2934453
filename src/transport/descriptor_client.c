/* descriptor_client.c - the asking side of descriptor_wire.h. Whatever surprises it ends the attempt with
 * nothing kept. */
#include "descriptor_client.h"

#include "descriptor_wire.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#define FDS_ACCEPTED 16 /* room for more than belong, so that a surplus is seen and closed */
/* Choices, not measured. A service under siege drops whom it should not; 8 attempts with pauses that double
 * from a millisecond outlast a siege of a quarter of a second, and tell of a process that has ended soon
 * enough. */
#define RETRY_NS 1000000u
#define DROPS_FORGIVEN 8

void rondo_descriptors_close(struct rondo_descriptors *descriptors)
{
    int *all[] = {&descriptors->arena, &descriptors->board, &descriptors->death, &descriptors->life};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

/* Milliseconds for poll, rounded up. */
static int remaining_ms(uint64_t deadline)
{
    uint64_t now = rondo_clock_ns();

    if (deadline == UINT64_MAX)
        return -1;
    if (now >= deadline)
        return 0;
    return deadline - now > 1000000000u ? 1000 : (int)((deadline - now + 999999u) / 1000000u);
}

static ncclResult_t open_connection(const struct rondo_peer *peer, uint64_t deadline, int *fd_out)
{
    struct sockaddr_un address;
    socklen_t length = rondo_descriptor_address(peer->service, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error;

    if (fd < 0)
        return rondo_fail(ncclSystemError, "open a Unix socket to the process of rank %d: %s", peer->rank,
                          rondo_error_system(errno));
    while (connect(fd, (struct sockaddr *)&address, length) != 0) {
        error = errno;
        if (error == EINTR)
            continue;
        if (error == EAGAIN &&
            rondo_clock_ns() < deadline) { /* its backlog is full: it is slow, or besieged */
            rondo_clock_sleep_ns(RETRY_NS);
            continue;
        }
        close(fd);
        if (error == EAGAIN)
            return rondo_fail(
                ncclTimeout,
                "ask process %d of rank %d for its memory at @%s: it accepted no connection in time",
                peer->pid, peer->rank, address.sun_path + 1);
        return rondo_fail(ncclRemoteError,
                          "ask process %d of rank %d for its memory at @%s: %s; the process has ended, or is "
                          "in another network namespace",
                          peer->pid, peer->rank, address.sun_path + 1, rondo_error_system(error));
    }
    *fd_out = fd;
    return ncclSuccess;
}

static ncclResult_t check_user(int fd, const struct rondo_peer *peer, struct ucred *credentials_out)
{
    socklen_t length = sizeof(*credentials_out);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials_out, &length) != 0)
        return rondo_fail(ncclSystemError, "read the credentials of the process of rank %d: %s", peer->rank,
                          rondo_error_system(errno));
    if (credentials_out->uid != geteuid())
        return rondo_fail(ncclRemoteError,
                          "ask process %d of rank %d for its memory: user %u answers, this process is user "
                          "%u; run all ranks of a host as one user",
                          peer->pid, peer->rank, (unsigned)credentials_out->uid, (unsigned)geteuid());
    return ncclSuccess;
}

static ncclResult_t wait_readable(int fd, const struct rondo_peer *peer, uint64_t deadline)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};

    for (;;) {
        int ready = poll(&waiting, 1, remaining_ms(deadline));
        if (ready > 0)
            return ncclSuccess;
        if (ready < 0 && errno != EINTR)
            return rondo_fail(ncclSystemError, "wait for process %d of rank %d: %s", peer->pid, peer->rank,
                              rondo_error_system(errno));
        if (rondo_clock_ns() >= deadline)
            return rondo_fail(ncclTimeout,
                              "ask process %d of rank %d for its memory: no answer in time; is it stopped?",
                              peer->pid, peer->rank);
    }
}

/* Receive one packet and all descriptors with it; *count_out of fds. Descriptors are the caller's even when
 * it is malformed. */
static ssize_t receive_reply(int fd, struct rondo_descriptor_reply *reply, int fds[FDS_ACCEPTED],
                             size_t *count_out, bool *is_cut_out)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_ACCEPTED * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = reply, .iov_len = sizeof(*reply)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t received;

    *count_out = 0;
    do
        received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    if (received < 0)
        return received;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && *count_out < FDS_ACCEPTED; i++)
            memcpy(&fds[(*count_out)++], CMSG_DATA(head) + i * sizeof(int), sizeof(int));
    }
    *is_cut_out = message.msg_flags & (MSG_TRUNC | MSG_CTRUNC);
    return received;
}

/* What is wrong with a reply; NULL: nothing. */
static const char *find_surprise(const struct rondo_descriptor_reply *reply, ssize_t received, size_t count,
                                 bool is_cut, const struct rondo_peer *peer, const struct ucred *credentials)
{
    if (received != (ssize_t)sizeof(*reply) || is_cut || reply->magic != RONDO_DESCRIPTOR_MAGIC)
        return "the answer is not in this library's format; are the versions equal?";
    if (reply->token != peer->process)
        return "another process answers";
    if (reply->pid_namespace != 0 && reply->pid_namespace == rondo_pid_namespace() &&
        credentials->pid != peer->pid)
        return "a process with another id answers";
    if (count != (reply->code == ncclSuccess ? RONDO_DESCRIPTOR_NUM : 0))
        return "the answer has the wrong number of descriptors";
    return NULL;
}

/* Whether the other end closed the connection, by what a call on the socket answered. */
static bool is_hang_up(ssize_t moved)
{
    return moved == 0 || (moved < 0 && (errno == EPIPE || errno == ECONNRESET));
}

/* Whether this machine lacks something, by what a call on the socket answered. */
static bool is_shortage(int error)
{
    return error == ENOMEM || error == ENOBUFS || error == EMFILE || error == ENFILE;
}

static ncclResult_t receive_descriptors(int fd, const struct rondo_peer *peer,
                                        const struct ucred *credentials, bool *is_dropped_out,
                                        struct rondo_descriptors *descriptors_out)
{
    struct rondo_descriptor_reply reply;
    int fds[FDS_ACCEPTED];
    size_t count;
    bool is_cut = false;
    const char *surprise;
    ncclResult_t rc;
    ssize_t received = receive_reply(fd, &reply, fds, &count, &is_cut);

    *is_dropped_out = is_hang_up(received);
    if (*is_dropped_out)
        return ncclRemoteError;
    if (received < 0)
        return rondo_fail(is_shortage(errno) ? ncclSystemError : ncclRemoteError,
                          "ask process %d of rank %d for its memory: %s", peer->pid, peer->rank,
                          rondo_error_system(errno));
    if (is_cut && received == (ssize_t)sizeof(reply) && count < RONDO_DESCRIPTOR_NUM) {
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
        return rondo_fail(ncclSystemError, "take the descriptors of process %d of rank %d: %s", peer->pid,
                          peer->rank, rondo_error_system(EMFILE));
    }
    surprise = find_surprise(&reply, received, count, is_cut, peer, credentials);
    if (!surprise && reply.code == ncclSuccess) {
        *descriptors_out = (struct rondo_descriptors){
            .arena = fds[RONDO_DESCRIPTOR_ARENA],
            .board = fds[RONDO_DESCRIPTOR_BOARD],
            .death = fds[RONDO_DESCRIPTOR_DEATH],
            .life = fds[RONDO_DESCRIPTOR_LIFE],
        };
        return ncclSuccess;
    }
    if (surprise)
        rc = rondo_fail(ncclRemoteError, "ask process %d of rank %d for its memory: %s", peer->pid,
                        peer->rank, surprise);
    else
        rc = rondo_fail(reply.code == ncclSystemError ? ncclSystemError : ncclRemoteError,
                        "ask process %d of rank %d for its memory: it answers: %.*s", peer->pid, peer->rank,
                        (int)sizeof(reply.text) - 1, reply.text);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    return rc;
}

/* One connection, one question. Being dropped is left to the caller to report. */
static ncclResult_t ask(const struct rondo_peer *peer, int32_t device, uint64_t deadline,
                        bool *is_dropped_out, struct rondo_descriptors *descriptors_out)
{
    struct rondo_descriptor_request request = {
        .magic = RONDO_DESCRIPTOR_MAGIC, .token = peer->process, .device = device};
    struct ucred credentials;
    int fd = -1;
    ssize_t sent;
    ncclResult_t rc = open_connection(peer, deadline, &fd);

    *is_dropped_out = false;
    if (rc != ncclSuccess)
        return rc;
    rc = check_user(fd, peer, &credentials);
    if (rc != ncclSuccess)
        goto close_fd;
    sent = send(fd, &request, sizeof(request), MSG_NOSIGNAL);
    if (sent < 0) {
        *is_dropped_out = is_hang_up(sent);
        rc = *is_dropped_out ? ncclRemoteError
                             : rondo_fail(is_shortage(errno) ? ncclSystemError : ncclRemoteError,
                                          "ask process %d of rank %d for its memory: %s", peer->pid,
                                          peer->rank, rondo_error_system(errno));
        goto close_fd;
    }
    rc = wait_readable(fd, peer, deadline);
    if (rc == ncclSuccess)
        rc = receive_descriptors(fd, peer, &credentials, is_dropped_out, descriptors_out);

close_fd:
    close(fd);
    return rc;
}

ncclResult_t rondo_descriptors_fetch(const struct rondo_peer *peer, int32_t device, uint64_t deadline,
                                     struct rondo_descriptors *descriptors_out)
{
    bool is_dropped;

    for (unsigned drops = 0; drops < DROPS_FORGIVEN && (drops == 0 || rondo_clock_ns() < deadline); drops++) {
        ncclResult_t rc = ask(peer, device, deadline, &is_dropped, descriptors_out);
        if (!is_dropped)
            return rc;
        rondo_clock_sleep_ns((uint64_t)RETRY_NS << drops);
    }
    return rondo_fail(ncclRemoteError,
                      "ask process %d of rank %d for its memory: it hung up; it has no descriptor left "
                      "(ulimit -n), serves another job, or has just ended",
                      peer->pid, peer->rank);
}
