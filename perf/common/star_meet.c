/*
 * star_meet.c - where rank 0 listens, and how each side knows that the other belongs to the same run.
 *
 * On one host that is a Unix socket with an abstract name made from what the launcher says of the job, so
 * there is nothing to configure and nothing to clean up. On several hosts it is TCP: MASTER_ADDR and
 * MASTER_PORT, or RONDO_PERF_RENDEZVOUS. Every connection starts with a greeting that carries the job; others
 * are turned away and do not disturb. This keeps runs apart; it is not a defence against an attacker.
 */
#include "star_meet.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define GREETING_MAGIC 0x52504852u
#define GREETING_S 2 /* for a stranger to say who it is */

enum verdict { WELCOME = 1, OTHER_SIZE = 2, RANK_TAKEN = 3, NO_SUCH_RANK = 4 };

struct greeting {
    uint32_t magic;
    uint32_t rank;
    uint32_t size;
    char job[256];
};

struct meeting_point {
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_storage storage;
    } address;
    socklen_t length;
    char text[300];
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void local_point(const struct perf_identity *identity, struct meeting_point *point)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    struct sockaddr_un *local = &point->address.local;
    int length;

    for (const char *c = identity->job; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    memset(local, 0, sizeof(*local));
    local->sun_family = AF_UNIX;
    length = snprintf(local->sun_path + 1, sizeof(local->sun_path) - 1, "rondo-perf-%d-%016llx",
                      (int)getuid(), (unsigned long long)hash);
    point->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    snprintf(point->text, sizeof(point->text), "@%s", local->sun_path + 1);
}

static enum perf_status network_point(const char *host, const char *port, struct meeting_point *point)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int answer = getaddrinfo(host, port, &hints, &found);

    if (answer != 0)
        return perf_fail(PERF_USAGE,
                         "look up %s port %s, where rank 0 is to be met: %s; set RONDO_PERF_RENDEZVOUS="
                         "host:port",
                         host, port, gai_strerror(answer));
    memcpy(&point->address, found->ai_addr, found->ai_addrlen);
    point->length = found->ai_addrlen;
    snprintf(point->text, sizeof(point->text), "%s:%s", host, port);
    freeaddrinfo(found);
    return PERF_OK;
}

static enum perf_status explicit_point(const char *text, struct meeting_point *point)
{
    char host[256];
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;

    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') { /* [IPv6]:port */
        text++;
        length -= 2;
    }
    if (length == 0 || length >= sizeof(host) || !colon[1])
        return perf_fail(PERF_USAGE, "RONDO_PERF_RENDEZVOUS is '%s': give host:port of rank 0", text);
    memcpy(host, text, length);
    host[length] = '\0';
    return network_point(host, colon + 1, point);
}

/* torchrun's agent keeps MASTER_PORT to itself when it says so; then the next port is used. */
static enum perf_status torchrun_point(struct meeting_point *point)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"),
               *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
    char next[16];

    snprintf(next, sizeof(next), "%d",
             atoi(port) + (agent && (agent[0] == 'T' || agent[0] == 't' || agent[0] == '1')));
    return network_point(host, next, point);
}

static enum perf_status choose_point(const struct perf_identity *identity, struct meeting_point *point)
{
    const char *text = getenv("RONDO_PERF_RENDEZVOUS");

    if (text)
        return explicit_point(text, point);
    if (identity->local_size == identity->size) {
        local_point(identity, point);
        return PERF_OK;
    }
    if (strcmp(identity->launcher, "torchrun") == 0 && getenv("MASTER_ADDR") && getenv("MASTER_PORT"))
        return torchrun_point(point);
    if (identity->local_size == 0) { /* not said: try here, time out with advice */
        local_point(identity, point);
        return PERF_OK;
    }
    return perf_fail(
        PERF_USAGE,
        "%s runs %d processes of which %d are on this host: set RONDO_PERF_RENDEZVOUS=host:port, an address "
        "of rank 0's host and a free port, for all of them",
        identity->launcher, identity->size, identity->local_size);
}

static struct greeting make_greeting(const struct perf_identity *identity, bool is_network)
{
    struct greeting greeting = {
        .magic = GREETING_MAGIC, .rank = (uint32_t)identity->rank, .size = (uint32_t)identity->size};

    /* A parent's process number differs from host to host. */
    if (!is_network || !strstr(identity->job, "/parent "))
        memcpy(greeting.job, identity->job, sizeof(greeting.job));
    return greeting;
}

static bool move_bytes(int fd, void *buffer, size_t bytes, bool is_read, int64_t deadline)
{
    char *cursor = buffer;

    while (bytes > 0) {
        struct pollfd waiting = {.fd = fd, .events = is_read ? POLLIN : POLLOUT};
        int64_t left = deadline - now_ms();
        ssize_t moved;

        if (left <= 0)
            return false;
        if (poll(&waiting, 1, (int)left) <= 0)
            continue;
        moved = is_read ? recv(fd, cursor, bytes, 0) : send(fd, cursor, bytes, MSG_NOSIGNAL);
        if (moved == 0 || (moved < 0 && errno != EINTR && errno != EAGAIN))
            return false;
        if (moved > 0) {
            cursor += moved;
            bytes -= (size_t)moved;
        }
    }
    return true;
}

static void set_no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* a Unix socket refuses, and needs it not */
}

