/* comm_peers.c - windows into the peers' memory, and the connections of works that read it directly. */
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

static ncclResult_t fill_direct(struct ncclComm *comm, uint32_t channel, struct rondo_direct *direct)
{
    const struct rondo_connection connection = {
        .kind = RONDO_CONNECTION_DIRECT, .protocol = RONDO_PROTOCOL_SIMPLE, .channel = channel};
    size_t ranks = (size_t)comm->ranks;
    struct rondo_peer_ends *peers = calloc(ranks, sizeof(*peers));
    struct rondo_source *sources = calloc(ranks, sizeof(*sources));

    if (!peers || !sources) {
        free(peers);
        free(sources);
        return rondo_fail(ncclSystemError, "connect rank %d with %d others: out of memory", comm->rank,
                          comm->ranks - 1);
    }
    for (int r = 0; r < comm->ranks; r++) {
        if (r == comm->rank)
            continue;
        peers[r].from = rondo_comm_end(comm, RONDO_RECV, r, &connection);
        peers[r].to = peers[r].from ? rondo_comm_end(comm, RONDO_SEND, r, &connection) : NULL;
        peers[r].window = comm->members[r].window;
        if (!peers[r].to) {
            free(peers);
            free(sources);
            return ncclSystemError; /* its text is recorded */
        }
    }
    *direct = (struct rondo_direct){
        .peers = peers,
        .sources = sources,
        .bounce = (unsigned char *)comm->mailbox + rondo_mailbox_bounce(&comm->layout, channel),
        .bounce_bytes = rondo_layout_bounce_bytes(&comm->layout),
    };
    return ncclSuccess;
}

const struct rondo_direct *rondo_comm_direct(void *owner, uint32_t channel)
{
    struct ncclComm *comm = owner;

    if (!comm->directs) {
        comm->directs = calloc(comm->layout.channels, sizeof(*comm->directs));
        if (!comm->directs) {
            (void)rondo_fail(ncclSystemError, "connect rank %d on %u channels: out of memory", comm->rank,
                             comm->layout.channels);
            return NULL;
        }
    }
    struct rondo_direct *direct = &comm->directs[channel];
    if (!direct->peers && fill_direct(comm, channel, direct) != ncclSuccess)
        return NULL;
    return direct;
}

void rondo_comm_free_directs(struct ncclComm *comm)
{
    for (uint32_t channel = 0; comm->directs && channel < comm->layout.channels; channel++) {
        free(comm->directs[channel].peers);
        free(comm->directs[channel].sources);
    }
    free(comm->directs);
    comm->directs = NULL;
}
