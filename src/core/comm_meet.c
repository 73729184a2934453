/*
 * comm_meet.c - how the ranks of a new communicator learn of each other and reach each other's memory.
 *
 * Three exchanges, each an all-gather in which a rank also says whether it has failed so far, so that all
 * fail together:
 *
 *     who     host, process, device, wishes      -> sizes agreed, devices checked
 *     where   the mailbox made for those sizes   -> every peer is attached
 *     how     which transports attached whom     -> both sides of each pair use the same one
 *
 * and a barrier, after which everybody's mailbox may be written.
 */
#include "comm_meet.h"

#include "comm_init.h"
#include "comm_peers.h"
#include "comm_tree.h"
#include "retire.h"
#include "watch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/param.h"
#include "topology/rings.h"
#include "transport/mailbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTACH_SLICE_NS 1000000000ull /* an abort is noticed at least that often */
#define REASON_BYTES 400              /* what a third process answered fits, and what to do about it */

/* Blocks of point to point at a time. They share their stream's thread, so more of them add no hands;
 * several are needed so that a peer that is late does not hold up the others. 8 is a choice, not measured. */
#define PAIR_BLOCKS 8

/* What travels in front of every exchange. */
struct verdict {
    int32_t code;                                       /* ncclResult_t */
    char text[REASON_BYTES + 2 * RONDO_RANK_TEXT + 44]; /* holds what refuse_pair() says */
};

struct where {
    struct rondo_memory_name name;
    uint64_t local;
};

/* State of a meeting. */
struct meeting {
    struct ncclComm *comm;
    struct rondo_bootstrap *bootstrap;
    uint64_t deadline;
    const struct rondo_transport_ops *const *transports;
    int transport_count;          /* at most 32 */
    struct rondo_reach **reaches; /* [ranks][transport_count], those tried */
    char reason[REASON_BYTES];    /* why the first attachment failed */
    ncclResult_t code;            /* and with what */
    bool has_windows;             /* every rank maps every other's memory */
};

static ncclResult_t check_verdicts(struct meeting *meeting, const unsigned char *entries, size_t stride)
{
    for (int r = 0; r < meeting->comm->ranks; r++) {
        struct verdict verdict;

        memcpy(&verdict, entries + (size_t)r * stride, sizeof(verdict));
        verdict.text[sizeof(verdict.text) - 1] = '\0';
        if (verdict.code == ncclSuccess)
            continue;
        if (verdict.code < 0 || verdict.code >= ncclNumResults)
            verdict.code = ncclInternalError;
        return rondo_fail((ncclResult_t)verdict.code, "make a communicator of %d ranks: rank %d failed: %s",
                          meeting->comm->ranks, r, verdict.text);
    }
    return ncclSuccess;
}

/* data is [ranks][bytes] with this rank's entry filled in if rc is ncclSuccess; on success all are. If any
 * rank comes with a failure, all leave with one. */
static ncclResult_t exchange(struct meeting *meeting, ncclResult_t rc, void *data, size_t bytes)
{
    size_t ranks = (size_t)meeting->comm->ranks, stride = sizeof(struct verdict) + bytes;
    size_t own = (size_t)meeting->comm->rank;
    unsigned char *entries = calloc(ranks, stride);
    struct verdict verdict = {.code = rc};

    if (!entries)
        return rondo_fail(ncclSystemError, "exchange %zu bytes with each of %zu ranks: out of memory", bytes,
                          ranks);
    if (rc != ncclSuccess)
        snprintf(verdict.text, sizeof(verdict.text), "%s", rondo_error_own());
    memcpy(entries + own * stride, &verdict, sizeof(verdict));
    if (bytes > 0)
        memcpy(entries + own * stride + sizeof(verdict), (unsigned char *)data + own * bytes, bytes);
    ncclResult_t gathered =
        rondo_bootstrap_all_gather(meeting->bootstrap, entries, stride, meeting->deadline);
    if (rc == ncclSuccess)
        rc = gathered;
    if (rc == ncclSuccess)
        rc = check_verdicts(meeting, entries, stride);
    for (size_t r = 0; rc == ncclSuccess && bytes > 0 && r < ranks; r++)
        memcpy((unsigned char *)data + r * bytes, entries + r * stride + sizeof(verdict), bytes);
    free(entries);
    return rc;
}

