/* comm_peers.c - windows into the peers' memory, and the connections of direct works. */
#include "comm_peers.h"

#include "base/error.h"
#include "transport/mailbox.h"

#include <stdlib.h>

ncclResult_t rondo_comm_find_windows(struct ncclComm *comm)
{
    const struct rondo_peer *self = &comm->peers[comm->rank];
    bool is_alone = true; /* all ranks are in this process */

    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_member *member = &comm->members[r];
        ncclResult_t rc;

        if (r == comm->rank || !member->transport->has_windows)
            continue;
        rc = member->transport->window(member->reach, &comm->peers[r], &member->window);
        if (rc != ncclSuccess)
            return rc;
        is_alone = is_alone && !member->window.here;
    }
    comm->readable = (struct rondo_window){.base = 0, .bytes = UINT64_MAX};
    if (!is_alone) /* the arena with the mailbox: a peer maps no other memory */
        comm->readable = (struct rondo_window){.base = self->local_mailbox - self->mailbox.offset,
                                               .bytes = self->mailbox.arena_bytes};
    return ncclSuccess;
}

bool rondo_comm_is_mapped(void *owner, const void *memory, uint64_t bytes)
{
    const struct ncclComm *comm = owner;
    uint64_t offset = (uintptr_t)memory - comm->readable.base; /* wraps when it is below */

    return offset <= comm->readable.bytes && bytes <= comm->readable.bytes - offset;
}

static void free_direct(struct rondo_direct *direct)
{
    free(direct->peers);
    free(direct->sources);
    *direct = (struct rondo_direct){0};
}

static ncclResult_t connect_peers(struct ncclComm *comm, uint32_t channel, enum rondo_protocol protocol,
                                  struct rondo_peer_ends *peers)
{
    const struct rondo_connection connection = {
        .kind = RONDO_CONNECTION_DIRECT, .protocol = protocol, .channel = channel};

    for (int r = 0; r < comm->ranks; r++) {
        if (r == comm->rank)
            continue;
        peers[r].from = rondo_comm_end(comm, RONDO_RECV, r, &connection);
        peers[r].to = peers[r].from ? rondo_comm_end(comm, RONDO_SEND, r, &connection) : NULL;
        peers[r].window = comm->members[r].window;
        if (!peers[r].to)
            return ncclSystemError; /* its text is recorded */
    }
    return ncclSuccess;
}

static ncclResult_t fill_direct(struct ncclComm *comm, uint32_t channel, enum rondo_protocol protocol,
                                struct rondo_direct *direct_out)
{
    bool is_pulled = protocol == RONDO_PROTOCOL_SIMPLE;
    size_t ranks = (size_t)comm->ranks;
    struct rondo_direct direct = {.peers = calloc(ranks, sizeof(*direct.peers))};
    ncclResult_t rc;

    if (is_pulled) {
        direct.sources = calloc(ranks, sizeof(*direct.sources));
        direct.bounce = (unsigned char *)comm->mailbox + rondo_mailbox_bounce(&comm->layout, channel);
        direct.bounce_bytes = rondo_layout_bounce_bytes(&comm->layout);
    }
    if (!direct.peers || (is_pulled && !direct.sources))
        rc = rondo_fail(ncclSystemError, "connect rank %d with %d others: out of memory", comm->rank,
                        comm->ranks - 1);
    else
        rc = connect_peers(comm, channel, protocol, direct.peers);
    if (rc == ncclSuccess)
        *direct_out = direct;
    else
        free_direct(&direct);
    return rc;
}

const struct rondo_direct *rondo_comm_direct(void *owner, uint32_t channel, enum rondo_protocol protocol)
{
    struct ncclComm *comm = owner;

    if (!comm->directs) {
        comm->directs = calloc((size_t)comm->layout.channels * RONDO_PROTOCOL_NUM, sizeof(*comm->directs));
        if (!comm->directs) {
            (void)rondo_fail(ncclSystemError, "connect rank %d on %u channels: out of memory", comm->rank,
                             comm->layout.channels);
            return NULL;
        }
    }
    struct rondo_direct *direct = &comm->directs[channel * RONDO_PROTOCOL_NUM + protocol];
    if (!direct->peers && fill_direct(comm, channel, protocol, direct) != ncclSuccess)
        return NULL;
    return direct;
}

void rondo_comm_free_directs(struct ncclComm *comm)
{
    for (uint32_t i = 0; comm->directs && i < comm->layout.channels * RONDO_PROTOCOL_NUM; i++)
        free_direct(&comm->directs[i]);
    free(comm->directs);
    comm->directs = NULL;
}
