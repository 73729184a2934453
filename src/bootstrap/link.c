/*
 * link.c - the state machine of a connection.
 *
 * Reading fills `staging` until what the phase waits for is complete: a handshake message, or a frame's head,
 * after which the payload is read to where it will stay. Writing empties `opening`, then, on an open link,
 * the queue of chunks.
 */
#include "link.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READS_A_TURN 16 /* then the others get theirs; a choice, not measured */

struct rondo_link_chunk {
    struct rondo_link_chunk *next;
    size_t bytes;
    unsigned char data[];
};

static void forget_input(struct rondo_link *link)
{
    free(link->payload);
    link->payload = NULL;
    link->staged = link->payload_got = 0;
    link->opening_bytes = link->opening_sent = 0;
    link->write_error = 0;
}

static void end_link(struct rondo_link *link, enum rondo_link_end end, int detail)
{
    rondo_loop_unwatch(&link->handle);
    forget_input(link);
    link->phase = RONDO_LINK_IDLE;
    link->ops->closed(link, end, detail);
}

static void watch_for(struct rondo_link *link, uint32_t events)
{
    if (link->events == events || link->handle.fd < 0)
        return;
    link->events = events;
    rondo_loop_change(&link->handle, events);
}

/* --- writing --- */

static void drop_first(struct rondo_link *link)
{
    struct rondo_link_chunk *done = link->first;

    link->first = done->next;
    if (!link->first)
        link->last = NULL;
    link->first_sent = 0;
    link->queued_bytes -= done->bytes;
    free(done);
}

/* What goes out next: handshake first, frames only on an open link. 0 bytes: nothing. */
static size_t next_output(struct rondo_link *link, const unsigned char **from_out)
{
    if (link->opening_sent < link->opening_bytes) {
        *from_out = link->opening + link->opening_sent;
        return link->opening_bytes - link->opening_sent;
    }
    if (link->phase == RONDO_LINK_OPEN && link->first) {
        *from_out = link->first->data + link->first_sent;
        return link->first->bytes - link->first_sent;
    }
    return 0;
}

/* Hand the kernel what it takes. A failure is kept: the peer's last words may still be there to be read, so
 * it is reading that ends the link. */
static void flush(struct rondo_link *link)
{
    const unsigned char *from;
    bool had_frames = link->first != NULL;
    size_t bytes;

    while ((bytes = next_output(link, &from)) > 0) {
        ssize_t sent = send(link->handle.fd, from, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK)
                link->write_error = errno;
            watch_for(link, EPOLLIN | EPOLLOUT);
            return;
        }
        if (link->opening_sent < link->opening_bytes) {
            link->opening_sent += (size_t)sent;
        } else {
            link->first_sent += (size_t)sent;
            if (link->first_sent == link->first->bytes)
                drop_first(link);
        }
    }
    watch_for(link, EPOLLIN);
    if (had_frames && !link->first && link->ops->drained)
        link->ops->drained(link);
}

ncclResult_t rondo_link_send(struct rondo_link *link, enum rondo_frame_kind kind, uint32_t tag,
                             const void *data, size_t bytes)
{
    struct rondo_frame head = {.kind = kind, .tag = tag, .bytes = bytes};
    struct rondo_link_chunk *chunk;

    if (bytes > RONDO_FRAME_MOST)
        return rondo_fail(ncclInvalidArgument, "send a message of %zu bytes: at most %u are accepted", bytes,
                          RONDO_FRAME_MOST);
    chunk = malloc(sizeof(*chunk) + sizeof(head) + bytes);
    if (!chunk)
        return rondo_fail(ncclSystemError, "send a message of %zu bytes: out of memory", bytes);
    chunk->next = NULL;
    chunk->bytes = sizeof(head) + bytes;
    memcpy(chunk->data, &head, sizeof(head));
    if (bytes > 0)
        memcpy(chunk->data + sizeof(head), data, bytes);
    if (link->last)
        link->last->next = chunk;
    else
        link->first = chunk;
    link->last = chunk;
    link->queued_bytes += chunk->bytes;
    if (link->phase == RONDO_LINK_OPEN && link->handle.fd >= 0)
        flush(link);
    return ncclSuccess;
}