static ncclResult_t describe_choices(struct ncclComm *comm, struct rondo_peer *self)
{
    const char *algorithms = rondo_param_string(RONDO_PARAM_ALGO);
    const char *protocols = rondo_param_string(RONDO_PARAM_PROTO);
    ncclResult_t rc = rondo_choices_parse(algorithms, protocols, &comm->context.choices);

    if (rc != ncclSuccess)
        return rc;
    self->algorithms = comm->context.choices.algorithms;
    self->protocols = comm->context.choices.protocols;
    self->named = comm->context.choices.named;
    snprintf(self->algorithms_text, sizeof(self->algorithms_text), "%s", algorithms ? algorithms : "");
    snprintf(self->protocols_text, sizeof(self->protocols_text), "%s", protocols ? protocols : "");
    return ncclSuccess;
}

static ncclResult_t describe_self(struct ncclComm *comm)
{
    struct rondo_peer *self = &comm->peers[comm->rank];
    struct rondo_device_properties properties;
    ncclResult_t rc = comm->ops->properties(comm->device, &properties);

    if (rc == ncclSuccess)
        rc = rondo_watch_start(&self->service);
    if (rc != ncclSuccess)
        return rc;
    comm->has_watch = true;
    self->rank = comm->rank;
    self->device = comm->device;
    self->host = rondo_host_hash();
    if (self->host == 0)
        return ncclSystemError;
    self->process = rondo_process_nonce();
    self->pid = getpid();
    self->slot_bytes = comm->config.slot_bytes;
    self->channels = comm->config.channels;
    self->direct_bytes = (uint64_t)rondo_param_int(RONDO_PARAM_DIRECT_BYTES); /* -1: no wish */
    self->version = RONDO_PEER_VERSION;
    self->settings = (rondo_param_int(RONDO_PARAM_PRECISE) ? RONDO_SETTING_PRECISE : 0) |
                     (rondo_param_int(RONDO_PARAM_DETERMINISTIC) ? RONDO_SETTING_DETERMINISTIC : 0);
    memcpy(self->busid, properties.busid, sizeof(self->busid));
    snprintf(self->hostname, sizeof(self->hostname), "%s", rondo_host_name());
    return describe_choices(comm, self);
}

/* What peers say of themselves is used as an index and as text. */
static ncclResult_t check_peers(struct ncclComm *comm)
{
    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_peer *peer = &comm->peers[r];

        peer->hostname[sizeof(peer->hostname) - 1] = '\0';
        peer->algorithms_text[sizeof(peer->algorithms_text) - 1] = '\0';
        peer->protocols_text[sizeof(peer->protocols_text) - 1] = '\0';
        if (peer->rank != r && peer->version == RONDO_PEER_VERSION)
            return rondo_fail(ncclInternalError, "make a communicator: rank %d says that it is rank %d", r,
                              peer->rank);
    }
    return ncclSuccess;
}

static bool shares_device(const struct rondo_peer *a, const struct rondo_peer *b)
{
    return a->host == b->host && memcmp(a->busid, b->busid, sizeof(a->busid)) == 0;
}

static bool has_twin(const struct ncclComm *comm, int rank)
{
    for (int r = 0; r < comm->ranks; r++) {
        if (r != rank && shares_device(&comm->peers[r], &comm->peers[rank]))
            return true;
    }
    return false;
}

/* Ranks on one device are most often a mistake of the launcher. */
static ncclResult_t check_devices(const struct ncclComm *comm)
{
    char list[640] = "";
    size_t used = 0;

    if (comm->ops->is_synchronous || rondo_param_int(RONDO_PARAM_MULTI_RANK_GPU))
        return ncclSuccess;
    for (int r = 0; r < comm->ranks && used < sizeof(list); r++) {
        const struct rondo_peer *peer = &comm->peers[r];

        if (has_twin(comm, r))
            used += (size_t)snprintf(list + used, sizeof(list) - used,
                                     "%srank %d (pid %d, host %.31s, device %d = %.16s)", used ? ", " : "", r,
                                     peer->pid, peer->hostname, peer->device, peer->busid);
    }
    if (used == 0)
        return ncclSuccess;
    return rondo_fail(ncclInvalidUsage, "several ranks use one device: %s; " RONDO_MULTI_RANK_REMEDY, list);
}

