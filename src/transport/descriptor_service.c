/*
 * descriptor_service.c - the answering side of descriptor_wire.h, inside one epoll descriptor that the watch
 * thread waits on.
 *
 * Nothing here waits for a client: a request that is not there yet keeps its place among a bounded number of
 * pending connections until its time is over or newer ones need the place. An honest client sends at once, so
 * it is served when it is accepted. Whoever has another user id, sends anything but a request, or does not
 * know the token is dropped.
 */
#include "transport/descriptor_service.h"

#include "descriptor_wire.h"
#include "life_pipe.h"

#include "base/auth.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Choices, not measured: how many silent connections are kept, for how long, before an honest one in a hurry
 * could lose its place; against descriptors that strangers can hold. */
#define PENDING 64
#define ACCEPTS_A_POLL 64 /* so that a flood of connections cannot keep the watch thread here */
#define PATIENCE_NS 2000000000u
#define QUIET_NS 10000000000u /* between log lines about strangers */
#define NAME_ATTEMPTS 16

struct pending {
    int fd; /* -1: free */
    uint64_t deadline;
};

static struct {
    pthread_mutex_t lock;
    unsigned users;
    uint64_t token; /* the process it was opened by */
    uint32_t name;
    int epoll;
    int listener;
    int reserve; /* given up for a moment when descriptors run out, so that a connection can be taken and
                    dropped */
    struct pending pending[PENDING];
    uint64_t logged;    /* when strangers were last mentioned */
    unsigned strangers; /* since then */
} service = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Strangers are normal weather: mentioned rarely, and only to who asked for it. */
static void note_stranger(const char *what)
{
    uint64_t now = rondo_clock_ns();

    service.strangers++;
    if (service.logged != 0 && now - service.logged < QUIET_NS)
        return;
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_SHM,
              "descriptor service: dropped %u connection(s), the last one because %s", service.strangers,
              what);
    service.logged = now;
    service.strangers = 0;
}

static void drop(struct pending *pending)
{
    /* By hand: a forked child may hold a copy, and then closing does not remove it from the set. */
    epoll_ctl(service.epoll, EPOLL_CTL_DEL, pending->fd, NULL);
    close(pending->fd);
    pending->fd = -1;
}

static int watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(service.epoll, EPOLL_CTL_ADD, fd, &event);
}

static ncclResult_t collect(int device, int fds[RONDO_DESCRIPTOR_NUM])
{
    const struct rondo_device_ops *ops;
    ncclResult_t rc = rondo_device_select(&ops);

    if (rc != ncclSuccess)
        return rc;
    rc = ops->export_arena(device, &fds[RONDO_DESCRIPTOR_ARENA]);
    if (rc != ncclSuccess)
        return rc;
    rc = ops->export_switchboard(&fds[RONDO_DESCRIPTOR_BOARD]);
    if (rc != ncclSuccess)
        goto close_arena;
    fds[RONDO_DESCRIPTOR_DEATH] = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fds[RONDO_DESCRIPTOR_DEATH] < 0) {
        rc = rondo_fail(ncclSystemError, "pidfd_open: %s%s", rondo_error_system(errno),
                        errno == ENOSYS || errno == EPERM
                            ? "; Linux 5.3 or newer is needed, and no filter that forbids it"
                            : "");
        goto close_board;
    }
    rc = rondo_life_export(&fds[RONDO_DESCRIPTOR_LIFE]);
    if (rc != ncclSuccess)
        goto close_death;
    return ncclSuccess;

close_death:
    close(fds[RONDO_DESCRIPTOR_DEATH]);
close_board:
    close(fds[RONDO_DESCRIPTOR_BOARD]);
close_arena:
    close(fds[RONDO_DESCRIPTOR_ARENA]);
    return rc;
}

static void answer(int fd, int device)
{
    struct rondo_descriptor_reply reply = {
        .magic = RONDO_DESCRIPTOR_MAGIC, .token = service.token, .pid_namespace = rondo_pid_namespace()};
    int fds[RONDO_DESCRIPTOR_NUM];
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(fds))];
    } control = {0};
    struct iovec part = {.iov_base = &reply, .iov_len = sizeof(reply)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    reply.code = collect(device, fds);
    if (reply.code == ncclSuccess) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(fds));
        memcpy(CMSG_DATA(&control.head), fds, sizeof(fds));
    } else {
        snprintf(reply.text, sizeof(reply.text), "%s", rondo_error_own());
    }
    if (sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        note_stranger("it did not wait for the answer");
    for (int i = 0; reply.code == ncclSuccess && i < RONDO_DESCRIPTOR_NUM; i++)
        close(fds[i]);
}

/* Serve one connection as far as it goes; true: its place is free again. */
static bool serve(struct pending *pending)
{
    struct rondo_descriptor_request request;
    ssize_t received = recv(pending->fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);

    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (received != (ssize_t)sizeof(request) || request.magic != RONDO_DESCRIPTOR_MAGIC)
        note_stranger("it sent no request");
    else if (request.token != service.token)
        note_stranger("it asked for another process");
    else
        answer(pending->fd, request.device);
    drop(pending);
    return true;
}