/* --- the challenge --- */

static void put_opening(struct rondo_link *link, const void *message, size_t bytes)
{
    memcpy(link->opening, message, bytes);
    link->opening_bytes = bytes;
    link->opening_sent = 0;
}

/* The server believes the entry from here on. */
static bool take_entry(struct rondo_link *link)
{
    struct rondo_welcome welcome;
    struct rondo_entry entry;
    enum rondo_verdict verdict;

    memcpy(&entry, link->staging, sizeof(entry));
    verdict = rondo_entry_check(link->secret, &link->hello, &link->proof, &entry);
    if (verdict != RONDO_VERDICT_GOOD) {
        end_link(link, RONDO_LINK_VERDICT, verdict);
        return false;
    }
    if (!link->ops->admit(link, &entry)) {
        end_link(link, RONDO_LINK_LOST, 0);
        return false;
    }
    rondo_welcome_make(link->secret, &link->hello, &link->proof, &welcome);
    put_opening(link, &welcome, sizeof(welcome));
    link->phase = RONDO_LINK_OPEN;
    link->was_open = true;
    link->ops->opened(link);
    return true;
}

static bool take_proof(struct rondo_link *link)
{
    enum rondo_verdict verdict;

    memcpy(&link->proof, link->staging, sizeof(link->proof));
    verdict = rondo_proof_check(link->secret, &link->hello, &link->proof);
    if (verdict != RONDO_VERDICT_GOOD) {
        end_link(link, RONDO_LINK_VERDICT, verdict);
        return false;
    }
    rondo_entry_seal(link->secret, &link->hello, &link->proof, &link->entry);
    put_opening(link, &link->entry, sizeof(link->entry));
    link->phase = RONDO_LINK_AWAIT_WELCOME;
    return true;
}

static bool take_welcome(struct rondo_link *link)
{
    struct rondo_welcome welcome;
    enum rondo_verdict verdict;

    memcpy(&welcome, link->staging, sizeof(welcome));
    verdict = rondo_welcome_check(link->secret, &link->hello, &link->proof, &welcome);
    if (verdict != RONDO_VERDICT_GOOD) {
        end_link(link, RONDO_LINK_VERDICT, verdict);
        return false;
    }
    link->phase = RONDO_LINK_OPEN;
    link->was_open = true;
    link->ops->opened(link);
    return true;
}

static bool take_hello(struct rondo_link *link)
{
    enum rondo_verdict verdict;

    memcpy(&link->hello, link->staging, sizeof(link->hello));
    verdict = rondo_hello_check(&link->hello);
    if (verdict == RONDO_VERDICT_STRANGER ||
        rondo_proof_make(link->secret, &link->hello, &link->proof) != ncclSuccess) {
        end_link(link, RONDO_LINK_VERDICT, RONDO_VERDICT_STRANGER);
        return false;
    }
    /* Another version gets the proof too: its magic and version lie where every version has them. It will
     * leave. */
    put_opening(link, &link->proof, sizeof(link->proof));
    link->phase = RONDO_LINK_AWAIT_ENTRY;
    return true;
}

/* --- reading --- */

static size_t wanted_bytes(const struct rondo_link *link)
{
    switch (link->phase) {
    case RONDO_LINK_AWAIT_HELLO:
        return sizeof(struct rondo_hello);
    case RONDO_LINK_AWAIT_PROOF:
        return sizeof(struct rondo_proof);
    case RONDO_LINK_AWAIT_ENTRY:
        return sizeof(struct rondo_entry);
    case RONDO_LINK_AWAIT_WELCOME:
        return sizeof(struct rondo_welcome);
    default:
        return sizeof(struct rondo_frame);
    }
}