static int listen_at(struct meeting_point *point)
{
    int fd = socket(point->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        return -1;
    if (point->address.any.sa_family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &point->address.any, point->length) != 0 || listen(fd, 4096) != 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* A stranger has connected: one of ours, or somebody else's. */
static void admit(int fd, const struct greeting *own, int *links, int *missing)
{
    struct greeting theirs;
    uint32_t verdict;

    if (!move_bytes(fd, &theirs, sizeof(theirs), true, now_ms() + GREETING_S * 1000) ||
        theirs.magic != GREETING_MAGIC || memcmp(theirs.job, own->job, sizeof(own->job)) != 0) {
        close(fd);
        return;
    }
    if (theirs.size != own->size)
        verdict = OTHER_SIZE;
    else if (theirs.rank == 0 || theirs.rank >= own->size)
        verdict = NO_SUCH_RANK;
    else
        verdict = links[theirs.rank] >= 0 ? RANK_TAKEN : WELCOME;
    if (!move_bytes(fd, &verdict, sizeof(verdict), false, now_ms() + GREETING_S * 1000) ||
        verdict != WELCOME) {
        close(fd);
        return;
    }
    set_no_delay(fd);
    links[theirs.rank] = fd;
    (*missing)--;
}

static enum perf_status report_missing(const int *links, int size, int limit_s,
                                       const struct meeting_point *point)
{
    char ranks[128] = "";
    size_t used = 0;

    for (int r = 1; r < size && used < sizeof(ranks) - 16; r++)
        if (links[r] < 0)
            used += (size_t)snprintf(ranks + used, sizeof(ranks) - used, "%s%d", used ? ", " : "", r);
    return perf_fail(
        PERF_TIMEOUT,
        "rank 0 of %d waited %d s at %s for rank %s: are they started, on this host? For several hosts set "
        "RONDO_PERF_RENDEZVOUS=host:port",
        size, limit_s, point->text, ranks);
}

static enum perf_status wait_for_all(struct meeting_point *point, const struct greeting *own, int limit_s,
                                     int *links)
{
    int64_t deadline = now_ms() + (int64_t)limit_s * 1000;
    int missing = (int)own->size - 1;
    int fd = listen_at(point);

    if (fd < 0)
        return perf_fail(
            PERF_USAGE,
            "listen at %s for the other %d processes: %s; set RONDO_PERF_RENDEZVOUS=host:port to "
            "another place",
            point->text, missing, strerror(errno));
    while (missing > 0 && now_ms() < deadline) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        int peer;

        if (poll(&waiting, 1, 200) <= 0)
            continue;
        peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer >= 0)
            admit(peer, own, links, &missing);
    }
    close(fd);
    return missing ? report_missing(links, (int)own->size, limit_s, point) : PERF_OK;
}

static enum perf_status report_verdict(uint32_t verdict, const struct greeting *own,
                                       const struct meeting_point *point)
{
    static const char *const reasons[] = {"", "", "its run has another number of processes",
                                          "another process has this rank", "it knows no such rank"};

    return perf_fail(PERF_USAGE, "rank %u of %u was turned away by rank 0 at %s: %s", own->rank, own->size,
                     point->text, verdict < 5 ? reasons[verdict] : "unknown reason");
}

/* Rank 0 may not be there yet, or another job's rank 0 may be: try until the time is up. */
static enum perf_status go_to_root(struct meeting_point *point, struct greeting *own, int limit_s,
                                   int *link_out)
{
    int64_t deadline = now_ms() + (int64_t)limit_s * 1000;
    const char *last = "nobody listened there";

    while (now_ms() < deadline) {
        int fd = socket(point->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        uint32_t verdict = 0;

        if (fd < 0)
            return perf_fail(PERF_INTERNAL, "make a socket to meet rank 0: %s", strerror(errno));
        if (connect(fd, &point->address.any, point->length) != 0) {
            last = strerror(errno);
        } else if (move_bytes(fd, own, sizeof(*own), false, deadline) &&
                   move_bytes(fd, &verdict, sizeof(verdict), true, deadline)) {
            if (verdict == WELCOME) {
                set_no_delay(fd);
                *link_out = fd;
                return PERF_OK;
            }
            close(fd);
            return report_verdict(verdict, own, point);
        } else {
            last = "another job is there";
        }
        close(fd);
        usleep(20000);
    }
    return perf_fail(PERF_TIMEOUT,
                     "rank %u of %u waited %d s for rank 0 at %s (%s): is it started, on this host? For "
                     "several hosts set RONDO_PERF_RENDEZVOUS=host:port",
                     own->rank, own->size, limit_s, point->text, last);
}

enum perf_status perf_rendezvous_meet(const struct perf_identity *identity, int limit_s, int **links_out)
{
    struct meeting_point point = {0};
    struct greeting greeting;
    int *links = malloc((size_t)identity->size * sizeof(int));
    enum perf_status status;

    if (!links)
        return perf_fail(PERF_INTERNAL, "no memory to meet %d processes", identity->size);
    for (int r = 0; r < identity->size; r++)
        links[r] = -1;
    status = choose_point(identity, &point);
    if (status == PERF_OK) {
        greeting = make_greeting(identity, point.address.any.sa_family != AF_UNIX);
        status = identity->rank == 0 ? wait_for_all(&point, &greeting, limit_s, links)
                                     : go_to_root(&point, &greeting, limit_s, &links[0]);
    }
    if (status != PERF_OK) {
        for (int r = 0; r < identity->size; r++)
            if (links[r] >= 0)
                close(links[r]);
        free(links);
        return status;
    }
    *links_out = links;
    return PERF_OK;
}