static ncclResult_t make_mailbox(struct ncclComm *comm, struct where *where)
{
    ncclResult_t rc;

    rondo_mailbox_reap(); /* those of earlier communicators whose peers have left by now */
    rc = comm->ops->allocate_lasting(comm->device, rondo_mailbox_bytes(&comm->layout), &comm->mailbox);
    if (rc != ncclSuccess)
        return rc;
    comm->page = comm->mailbox;
    where->local = (uint64_t)(uintptr_t)comm->mailbox;
    return comm->ops->name_memory(comm->mailbox, &where->name);
}

static ncclResult_t exchange_mailboxes(struct meeting *meeting, ncclResult_t rc)
{
    struct ncclComm *comm = meeting->comm;
    struct where *all = calloc((size_t)comm->ranks, sizeof(*all));

    if (!all)
        return rondo_fail(ncclSystemError, "make a communicator of %d ranks: out of memory", comm->ranks);
    if (rc == ncclSuccess)
        rc = make_mailbox(comm, &all[comm->rank]);
    rc = exchange(meeting, rc, all, sizeof(*all));
    for (int r = 0; r < comm->ranks && rc == ncclSuccess; r++) {
        comm->peers[r].mailbox = all[r].name;
        comm->peers[r].local_mailbox = all[r].local;
    }
    free(all);
    return rc;
}

/* One transport for one peer, in slices, so that an abort need not wait for a peer that does not answer. */
static ncclResult_t attach(struct meeting *meeting, const struct rondo_transport_ops *transport, int rank,
                           struct rondo_reach **reach_out)
{
    struct ncclComm *comm = meeting->comm;

    for (;;) {
        uint64_t slice = rondo_clock_ns() + ATTACH_SLICE_NS;
        bool is_last = slice >= meeting->deadline;
        ncclResult_t rc = transport->attach(&comm->peers[comm->rank], &comm->peers[rank],
                                            is_last ? meeting->deadline : slice, reach_out);

        if (__atomic_load_n(&comm->init_stop, __ATOMIC_ACQUIRE) != 0 && rc != ncclSuccess)
            return rondo_fail(ncclInvalidUsage, "make a communicator: aborted while attaching rank %d", rank);
        if (rc != ncclTimeout || is_last)
            return rc;
    }
}

/* Which transports serve rank from here, a bit each; their reaches are kept until both sides have chosen. */
static uint32_t attach_rank(struct meeting *meeting, int rank)
{
    struct ncclComm *comm = meeting->comm;
    uint32_t usable = 0;

    for (int t = 0; t < meeting->transport_count; t++) {
        const struct rondo_transport_ops *transport = meeting->transports[t];

        if (transport->score(&comm->peers[comm->rank], &comm->peers[rank]) == 0)
            continue;
        ncclResult_t rc =
            attach(meeting, transport, rank, &meeting->reaches[rank * meeting->transport_count + t]);

        if (rc == ncclSuccess)
            usable |= 1u << t;
        else if (meeting->reason[0] == '\0') {
            snprintf(meeting->reason, sizeof(meeting->reason), "%s", rondo_error_own());
            meeting->code = rc;
        }
    }
    return usable;
}

/* The best transport that works from both sides, -1 for none. The same on both. */
static int choose(const struct meeting *meeting, int a, int b, uint32_t usable)
{
    const struct rondo_peer *peers = meeting->comm->peers;
    unsigned best_score = 0;
    int best = -1;

    for (int t = 0; t < meeting->transport_count; t++) {
        unsigned score = meeting->transports[t]->score(&peers[a], &peers[b]);

        if (usable & 1u << t && score > best_score) {
            best_score = score;
            best = t;
        }
    }
    return best;
}

/* What a rank says about its attachments. */
struct how {
    char reason[REASON_BYTES];
    int32_t code;      /* ncclResult_t of the reason */
    uint32_t usable[]; /* [ranks] */
};

