/*
 * star.c - exchanges over sockets that are already connected.
 *
 * A message is a header and a payload. Ranks above 0 send theirs to rank 0 and read back everybody's; rank 0
 * takes them as they come. A header may also say FAILED, instead of any other message; rank 0 passes that on.
 */
#include "star.h"
#include "star_meet.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_DATA 0x52504446u
#define MESSAGE_FAILED 0x52504641u
#define MEETING_S 60
#define EXCHANGE_S 1800

struct header {
    uint32_t kind;
    uint32_t what;  /* hash of the operation's name; of a failure: its status */
    uint64_t bytes; /* of a failure: the rank that failed */
    uint64_t number;
};

struct perf_rendezvous {
    int rank;
    int size;
    int *links; /* as in struct perf_identity */
    uint64_t number;
    int limit_s;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int limit_from_environment(int otherwise)
{
    const char *text = getenv("RONDO_PERF_TIMEOUT");
    int value = text ? atoi(text) : 0;

    return value > 0 ? value : otherwise;
}

static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

enum perf_status perf_rendezvous_open(const struct perf_identity *identity,
                                      struct perf_rendezvous **rendezvous_out)
{
    struct perf_rendezvous *rendezvous = calloc(1, sizeof(*rendezvous));
    enum perf_status status = PERF_OK;

    if (!rendezvous)
        return perf_fail(PERF_INTERNAL, "no memory to meet the other processes");
    rendezvous->rank = identity->rank;
    rendezvous->size = identity->size;
    rendezvous->limit_s = limit_from_environment(EXCHANGE_S);
    rendezvous->links = identity->links;
    if (identity->size > 1 && !identity->links)
        status = perf_rendezvous_meet(identity, limit_from_environment(MEETING_S), &rendezvous->links);
    if (status != PERF_OK) {
        free(rendezvous);
        return status;
    }
    *rendezvous_out = rendezvous;
    return PERF_OK;
}

void perf_rendezvous_limit(struct perf_rendezvous *rendezvous, int limit_s)
{
    if (limit_s < rendezvous->limit_s)
        rendezvous->limit_s = limit_s;
}

static int peers(const struct perf_rendezvous *rendezvous)
{
    return rendezvous->rank == 0 ? rendezvous->size : 1;
}

static enum perf_status report_lost(int rank, int size)
{
    return perf_fail(PERF_INTERNAL, "rank %d of %d has ended; its own output says why", rank, size);
}

/* A failure told by its rank: to the others, too, when this is rank 0. */
static enum perf_status pass_on_failure(struct perf_rendezvous *rendezvous, const struct header *header)
{
    enum perf_status status =
        header->what >= 1 && header->what <= PERF_WRONG ? (enum perf_status)header->what : PERF_INTERNAL;

    perf_fail(status, "rank %d of %d has failed; its own output says why", (int)header->bytes,
              rendezvous->size);
    if (rendezvous->rank == 0)
        for (int r = 1; r < rendezvous->size; r++)
            if (r != (int)header->bytes)
                send(rendezvous->links[r], header, sizeof(*header), MSG_NOSIGNAL | MSG_DONTWAIT);
    return status;
}

/* Read exactly bytes from the process behind a link. */
static enum perf_status read_all(struct perf_rendezvous *rendezvous, int peer, const char *what, void *to,
                                 size_t bytes, int64_t deadline)
{
    char *cursor = to;

    while (bytes > 0) {
        struct pollfd waiting = {.fd = rendezvous->links[peer], .events = POLLIN};
        int64_t left = deadline - now_ms();
        ssize_t got;

        if (left <= 0)
            return perf_fail(PERF_TIMEOUT,
                             "rank %d of %d did not come to '%s' within %d s (-T, RONDO_PERF_TIMEOUT)", peer,
                             rendezvous->size, what, rendezvous->limit_s);
        if (poll(&waiting, 1, left < 60000 ? (int)left : 60000) <= 0)
            continue;
        got = recv(waiting.fd, cursor, bytes, 0);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return report_lost(peer, rendezvous->size);
        if (got > 0) {
            cursor += got;
            bytes -= (size_t)got;
        }
    }
    return PERF_OK;
}

static enum perf_status write_all(struct perf_rendezvous *rendezvous, int peer, const void *from,
                                  size_t bytes)
{
    const char *cursor = from;

    while (bytes > 0) {
        ssize_t put = send(rendezvous->links[peer], cursor, bytes, MSG_NOSIGNAL);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            struct header last;

            /* A process that fails says so before it goes. */
            if (recv(rendezvous->links[peer], &last, sizeof(last), MSG_DONTWAIT) == (ssize_t)sizeof(last) &&
                last.kind == MESSAGE_FAILED)
                return pass_on_failure(rendezvous, &last);
            return report_lost(peer, rendezvous->size);
        }
        cursor += put;
        bytes -= (size_t)put;
    }
    return PERF_OK;
}

