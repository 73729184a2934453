/* mesh.c - links between ranks, the inbox, and the news of deaths. */
#include "mesh.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Choices, not measured. A shorter slice ends an abort sooner and wakes more; pauses between attempts as in
 * rendezvous.c; leaving waits for peers to take what is queued, but bounds how long a destroy may take. */
#define SLICE_NS UINT64_C(10000000)  /* how late a stop word may be seen */
#define SLEEP_NS UINT64_C(500000000) /* without a stop word nothing needs a look */
#define RETRY_NS UINT64_C(10000000)
#define RETRY_MOST_NS UINT64_C(100000000)
#define ATTEMPTS_MOST 200
#define LEAVE_NS UINT64_C(5000000000)
#define FAIL_NS UINT64_C(500000000)

static void remove_link(struct rondo_link **list, struct rondo_link *link)
{
    while (*list != link)
        list = &(*list)->next;
    *list = link->next;
    link->next = NULL;
}

/* --- life and death --- */

/* Tell everybody we have a link with of a death; reason: what the dead said itself, may be empty. */
static void spread_death(struct rondo_bootstrap *mesh, int rank, const char *reason)
{
    for (struct rondo_link *link = mesh->outs; link; link = link->next)
        rondo_link_send(link, RONDO_FRAME_DEATH, (uint32_t)rank, reason, strlen(reason));
    for (struct rondo_link *link = mesh->ins; link; link = link->next)
        rondo_link_send(link, RONDO_FRAME_DEATH, (uint32_t)rank, reason, strlen(reason));
}

static void say_goodbye(struct rondo_bootstrap *mesh)
{
    for (struct rondo_link *link = mesh->outs; link; link = link->next)
        rondo_link_send(link, RONDO_FRAME_GOODBYE, mesh->peers[link->peer].sent, NULL, 0);
    for (struct rondo_link *link = mesh->ins; link; link = link->next)
        rondo_link_send(link, RONDO_FRAME_GOODBYE, mesh->peers[link->peer].sent, NULL, 0);
}

static void note_goodbye(struct rondo_bootstrap *mesh, int rank)
{
    struct rondo_peer_state *peer = &mesh->peers[rank];

    if (peer->standing == RONDO_PEER_THERE && peer->has_promised && peer->received == peer->promised)
        peer->standing = RONDO_PEER_LEFT;
    rondo_loop_condition_signal(mesh->condition);
}

/* A rank is gone without a goodbye. is_news: others may not know. reason: what it said itself, may be
 * empty. */
__attribute__((format(printf, 5, 6))) static void
note_death(struct rondo_bootstrap *mesh, int rank, bool is_news, const char *reason, const char *format, ...)
{
    va_list arguments;

    if (mesh->peers[rank].standing != RONDO_PEER_THERE)
        return;
    mesh->peers[rank].standing = RONDO_PEER_DEAD;
    if (mesh->first_dead < 0) {
        mesh->first_dead = rank;
        va_start(arguments, format);
        vsnprintf(mesh->death, sizeof(mesh->death), format, arguments);
        va_end(arguments);
        snprintf(mesh->reason, sizeof(mesh->reason), "%s", reason);
        rondo_log(RONDO_LOG_INFO, RONDO_LOG_BOOTSTRAP, "rank %d of %d: %s", mesh->rank, mesh->ranks,
                  mesh->death);
    }
    if (is_news)
        spread_death(mesh, rank, reason);
    rondo_loop_condition_signal(mesh->condition);
}

static void note_lost_link(struct rondo_bootstrap *mesh, struct rondo_link *link, bool is_news,
                           enum rondo_link_end end, int detail)
{
    char who[RONDO_ADDRESS_TEXT], text[RONDO_LINK_END_TEXT];

    note_death(mesh, link->peer, is_news, "", "rank %d (%s) went away: %s", link->peer,
               rondo_address_text(&link->address, who), rondo_link_end_text(end, detail, text));
}

/* --- the inbox --- */

static ncclResult_t put_message(struct rondo_bootstrap *mesh, int peer, const struct rondo_frame *head,
                                void *data)
{
    struct rondo_message *message = malloc(sizeof(*message));

    if (!message) {
        free(data);
        return rondo_fail(ncclSystemError, "take a message of rank %d: out of memory", peer);
    }
    *message = (struct rondo_message){
        .peer = peer, .kind = head->kind, .tag = head->tag, .bytes = head->bytes, .data = data};
    *mesh->inbox_end = message;
    mesh->inbox_end = &message->next;
    rondo_loop_condition_signal(mesh->condition);
    return ncclSuccess;
}