static bool deliver(struct rondo_link *link)
{
    void *data = link->payload;

    link->payload = NULL;
    link->payload_got = 0;
    if (!link->ops->frame(link, &link->head, data)) {
        if (!link->is_doomed)
            end_link(link, RONDO_LINK_MALFORMED, 0);
        return false;
    }
    return !link->is_doomed && link->handle.fd >= 0;
}

static bool take_head(struct rondo_link *link)
{
    memcpy(&link->head, link->staging, sizeof(link->head));
    if (link->head.bytes > RONDO_FRAME_MOST) {
        end_link(link, RONDO_LINK_MALFORMED, 0);
        return false;
    }
    if (link->head.bytes == 0)
        return deliver(link);
    link->payload = malloc(link->head.bytes);
    link->payload_got = 0;
    if (!link->payload) {
        end_link(link, RONDO_LINK_LOST, ENOMEM);
        return false;
    }
    return true;
}

/* A message is complete in staging. False: the link is over. */
static bool take_message(struct rondo_link *link)
{
    bool goes_on;

    link->staged = 0;
    switch (link->phase) {
    case RONDO_LINK_AWAIT_HELLO:
        goes_on = take_hello(link);
        break;
    case RONDO_LINK_AWAIT_PROOF:
        goes_on = take_proof(link);
        break;
    case RONDO_LINK_AWAIT_ENTRY:
        goes_on = take_entry(link);
        break;
    case RONDO_LINK_AWAIT_WELCOME:
        goes_on = take_welcome(link);
        break;
    default:
        return take_head(link);
    }
    if (!goes_on || link->is_doomed || link->handle.fd < 0)
        return false;
    flush(link);
    return !link->is_doomed;
}

/* One recv. 1: progress, 0: nothing there, -1: the link is over. */
static int read_some(struct rondo_link *link)
{
    bool in_payload = link->payload != NULL;
    unsigned char *to = in_payload ? link->payload + link->payload_got : link->staging + link->staged;
    size_t missing = in_payload ? link->head.bytes - link->payload_got : wanted_bytes(link) - link->staged;
    ssize_t got = recv(link->handle.fd, to, missing, 0);

    if (got < 0 && errno == EINTR)
        return 1;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (got <= 0) {
        end_link(link, RONDO_LINK_LOST, got < 0 ? errno : 0);
        return -1;
    }
    if (in_payload) {
        link->payload_got += (size_t)got;
        return (size_t)got < missing || deliver(link) ? 1 : -1;
    }
    link->staged += (size_t)got;
    return (size_t)got < missing || take_message(link) ? 1 : -1;
}

/* --- events --- */

static bool finish_connect(struct rondo_link *link)
{
    int error = link->connect_error != 0 ? link->connect_error : rondo_socket_connect_finish(link->handle.fd);

    if (error == 0 && rondo_hello_make(&link->hello) != ncclSuccess)
        error = EIO;
    if (error != 0) {
        end_link(link, RONDO_LINK_REFUSED, error);
        return false;
    }
    put_opening(link, &link->hello, sizeof(link->hello));
    link->phase = RONDO_LINK_AWAIT_PROOF;
    return true;
}

static void serve(struct rondo_link *link, uint32_t events)
{
    int progress = 1;

    if (link->phase == RONDO_LINK_CONNECTING) {
        if (!finish_connect(link))
            return;
        events |= EPOLLOUT;
    }
    if (events & EPOLLOUT)
        flush(link);
    if (link->is_doomed || (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && link->write_error == 0))
        return;
    for (int turn = 0; turn < READS_A_TURN && progress > 0; turn++)
        progress = read_some(link);
    if (progress == 0 && link->write_error != 0)
        end_link(link, RONDO_LINK_LOST, link->write_error);
}