/* A place for one more connection: a free one, or that of whoever has waited longest. */
static struct pending *make_place(void)
{
    struct pending *place = &service.pending[0];

    for (int i = 0; i < PENDING; i++) {
        struct pending *candidate = &service.pending[i];
        if (candidate->fd < 0)
            return candidate;
        if (candidate->deadline < place->deadline)
            place = candidate;
    }
    note_stranger("it sent nothing while others came");
    drop(place);
    return place;
}

static void admit(int fd)
{
    struct ucred credentials;
    socklen_t length = sizeof(credentials);
    struct pending *place;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 || credentials.uid != geteuid()) {
        note_stranger("it is another user's");
        close(fd);
        return;
    }
    place = make_place();
    *place = (struct pending){.fd = fd, .deadline = rondo_clock_ns() + PATIENCE_NS};
    if (watch(fd) != 0)
        drop(place);
    else
        serve(place);
}

/* Descriptors have run out: take the connection with the reserve and drop it, or the listener would stay
 * readable. */
static void accept_and_drop(void)
{
    int fd;

    close(service.reserve);
    fd = accept4(service.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    service.reserve = fcntl(service.epoll, F_DUPFD_CLOEXEC, 0);
    note_stranger("this process has no descriptor left");
}

void rondo_descriptor_service_poll(void)
{
    pthread_mutex_lock(&service.lock);
    if (service.users == 0)
        goto unlock;
    for (int i = 0; i < PENDING; i++) {
        struct pending *pending = &service.pending[i];
        if (pending->fd >= 0 && !serve(pending) && rondo_clock_ns() >= pending->deadline) {
            note_stranger("it sent nothing");
            drop(pending);
        }
    }
    for (int i = 0; i < ACCEPTS_A_POLL; i++) {
        int fd = accept4(service.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            admit(fd);
        else if (errno == EMFILE || errno == ENFILE)
            accept_and_drop();
        else if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
unlock:
    pthread_mutex_unlock(&service.lock);
}

/* Bind a random name that nobody has. 0 is no name. */
static ncclResult_t bind_listener(void)
{
    struct sockaddr_un address;
    socklen_t length;
    ncclResult_t rc;

    for (int attempt = 0; attempt < NAME_ATTEMPTS; attempt++) {
        rc = rondo_random_bytes(&service.name, sizeof(service.name));
        if (rc != ncclSuccess)
            return rc;
        if (service.name == 0)
            continue;
        length = rondo_descriptor_address(service.name, &address);
        if (bind(service.listener, (struct sockaddr *)&address, length) == 0)
            return ncclSuccess;
        if (errno != EADDRINUSE)
            return rondo_fail(ncclSystemError, "bind the descriptor service to @%s: %s", address.sun_path + 1,
                              rondo_error_system(errno));
    }
    return rondo_fail(ncclSystemError, "bind the descriptor service: %d random names were all taken",
                      NAME_ATTEMPTS);
}

static ncclResult_t open_service(void)
{
    ncclResult_t rc;

    service.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (service.epoll < 0)
        return rondo_fail(ncclSystemError, "open an epoll set for the descriptor service: %s",
                          rondo_error_system(errno));
    service.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (service.listener < 0) {
        rc = rondo_fail(ncclSystemError, "open a socket for the descriptor service: %s",
                        rondo_error_system(errno));
        goto close_epoll;
    }
    rc = bind_listener();
    if (rc != ncclSuccess)
        goto close_listener;
    if (listen(service.listener, SOMAXCONN) != 0 || watch(service.listener) != 0) {
        rc = rondo_fail(ncclSystemError, "listen for peers that ask for descriptors: %s",
                        rondo_error_system(errno));
        goto close_listener;
    }
    service.reserve = fcntl(service.epoll, F_DUPFD_CLOEXEC, 0);
    if (service.reserve < 0) {
        rc = rondo_fail(ncclSystemError, "keep a descriptor in reserve: %s", rondo_error_system(errno));
        goto close_listener;
    }
    for (int i = 0; i < PENDING; i++)
        service.pending[i].fd = -1;
    service.token = rondo_process_nonce();
    return ncclSuccess;

close_listener:
    close(service.listener);
close_epoll:
    close(service.epoll);
    return rc;
}

static void close_service(void)
{
    for (int i = 0; i < PENDING; i++) {
        if (service.pending[i].fd >= 0)
            drop(&service.pending[i]);
    }
    close(service.reserve);
    close(service.listener);
    close(service.epoll);
}

ncclResult_t rondo_descriptor_service_start(uint32_t *service_out, int *fd_out)
{
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&service.lock);
    if (service.users == 0)
        rc = open_service();
    if (rc == ncclSuccess) {
        service.users++;
        *service_out = service.name;
        *fd_out = service.epoll;
    }
    pthread_mutex_unlock(&service.lock);
    return rc;
}

void rondo_descriptor_service_stop(void)
{
    pthread_mutex_lock(&service.lock);
    if (service.users > 0 && --service.users == 0)
        close_service();
    pthread_mutex_unlock(&service.lock);
}