static struct rondo_message *take_message(struct rondo_bootstrap *mesh, int peer, uint32_t kind, uint32_t tag)
{
    for (struct rondo_message **at = &mesh->inbox; *at; at = &(*at)->next) {
        struct rondo_message *message = *at;

        if (message->peer != peer || message->kind != kind || message->tag != tag)
            continue;
        *at = message->next;
        if (mesh->inbox_end == &message->next)
            mesh->inbox_end = at;
        return message;
    }
    return NULL;
}

void rondo_message_free(struct rondo_message *message)
{
    if (!message)
        return;
    free(message->data);
    free(message);
}

/* --- frames --- */

static bool take_death(struct rondo_bootstrap *mesh, struct rondo_link *link, const struct rondo_frame *head,
                       const char *data)
{
    int rank = (int)head->tag;
    char reason[RONDO_REASON_MOST] = "";

    if (head->tag >= (uint32_t)mesh->ranks || head->bytes >= sizeof(reason))
        return false;
    if (rank == mesh->rank) /* we know better */
        return true;
    if (head->bytes > 0)
        memcpy(reason, data, head->bytes);
    if (reason[0])
        note_death(mesh, rank, true, reason, "rank %d gave up: %s", rank, reason);
    else
        note_death(mesh, rank, true, "", "rank %d went away, as rank %d tells", rank, link->peer);
    return true;
}

/* News that travel both ways on a link. Frees data. */
static bool take_news(struct rondo_bootstrap *mesh, struct rondo_link *link, const struct rondo_frame *head,
                      void *data)
{
    bool is_good = false;

    if (head->kind == RONDO_FRAME_GOODBYE && head->bytes == 0) {
        mesh->peers[link->peer].has_promised = true;
        mesh->peers[link->peer].promised = head->tag;
        note_goodbye(mesh, link->peer);
        is_good = true;
    } else if (head->kind == RONDO_FRAME_DEATH) {
        is_good = take_death(mesh, link, head, data);
    }
    free(data);
    return is_good;
}

static bool on_in_frame(struct rondo_link *link, const struct rondo_frame *head, void *data)
{
    struct rondo_bootstrap *mesh = link->owner;

    if (head->kind == RONDO_FRAME_MESSAGE || head->kind == RONDO_FRAME_GATHER ||
        head->kind == RONDO_FRAME_BARRIER) {
        if (put_message(mesh, link->peer, head, data) != ncclSuccess)
            return false;
        mesh->peers[link->peer].received++;
        note_goodbye(mesh, link->peer);
        return true;
    }
    return take_news(mesh, link, head, data);
}

static bool on_out_frame(struct rondo_link *link, const struct rondo_frame *head, void *data)
{
    return take_news(link->owner, link, head, data);
}

static void on_opened(struct rondo_link *link)
{
    struct rondo_bootstrap *mesh = link->owner;

    if (mesh->first_dead >= 0) /* old news for the others */
        rondo_link_send(link, RONDO_FRAME_DEATH, (uint32_t)mesh->first_dead, mesh->reason,
                        strlen(mesh->reason));
}

static void on_drained(struct rondo_link *link)
{
    struct rondo_bootstrap *mesh = link->owner;

    rondo_loop_condition_signal(mesh->condition);
}

static void on_in_closed(struct rondo_link *link, enum rondo_link_end end, int detail)
{
    struct rondo_bootstrap *mesh = link->owner;

    remove_link(&mesh->ins, link);
    note_lost_link(mesh, link, true, end, detail); /* unless it has left, which this link's last frame said */
    rondo_link_destroy(link);
}

/* Whether the attempt to connect failed for a reason that passes: crowded out by strangers, or the network's.
 */
static bool is_passing(const struct rondo_link *link, enum rondo_link_end end, int detail)
{
    if (link->was_open || link->attempts >= ATTEMPTS_MOST)
        return false;
    return end == RONDO_LINK_LOST ||
           (end == RONDO_LINK_REFUSED && detail != ECONNREFUSED && detail != ETIMEDOUT);
}

