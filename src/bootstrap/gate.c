/* gate.c - accepting connections from anybody, believing few. */
#include "gate.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Choices, not measured. More strangers at once let a flood of them crowd out fewer ranks, for as many
 * descriptors; more accepts a turn make the other sockets wait; a pause lets descriptors come free. */
#define STRANGERS_MOST 64
#define ACCEPTS_A_TURN 16
#define PATIENCE_NS UINT64_C(10000000000) /* for a whole challenge; a rank that is dropped comes again */
#define PAUSE_NS UINT64_C(100000000)
#define PROOF_NS UINT64_C(500000000) /* for a challenge when descriptors are short */
#define STARVED_NS \
    UINT64_C(500000000) /* what another thread of the program opened for a moment may come free */
#define LOG_INTERVAL_NS UINT64_C(60000000000)

static void remove_stranger(struct rondo_gate *gate, struct rondo_link *link)
{
    struct rondo_link **at = &gate->strangers;

    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    link->next = NULL;
    gate->stranger_count--;
}

static void turn_away(struct rondo_gate *gate, struct rondo_link *link, const char *why)
{
    uint64_t now = rondo_clock_ns();
    char who[RONDO_ADDRESS_TEXT], here[RONDO_ADDRESS_TEXT];

    gate->turned_away++;
    if (gate->logged_ns == 0 || now - gate->logged_ns >= LOG_INTERVAL_NS) {
        rondo_log(
            RONDO_LOG_WARN, RONDO_LOG_BOOTSTRAP,
            "bootstrap at %s turned away %u connection(s) that are not of this job; the last is from %s: %s; "
            "the job goes on, further ones are told of in a minute",
            rondo_address_text(&gate->address, here), gate->turned_away,
            rondo_address_text(&link->address, who), why);
        gate->logged_ns = now;
        gate->turned_away = 0;
    }
    remove_stranger(gate, link);
    rondo_link_destroy(link);
}

static bool admit(struct rondo_link *link, const struct rondo_entry *entry)
{
    struct rondo_gate *gate = link->owner;

    /* Out of the list first: the owner puts it in its own. */
    remove_stranger(gate, link);
    if (gate->ops->admit(gate->owner, link, entry))
        return true;
    link->next = gate->strangers;
    gate->strangers = link;
    gate->stranger_count++;
    return false;
}

static void stranger_closed(struct rondo_link *link, enum rondo_link_end end, int detail)
{
    char text[RONDO_LINK_END_TEXT];

    turn_away(link->owner, link, rondo_link_end_text(end, detail, text));
}

static const struct rondo_link_ops stranger_ops = {.admit = admit, .closed = stranger_closed};

static struct rondo_link *oldest_stranger(const struct rondo_gate *gate)
{
    struct rondo_link *oldest = gate->strangers;

    while (oldest && oldest->next)
        oldest = oldest->next;
    return oldest;
}

/* Nothing is left for who wants in. A stranger may be a rank about to prove itself: dropped at once, it
 * and the one that waits would take turns for ever. */
static void make_room(struct rondo_gate *gate, uint64_t now)
{
    struct rondo_link *oldest = oldest_stranger(gate);

    if (oldest)
        gate->starved_since = 0;
    else if (gate->starved_since == 0)
        gate->starved_since = now;
    if (oldest && now - oldest->since_ns >= PROOF_NS)
        turn_away(gate, oldest, "no descriptors are left");
}

static void accept_some(struct rondo_gate *gate)
{
    for (int turn = 0; turn < ACCEPTS_A_TURN; turn++) {
        union rondo_address address;
        struct rondo_link *link;
        int fd;
        ncclResult_t rc = rondo_socket_accept(gate->handle.fd, &fd, &address);

        if (rc == ncclInProgress)
            return;
        if (rc != ncclSuccess) { /* no descriptors: let go of strangers, and listen again later */
            bool is_news = gate->starved == 0;

            gate->starved = errno;
            if (is_news)
                rondo_log(RONDO_LOG_ALARM, RONDO_LOG_BOOTSTRAP, "bootstrap: ranks cannot connect: %s",
                          rondo_error_own());
            make_room(gate, rondo_clock_ns());
            rondo_loop_change(&gate->handle, 0);
            gate->paused_until = rondo_clock_ns() + PAUSE_NS;
            return;
        }
        gate->starved_since = 0;
        if (gate->stranger_count == STRANGERS_MOST)
            turn_away(gate, oldest_stranger(gate), "too many unproved connections at once");
        if (rondo_link_create_server(fd, &address, gate->secret, &stranger_ops, gate, &link) != ncclSuccess)
            continue;
        link->next = gate->strangers;
        gate->strangers = link;
        gate->stranger_count++;
    }
}

static void on_ready(struct rondo_loop_handle *handle, uint32_t events)
{
    struct rondo_gate *gate = (struct rondo_gate *)handle;

    (void)events;
    accept_some(gate);
    gate->ops->changed(gate->owner);
}

ncclResult_t rondo_gate_open(struct rondo_gate *gate, const union rondo_address *address, int backlog,
                             const struct rondo_secret *secret, const struct rondo_gate_ops *ops, void *owner)
{
    *gate = (struct rondo_gate){
        .handle = {.fd = -1, .ready = on_ready}, .secret = secret, .ops = ops, .owner = owner};
    return rondo_socket_listen(address, backlog, &gate->handle.fd, &gate->address);
}

ncclResult_t rondo_gate_serve(struct rondo_gate *gate)
{
    gate->is_served = true;
    return rondo_loop_watch(&gate->handle, EPOLLIN);
}

uint64_t rondo_gate_tick(struct rondo_gate *gate, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    struct rondo_link *oldest;

    if (gate->paused_until != 0 && now >= gate->paused_until) {
        gate->paused_until = 0;
        rondo_loop_change(&gate->handle, EPOLLIN);
    }
    if (gate->paused_until != 0)
        next = gate->paused_until;
    while ((oldest = oldest_stranger(gate)) && now - oldest->since_ns >= PATIENCE_NS)
        turn_away(gate, oldest, "it did not prove itself in time");
    if (oldest && oldest->since_ns + PATIENCE_NS < next)
        next = oldest->since_ns + PATIENCE_NS;
    return next;
}

bool rondo_gate_is_starved(const struct rondo_gate *gate)
{
    return gate->starved_since != 0 && rondo_clock_ns() - gate->starved_since >= STARVED_NS;
}

void rondo_gate_close(struct rondo_gate *gate)
{
    while (gate->strangers) {
        struct rondo_link *link = gate->strangers;

        remove_stranger(gate, link);
        rondo_link_destroy(link);
    }
    if (gate->is_served)
        rondo_loop_unwatch(&gate->handle);
    else if (gate->handle.fd >= 0)
        close(gate->handle.fd);
    gate->handle.fd = -1;
    gate->paused_until = 0;
}
