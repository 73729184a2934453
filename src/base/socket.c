/*
 * socket.c - opening TCP connections without waiting for anything.
 *
 * Whoever waits does so in poll(), for many sockets at once, and decides about deadlines there.
 */
#include "base/socket.h"

#include "base/error.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* A host that vanishes without a word is noticed after about half a minute. A choice: sooner would take a
 * short outage of the network for a death. */
#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_INTERVAL_S 5
#define KEEPALIVE_PROBES 3

static void set_options(int fd)
{
    int on = 1, idle = KEEPALIVE_IDLE_S, interval = KEEPALIVE_INTERVAL_S, probes = KEEPALIVE_PROBES;

    /* None of these can fail on a TCP socket; without them the connection is only slower or later to notice a
     * death. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

ncclResult_t rondo_socket_listen(const union rondo_address *address, int backlog, int *fd_out,
                                 union rondo_address *address_out)
{
    char text[RONDO_ADDRESS_TEXT];
    union rondo_address bound = {0};
    socklen_t bytes = sizeof(bound);
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return rondo_fail(ncclSystemError, "open a socket to listen on %s: %s",
                          rondo_address_text(address, text), rondo_error_system(errno));
    /* A port whose last connections are still in TIME_WAIT may be taken at once; one that is listened on may
     * not. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &address->any, rondo_address_bytes(address)) != 0 || listen(fd, backlog) != 0) {
        int error = errno;

        close(fd);
        if (error == EADDRINUSE)
            return rondo_fail(
                ncclSystemError,
                "listen on %s: %s: port in use by another process or an earlier run; choose another",
                rondo_address_text(address, text), rondo_error_system(error));
        return rondo_fail(ncclSystemError, "listen on %s: %s", rondo_address_text(address, text),
                          rondo_error_system(error));
    }
    if (getsockname(fd, &bound.any, &bytes) != 0) {
        ncclResult_t rc =
            rondo_fail(ncclSystemError, "ask for the address of a socket: %s", rondo_error_system(errno));

        close(fd);
        return rc;
    }
    *fd_out = fd;
    *address_out = bound;
    return ncclSuccess;
}

/* Whether somebody waits to be accepted: the kernel looks for a descriptor first, and complains even if nobody does. */
static bool has_caller(int listener)
{
    int saved = errno;
    struct pollfd entry = {.fd = listener, .events = POLLIN};
    bool is_there = poll(&entry, 1, 0) == 1;

    errno = saved;
    return is_there;
}

ncclResult_t rondo_socket_accept(int listener, int *fd_out, union rondo_address *address_out)
{
    union rondo_address address = {0};
    socklen_t bytes = sizeof(address);
    int fd = accept4(listener, &address.any, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0) {
        set_options(fd);
        *fd_out = fd;
        *address_out = address;
        return ncclSuccess;
    }
    if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) && has_caller(listener))
        return rondo_fail(ncclSystemError, "accept a connection: %s", rondo_error_system(errno));
    return ncclInProgress; /* nobody there, or already gone again */
}

/* Whether a local port that nobody listens on was connected to itself, as TCP permits. */
static bool is_own_end(int fd)
{
    union rondo_address here = {0}, there = {0};
    socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);

    return getsockname(fd, &here.any, &here_bytes) == 0 && getpeername(fd, &there.any, &there_bytes) == 0 &&
           here_bytes == there_bytes && memcmp(&here, &there, here_bytes) == 0;
}

ncclResult_t rondo_socket_connect_start(const union rondo_address *address, int *fd_out, int *error_out)
{
    char text[RONDO_ADDRESS_TEXT];
    socklen_t bytes = rondo_address_bytes(address);
    int fd, error = 0;

    if (bytes == 0)
        return rondo_fail(ncclInvalidArgument, "connect to %s", rondo_address_text(address, text));
    fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rondo_fail(ncclSystemError, "open a socket to %s: %s", rondo_address_text(address, text),
                          rondo_error_system(errno));
    set_options(fd);
    if (connect(fd, &address->any, bytes) != 0 && errno != EINPROGRESS && errno != EINTR)
        error = errno;
    *fd_out = fd;
    *error_out = error;
    return ncclSuccess;
}

int rondo_socket_connect_finish(int fd)
{
    int error = 0;
    socklen_t bytes = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
        return errno;
    return error == 0 && is_own_end(fd) ? ECONNREFUSED : error;
}