static void on_out_closed(struct rondo_link *link, enum rondo_link_end end, int detail)
{
    struct rondo_bootstrap *mesh = link->owner;

    if (is_passing(link, end, detail)) {
        uint64_t pause = RETRY_NS * link->attempts;

        link->retry_ns = rondo_clock_ns() + (pause < RETRY_MOST_NS ? pause : RETRY_MOST_NS);
        rondo_mesh_reschedule(mesh);
        return;
    }
    remove_link(&mesh->outs, link);
    if (mesh->peers[link->peer]
            .has_promised) { /* its messages may still be on their way, on the link that it made */
        rondo_loop_condition_signal(mesh->condition);
        rondo_link_destroy(link);
        return;
    }
    /* After the join a rank that cannot be reached may have left in order, unnoticed by us: our own matter
     * then. */
    note_lost_link(mesh, link, link->was_open || !mesh->is_joined, end, detail);
    rondo_loop_condition_signal(mesh->condition);
    rondo_link_destroy(link);
}

static const struct rondo_link_ops in_ops = {
    .opened = on_opened, .frame = on_in_frame, .closed = on_in_closed, .drained = on_drained};
static const struct rondo_link_ops out_ops = {
    .opened = on_opened, .frame = on_out_frame, .closed = on_out_closed, .drained = on_drained};

/* --- the gate --- */

static bool admit(void *owner, struct rondo_link *link, const struct rondo_entry *entry)
{
    struct rondo_bootstrap *mesh = owner;

    if (entry->purpose != RONDO_PURPOSE_PEER || entry->to != mesh->rank || entry->from < 0 ||
        entry->from >= mesh->ranks || entry->from == mesh->rank ||
        memcmp(entry->session, mesh->session, sizeof(mesh->session)) != 0)
        return false;
    link->ops = &in_ops;
    link->owner = mesh;
    link->peer = entry->from;
    link->next = mesh->ins;
    mesh->ins = link;
    return true;
}

static void on_gate_changed(void *owner)
{
    struct rondo_bootstrap *mesh = owner;

    mesh->is_starved = rondo_gate_is_starved(&mesh->gate);
    if (mesh->is_starved)
        rondo_loop_condition_signal(mesh->condition);
    rondo_mesh_reschedule(mesh);
}

const struct rondo_gate_ops rondo_mesh_gate_ops = {.admit = admit, .changed = on_gate_changed};

/* --- time --- */

void rondo_mesh_reschedule(struct rondo_bootstrap *mesh)
{
    uint64_t wake = rondo_gate_tick(&mesh->gate, rondo_clock_ns());

    for (struct rondo_link *link = mesh->outs; link; link = link->next)
        if (link->retry_ns < wake)
            wake = link->retry_ns;
    if (mesh->rendezvous.link && mesh->rendezvous.link->retry_ns < wake)
        wake = mesh->rendezvous.link->retry_ns;
    mesh->source.wake = wake;
}

static void retry(struct rondo_link *link, uint64_t now)
{
    if (link->retry_ns <= now && rondo_link_connect(link) != ncclSuccess)
        link->retry_ns =
            now +
            RETRY_MOST_NS; /* no descriptor or no route: again until the attempts or the caller's time end */
}

static void on_tick(struct rondo_loop_source *source, uint64_t now)
{
    struct rondo_bootstrap *mesh = (struct rondo_bootstrap *)source;

    for (struct rondo_link *link = mesh->outs; link; link = link->next)
        retry(link, now);
    if (mesh->rendezvous.link)
        retry(mesh->rendezvous.link, now);
    rondo_mesh_reschedule(mesh);
}

static void on_abandon(struct rondo_loop_source *source)
{
    struct rondo_bootstrap *mesh = (struct rondo_bootstrap *)source;

    mesh->is_attached = false;
    mesh->is_abandoned = true;
    rondo_reserve_release(&mesh->reserve, RONDO_RESERVE_MOST);
}

void rondo_mesh_init(struct rondo_bootstrap *mesh)
{
    mesh->source.tick = on_tick;
    mesh->source.abandon = on_abandon;
    mesh->source.wake = UINT64_MAX;
    mesh->gate.handle.fd = -1;
    mesh->first_dead = -1;
    mesh->inbox_end = &mesh->inbox;
}

/* --- sending and receiving --- */