static ncclResult_t refuse_pair(const struct meeting *meeting, int a, int b, const struct how *of_a,
                                const struct how *of_b)
{
    const struct ncclComm *comm = meeting->comm;
    char first[RONDO_RANK_TEXT], second[RONDO_RANK_TEXT];
    const char *reason = of_a->reason[0] ? of_a->reason : of_b->reason;

    if (comm->peers[a].host != comm->peers[b].host)
        reason = "they are on different hosts, or in containers that share neither memory nor a network name "
                 "space; networks are not in this version";
    /* What the machine lacks is no wrong use. */
    bool is_short = reason == of_a->reason ? of_a->code == ncclSystemError
                                           : reason == of_b->reason && of_b->code == ncclSystemError;

    return rondo_fail(is_short ? ncclSystemError : ncclInvalidUsage, "no transport serves %s and %s: %s",
                      rondo_comm_rank_text(comm, a, first), rondo_comm_rank_text(comm, b, second),
                      reason[0] ? reason : "none of them fits this pair");
}

/* Every rank looks at every pair, so that all of them fail if one pair does. */
static ncclResult_t settle(struct meeting *meeting, const unsigned char *all, size_t bytes)
{
    struct ncclComm *comm = meeting->comm;

    meeting->has_windows = true;
    for (int a = 0; a < comm->ranks; a++) {
        const struct how *of_a = (const struct how *)(const void *)(all + (size_t)a * bytes);

        for (int b = a + 1; b < comm->ranks; b++) {
            const struct how *of_b = (const struct how *)(const void *)(all + (size_t)b * bytes);
            int chosen = choose(meeting, a, b, of_a->usable[b] & of_b->usable[a]);

            if (chosen < 0)
                return refuse_pair(meeting, a, b, of_a, of_b);
            meeting->has_windows &= meeting->transports[chosen]->has_windows;
            if (a == comm->rank || b == comm->rank)
                comm->members[a == comm->rank ? b : a].transport = meeting->transports[chosen];
        }
    }
    return ncclSuccess;
}

static ncclResult_t watch_peer(const struct rondo_transport_ops *transport, struct rondo_reach *reach)
{
    ncclResult_t rc = rondo_watch_add(transport->death(reach));

    if (rc != ncclSuccess)
        return rc;
    rc = rondo_watch_add(transport->life(reach));
    if (rc != ncclSuccess)
        rondo_watch_remove(transport->death(reach));
    return rc;
}

/* Keep the reach that was settled for each rank, release the others. */
static ncclResult_t keep_reaches(struct meeting *meeting, ncclResult_t rc)
{
    struct ncclComm *comm = meeting->comm;

    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_member *member = &comm->members[r];

        for (int t = 0; t < meeting->transport_count; t++) {
            struct rondo_reach *reach = meeting->reaches[r * meeting->transport_count + t];
            const struct rondo_transport_ops *transport = meeting->transports[t];

            if (!reach)
                continue;
            if (rc == ncclSuccess && transport == member->transport)
                rc = watch_peer(transport, reach);
            if (rc != ncclSuccess || transport != member->transport) {
                transport->release(reach);
                continue;
            }
            member->reach = reach;
            member->page = transport->page(reach, &comm->peers[r]);
            member->board = transport->board(reach);
        }
    }
    return rc;
}

static ncclResult_t attach_all(struct meeting *meeting)
{
    struct ncclComm *comm = meeting->comm;
    size_t bytes = (sizeof(struct how) + (size_t)comm->ranks * sizeof(uint32_t) + 7) / 8 * 8;
    unsigned char *all = calloc((size_t)comm->ranks, bytes);
    ncclResult_t rc;

    meeting->transports = rondo_transport_list(&meeting->transport_count);
    meeting->reaches = calloc((size_t)(comm->ranks * meeting->transport_count), sizeof(*meeting->reaches));
    if (!all || !meeting->reaches) {
        rc = rondo_fail(ncclSystemError, "attach %d ranks: out of memory", comm->ranks);
        goto free_all;
    }
    struct how *own = (struct how *)(void *)(all + (size_t)comm->rank * bytes);
    for (int r = 0; r < comm->ranks; r++) {
        if (r != comm->rank)
            own->usable[r] = attach_rank(meeting, r);
    }
    if (meeting->code == ncclTimeout) { /* no time is left to exchange anything: say why and go */
        rc = rondo_fail(ncclTimeout, "%s", meeting->reason);
        rondo_bootstrap_give_up(meeting->bootstrap, meeting->reason);
        goto release_reaches;
    }
    memcpy(own->reason, meeting->reason, sizeof(own->reason));
    own->code = meeting->code;
    rc = exchange(meeting, ncclSuccess, all, bytes);
    if (rc == ncclSuccess)
        rc = settle(meeting, all, bytes);
release_reaches:
    rc = keep_reaches(meeting, rc);

free_all:
    free(meeting->reaches);
    free(all);
    return rc;
}