/* One message from a peer, of which header says what it must be. */
static enum perf_status read_message(struct perf_rendezvous *rendezvous, int peer, const char *what,
                                     const struct header *wanted, void *payload, size_t bytes,
                                     int64_t deadline)
{
    struct header header;
    enum perf_status status = read_all(rendezvous, peer, what, &header, sizeof(header), deadline);

    if (status != PERF_OK)
        return status;
    if (header.kind == MESSAGE_FAILED)
        return pass_on_failure(rendezvous, &header);
    if (header.kind != MESSAGE_DATA || header.what != wanted->what || header.number != wanted->number ||
        header.bytes != wanted->bytes)
        return perf_fail(
            PERF_USAGE,
            "rank %d of %d is not at '%s' (step %llu, %llu bytes): start all processes with the same "
            "program and options",
            peer, rendezvous->size, what, (unsigned long long)wanted->number,
            (unsigned long long)wanted->bytes);
    return read_all(rendezvous, peer, what, payload, bytes, deadline);
}

/* Rank 0 takes each rank's message when it is there, so that one that fails is noticed while others are late.
 */
static enum perf_status gather(struct perf_rendezvous *rendezvous, const char *what,
                               const struct header *wanted, char *all, int64_t deadline)
{
    struct pollfd *waiting = calloc((size_t)rendezvous->size, sizeof(*waiting));
    enum perf_status status = PERF_OK;
    int left = rendezvous->size - 1;

    if (!waiting)
        return perf_fail(PERF_INTERNAL, "no memory to hear %d processes", rendezvous->size);
    for (int r = 0; r < rendezvous->size; r++)
        waiting[r] = (struct pollfd){.fd = r ? rendezvous->links[r] : -1, .events = POLLIN};
    while (left > 0 && status == PERF_OK) {
        if (now_ms() >= deadline) {
            int late = 1;

            while (waiting[late].fd < 0)
                late++;
            status = perf_fail(PERF_TIMEOUT, "rank %d and %d more of %d did not come to '%s' within %d s",
                               late, left - 1, rendezvous->size, what, rendezvous->limit_s);
            break;
        }
        if (poll(waiting, (nfds_t)rendezvous->size, 1000) <= 0)
            continue;
        for (int r = 1; r < rendezvous->size && status == PERF_OK; r++) {
            if (waiting[r].fd < 0 || !waiting[r].revents)
                continue;
            status = read_message(rendezvous, r, what, wanted, all + (size_t)r * wanted->bytes, wanted->bytes,
                                  deadline);
            waiting[r].fd = -1;
            left--;
        }
    }
    free(waiting);
    return status;
}

enum perf_status perf_rendezvous_exchange(struct perf_rendezvous *rendezvous, const char *what,
                                          const void *mine, size_t bytes, void *all_out)
{
    struct header header = {.kind = MESSAGE_DATA, .what = hash_text(what), .bytes = bytes};
    size_t total = bytes * (size_t)rendezvous->size;
    int64_t deadline = now_ms() + (int64_t)rendezvous->limit_s * 1000;
    enum perf_status status;

    header.number = ++rendezvous->number;
    if (bytes > 0)
        memcpy((char *)all_out + (size_t)rendezvous->rank * bytes, mine, bytes);
    if (rendezvous->size == 1)
        return PERF_OK;
    if (rendezvous->rank == 0) {
        status = gather(rendezvous, what, &header, all_out, deadline);
        for (int r = 1; r < rendezvous->size && status == PERF_OK; r++) {
            status = write_all(rendezvous, r, &header, sizeof(header));
            if (status == PERF_OK)
                status = write_all(rendezvous, r, all_out, total);
        }
        return status;
    }
    status = write_all(rendezvous, 0, &header, sizeof(header));
    if (status == PERF_OK)
        status = write_all(rendezvous, 0, mine, bytes);
    if (status != PERF_OK)
        return status;
    return read_message(rendezvous, 0, what, &header, all_out, total, deadline);
}

void perf_rendezvous_fail(struct perf_rendezvous *rendezvous, enum perf_status status)
{
    struct header header = {.kind = MESSAGE_FAILED, .what = (uint32_t)status};

    if (!rendezvous || rendezvous->size == 1)
        return;
    header.bytes = (uint64_t)rendezvous->rank;
    for (int r = rendezvous->rank == 0; r < peers(rendezvous); r++)
        send(rendezvous->links[r], &header, sizeof(header), MSG_NOSIGNAL | MSG_DONTWAIT);
}

enum perf_status perf_rendezvous_check(struct perf_rendezvous *rendezvous)
{
    if (rendezvous->size == 1)
        return PERF_OK;
    for (int r = rendezvous->rank == 0; r < peers(rendezvous); r++) {
        struct header header;
        ssize_t got = recv(rendezvous->links[r], &header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);

        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
            return report_lost(r, rendezvous->size);
        if (got == (ssize_t)sizeof(header) && header.kind == MESSAGE_FAILED)
            return pass_on_failure(rendezvous, &header);
    }
    return PERF_OK;
}

void perf_rendezvous_close(struct perf_rendezvous *rendezvous)
{
    if (!rendezvous)
        return;
    for (int r = rendezvous->rank == 0; rendezvous->size > 1 && r < peers(rendezvous); r++)
        close(rendezvous->links[r]);
    free(rendezvous->links);
    free(rendezvous);
}