static ncclResult_t check_usable(const struct rondo_bootstrap *mesh, int peer)
{
    if (mesh->is_abandoned)
        return rondo_fail(ncclInvalidUsage,
                          "this communicator was made before fork and belongs to the parent process");
    if (peer < 0 || peer >= mesh->ranks)
        return rondo_fail(ncclInvalidArgument, "rank %d is out of range: there are %d ranks", peer,
                          mesh->ranks);
    return ncclSuccess;
}

static ncclResult_t report_gone(const struct rondo_bootstrap *mesh, int peer)
{
    if (mesh->peers[peer].standing != RONDO_PEER_DEAD)
        return rondo_fail(ncclRemoteError, "rank %d has left the communicator", peer);
    if (mesh->first_dead == peer)
        return rondo_fail(ncclRemoteError, "%s", mesh->death);
    return rondo_fail(ncclRemoteError, "rank %d went away", peer);
}

/* A death ends what waits for peer. Who gave up may have waited for us, so say whom we wait for. */
static ncclResult_t report_death(const struct rondo_bootstrap *mesh, int peer)
{
    if (mesh->reason[0] && mesh->first_dead != peer)
        return rondo_fail(ncclRemoteError, "%s; rank %d waits for rank %d", mesh->death, mesh->rank, peer);
    return rondo_fail(ncclRemoteError, "%s", mesh->death);
}

static ncclResult_t find_out(struct rondo_bootstrap *mesh, int peer, struct rondo_link **link_out)
{
    struct rondo_entry entry = {.purpose = RONDO_PURPOSE_PEER, .from = mesh->rank, .to = peer};
    struct rondo_link *link;
    ncclResult_t rc;

    for (link = mesh->outs; link; link = link->next) {
        if (link->peer == peer) {
            *link_out = link;
            return ncclSuccess;
        }
    }
    memcpy(entry.session, mesh->session, sizeof(entry.session));
    rc = rondo_link_create_client(&mesh->addresses[peer], &mesh->secret, &entry, &out_ops, mesh, &link);
    if (rc != ncclSuccess)
        return rc;
    link->peer = peer;
    rc = rondo_link_connect(link);
    if (rc != ncclSuccess) {
        rondo_link_destroy(link);
        return rc;
    }
    link->next = mesh->outs;
    mesh->outs = link;
    *link_out = link;
    return ncclSuccess;
}

ncclResult_t rondo_mesh_send(struct rondo_bootstrap *mesh, int peer, enum rondo_frame_kind kind, uint32_t tag,
                             const void *data, size_t bytes)
{
    struct rondo_link *link;
    ncclResult_t rc = check_usable(mesh, peer);

    if (rc != ncclSuccess)
        return rc;
    if (bytes > RONDO_FRAME_MOST)
        return rondo_fail(ncclInvalidArgument, "send %zu bytes to rank %d: at most %u go into one message",
                          bytes, peer, RONDO_FRAME_MOST);
    if (kind != RONDO_FRAME_MESSAGE && mesh->first_dead >= 0)
        return rondo_fail(ncclRemoteError, "%s", mesh->death);
    if (peer == mesh->rank) {
        struct rondo_frame head = {.kind = kind, .tag = tag, .bytes = bytes};
        void *copy = malloc(bytes > 0 ? bytes : 1);

        if (!copy)
            return rondo_fail(ncclSystemError, "send %zu bytes to ourselves: out of memory", bytes);
        if (bytes > 0)
            memcpy(copy, data, bytes);
        return put_message(mesh, peer, &head, copy);
    }
    if (mesh->peers[peer].standing != RONDO_PEER_THERE || mesh->peers[peer].has_promised)
        return report_gone(mesh, peer);
    rc = find_out(mesh, peer, &link);
    if (rc == ncclSuccess)
        rc = rondo_link_send(link, kind, tag, data, bytes);
    if (rc == ncclSuccess)
        mesh->peers[peer].sent++;
    return rc;
}

static bool is_stopped(const struct rondo_bootstrap *mesh)
{
    return mesh->stop && __atomic_load_n(mesh->stop, __ATOMIC_ACQUIRE) != 0; /* pairs with whoever aborts */
}