/* Rings, and what the planner wants to know. */
static ncclResult_t prepare_plans(struct ncclComm *comm, bool has_windows)
{
    size_t ranks = (size_t)comm->ranks, channels = comm->layout.channels;
    struct rondo_place *places = calloc(ranks, sizeof(*places));

    comm->order = calloc(channels * ranks, sizeof(*comm->order));
    comm->position = calloc(channels, sizeof(*comm->position));
    if (!places || !comm->order || !comm->position) {
        free(places);
        return rondo_fail(ncclSystemError, "build %zu rings of %zu ranks: out of memory", channels, ranks);
    }
    bool is_deterministic = (comm->peers[comm->rank].settings & RONDO_SETTING_DETERMINISTIC) != 0;
    for (size_t r = 0; r < ranks; r++)
        places[r] = (struct rondo_place){.host = comm->peers[r].host, .process = comm->peers[r].process};
    rondo_comm_find_trees(comm, places);
    if (is_deterministic) /* all in one place: a ring in rank order, which chains need */
        memset(places, 0, ranks * sizeof(*places));
    rondo_rings_build(places, comm->ranks, (int)channels, comm->order);
    free(places);
    for (size_t i = 0; i < channels * ranks; i++) {
        if (comm->order[i] == comm->rank)
            comm->position[i / ranks] = (int32_t)(i % ranks);
    }
    uint64_t direct_bytes = UINT64_MAX;
    for (size_t r = 0; r < ranks; r++)
        direct_bytes =
            comm->peers[r].direct_bytes < direct_bytes ? comm->peers[r].direct_bytes : direct_bytes;
    comm->context = (struct rondo_plan_context){
        .choices = comm->context.choices,
        .rank = comm->rank,
        .layout = &comm->layout,
        .order = comm->order,
        .position = comm->position,
        .is_precise = (comm->peers[comm->rank].settings & RONDO_SETTING_PRECISE) != 0,
        .is_deterministic = is_deterministic,
        .max_pair_blocks = PAIR_BLOCKS,
        .end = rondo_comm_end,
        .has_windows = has_windows,
        .direct_bytes = direct_bytes,
        .is_mapped = rondo_comm_is_mapped,
        .direct = rondo_comm_direct,
        .tree_levels = comm->tree_levels,
        .tree = rondo_comm_tree,
        .owner = comm,
    };
    return rondo_comm_find_windows(comm);
}

ncclResult_t rondo_comm_meet(struct ncclComm *comm, struct rondo_bootstrap *bootstrap, uint64_t deadline)
{
    struct meeting meeting = {.comm = comm, .bootstrap = bootstrap, .deadline = deadline};
    ncclResult_t rc = exchange(&meeting, describe_self(comm), comm->peers, sizeof(*comm->peers));

    if (rc == ncclSuccess)
        rc = check_peers(comm);
    if (rc == ncclSuccess)
        rc = rondo_layout_agree(comm->peers, comm->ranks, &comm->layout);
    if (rc == ncclSuccess)
        rc = check_devices(comm);
    if (rc != ncclSuccess) /* all ranks have seen the same records, so all stop here */
        return rc;
    rc = exchange_mailboxes(&meeting, ncclSuccess);
    if (rc != ncclSuccess)
        return rc;
    comm->members[comm->rank].page = comm->page;
    comm->members[comm->rank].board = comm->ops->switchboard();
    rc = attach_all(&meeting);
    if (rc == ncclSuccess)
        rc = exchange(&meeting, prepare_plans(comm, meeting.has_windows), NULL, 0);
    if (rc != ncclSuccess)
        return rc;
    comm->is_exposed = true;
    return rondo_bootstrap_barrier(bootstrap, deadline);
}