static void free_link(struct rondo_link *link)
{
    free(link->payload);
    while (link->first)
        drop_first(link);
    rondo_auth_wipe(link, sizeof(*link));
    free(link);
}

static void on_ready(struct rondo_loop_handle *handle, uint32_t events)
{
    struct rondo_link *link = (struct rondo_link *)handle;

    link->is_busy = true;
    serve(link, events);
    link->is_busy = false;
    if (link->is_doomed)
        free_link(link);
}

/* --- making and ending --- */

static struct rondo_link *allocate(const union rondo_address *address, const struct rondo_secret *secret,
                                   const struct rondo_link_ops *ops, void *owner)
{
    struct rondo_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->handle.fd = -1;
    link->handle.ready = on_ready;
    link->ops = ops;
    link->owner = owner;
    link->secret = secret;
    link->address = *address;
    link->peer = -1;
    link->retry_ns = UINT64_MAX;
    return link;
}

ncclResult_t rondo_link_create_client(const union rondo_address *address, const struct rondo_secret *secret,
                                      const struct rondo_entry *entry, const struct rondo_link_ops *ops,
                                      void *owner, struct rondo_link **link_out)
{
    struct rondo_link *link = allocate(address, secret, ops, owner);

    if (!link)
        return rondo_fail(ncclSystemError, "make a connection: out of memory");
    link->entry = *entry;
    *link_out = link;
    return ncclSuccess;
}

ncclResult_t rondo_link_create_server(int fd, const union rondo_address *address,
                                      const struct rondo_secret *secret, const struct rondo_link_ops *ops,
                                      void *owner, struct rondo_link **link_out)
{
    struct rondo_link *link = allocate(address, secret, ops, owner);
    ncclResult_t rc;

    if (!link) {
        close(fd);
        return rondo_fail(ncclSystemError, "take a connection: out of memory");
    }
    link->handle.fd = fd;
    link->phase = RONDO_LINK_AWAIT_HELLO;
    link->since_ns = rondo_clock_ns();
    link->events = EPOLLIN;
    rc = rondo_loop_watch(&link->handle, link->events);
    if (rc != ncclSuccess) {
        free(link);
        return rc;
    }
    *link_out = link;
    return ncclSuccess;
}

ncclResult_t rondo_link_connect(struct rondo_link *link)
{
    ncclResult_t rc;
    int fd;

    link->attempts++;
    link->retry_ns = UINT64_MAX;
    forget_input(link);
    rc = rondo_socket_connect_start(&link->address, &fd, &link->connect_error);
    if (rc != ncclSuccess)
        return rc;
    link->handle.fd = fd;
    link->phase = RONDO_LINK_CONNECTING;
    link->events = EPOLLOUT;
    return rondo_loop_watch(&link->handle, link->events);
}

void rondo_link_destroy(struct rondo_link *link)
{
    if (!link)
        return;
    rondo_loop_unwatch(&link->handle);
    if (link->is_busy)
        link->is_doomed = true; /* on_ready, which runs below us, frees it */
    else
        free_link(link);
}

const char *rondo_link_end_text(enum rondo_link_end end, int detail, char out[RONDO_LINK_END_TEXT])
{
    const char *text = "it sent what no rank would send";

    if (end == RONDO_LINK_REFUSED)
        text = strerror(detail);
    else if (end == RONDO_LINK_LOST)
        text = detail != 0 ? strerror(detail) : "it closed the connection";
    else if (end == RONDO_LINK_VERDICT && detail == RONDO_VERDICT_STRANGER)
        text = "what answers there is not this library";
    else if (end == RONDO_LINK_VERDICT && detail == RONDO_VERDICT_VERSION)
        text = "it runs another version of this library";
    else if (end == RONDO_LINK_VERDICT)
        text = "it does not know this job's secret";
    snprintf(out, RONDO_LINK_END_TEXT, "%s", text);
    return out;
}