ncclResult_t rondo_mesh_wait(struct rondo_bootstrap *mesh, uint64_t deadline)
{
    uint64_t now = rondo_clock_ns();
    uint64_t slice = mesh->stop ? SLICE_NS : SLEEP_NS;

    if (is_stopped(mesh))
        return rondo_fail(ncclInvalidUsage, "aborted");
    if (mesh->is_starved)
        return rondo_fail(ncclSystemError, "rank %d cannot accept connections of other ranks: %s", mesh->rank,
                          rondo_error_system(mesh->gate.starved));
    if (now >= deadline)
        return ncclTimeout;
    rondo_loop_condition_wait(mesh->condition, deadline - now < slice ? deadline - now : slice);
    return ncclSuccess;
}

ncclResult_t rondo_mesh_receive(struct rondo_bootstrap *mesh, int peer, enum rondo_frame_kind kind,
                                uint32_t tag, uint64_t deadline, struct rondo_message **message_out)
{
    ncclResult_t rc = check_usable(mesh, peer);

    if (rc != ncclSuccess)
        return rc;
    for (;;) {
        struct rondo_message *message = take_message(mesh, peer, kind, tag);

        if (message) {
            *message_out = message;
            return ncclSuccess;
        }
        if (is_stopped(mesh)) /* before what it made the peers do */
            return rondo_fail(ncclInvalidUsage, "aborted");
        if (kind != RONDO_FRAME_MESSAGE && mesh->first_dead >= 0)
            return report_death(mesh, peer);
        if (mesh->peers[peer].standing != RONDO_PEER_THERE)
            return report_gone(mesh, peer);
        rc = rondo_mesh_wait(mesh, deadline);
        if (rc == ncclTimeout) {
            char who[RONDO_ADDRESS_TEXT];

            return rondo_fail(ncclTimeout, "rank %d waits for rank %d (%s): nothing came in time", mesh->rank,
                              peer, rondo_address_text(&mesh->addresses[peer], who));
        }
        if (rc != ncclSuccess)
            return rc;
    }
}

static size_t queued_for(const struct rondo_bootstrap *mesh, int peer)
{
    size_t bytes = 0;

    for (const struct rondo_link *link = mesh->outs; link; link = link->next)
        if (peer < 0 || link->peer == peer)
            bytes += link->queued_bytes;
    return bytes;
}

ncclResult_t rondo_mesh_drain(struct rondo_bootstrap *mesh, int peer, size_t bytes, uint64_t deadline)
{
    while (queued_for(mesh, peer) > bytes) {
        ncclResult_t rc = rondo_mesh_wait(mesh, deadline);

        if (rc == ncclTimeout)
            return rondo_fail(ncclTimeout, "rank %d sends to rank %d: it takes nothing", mesh->rank, peer);
        if (rc != ncclSuccess)
            return rc;
    }
    return ncclSuccess;
}

void rondo_mesh_give_up(struct rondo_bootstrap *mesh, const char *reason)
{
    char text[RONDO_REASON_MOST];

    snprintf(text, sizeof(text), "%s", reason);
    if (!mesh->has_failed && mesh->first_dead < 0 &&
        !mesh->is_abandoned) /* else they have been told before */
        spread_death(mesh, mesh->rank, text);
    mesh->has_failed = true;
}

void rondo_mesh_leave(struct rondo_bootstrap *mesh)
{
    bool is_in_order = mesh->is_joined && mesh->first_dead < 0 && !mesh->has_failed;
    uint64_t deadline = rondo_clock_ns() + (is_in_order ? LEAVE_NS : FAIL_NS);
    struct rondo_link *link;

    if (mesh->is_joined && !mesh->is_abandoned && !mesh->has_failed)
        say_goodbye(mesh);
    while (!mesh->is_abandoned && queued_for(mesh, -1) > 0 && rondo_clock_ns() < deadline &&
           !is_stopped(mesh))
        rondo_loop_condition_wait(mesh->condition, SLICE_NS);
    while ((link = mesh->outs)) {
        remove_link(&mesh->outs, link);
        rondo_link_destroy(link);
    }
    while ((link = mesh->ins)) {
        remove_link(&mesh->ins, link);
        rondo_link_destroy(link);
    }
    rondo_gate_close(&mesh->gate);
    rondo_reserve_release(&mesh->reserve, RONDO_RESERVE_MOST);
    while (mesh->inbox) {
        struct rondo_message *message = mesh->inbox;

        mesh->inbox = message->next;
        rondo_message_free(message);
    }
}
