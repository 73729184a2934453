/*
 * shm.c - between processes of a host: the arena that holds the peer's mailbox is mapped here, and an address
 * there is an offset added to the mapping.
 */
#include "mailbox_blocks.h"
#include "reach.h"
#include "shm_cache.h"

#include "base/error.h"
#include "transport/mailbox.h"

#define SCORE 50u /* below local, above any network */

static unsigned shm_score(const struct rondo_peer *self, const struct rondo_peer *peer)
{
    bool is_served = self->service != 0 && peer->service != 0;

    return is_served && self->host == peer->host && self->process != peer->process ? SCORE : 0;
}

static ncclResult_t shm_attach(const struct rondo_peer *self, const struct rondo_peer *peer,
                               uint64_t deadline, struct rondo_reach **reach_out)
{
    if (shm_score(self, peer) == 0)
        return rondo_fail(
            ncclInternalError,
            "map the memory of rank %d into the process of rank %d: they do not share a host only",
            peer->rank, self->rank);
    return rondo_shm_cache_get(peer, deadline, reach_out);
}

/* Where the peer's mailbox is mapped, NULL if bytes of it do not lie in the arena: peers' records are
 * checked, not believed. */
static unsigned char *find_mailbox(const struct rondo_reach *reach, const struct rondo_peer *peer,
                                   uint64_t bytes)
{
    const struct rondo_memory_name *name = &peer->mailbox;

    if (name->offset % RONDO_LINE_BYTES != 0 || name->bytes < bytes || name->offset > reach->arena_bytes ||
        bytes > reach->arena_bytes - name->offset)
        return NULL;
    return reach->arena + name->offset;
}

static ncclResult_t shm_connect(struct rondo_reach *reach, const struct rondo_layout *layout,
                                const struct rondo_peer *self, const struct rondo_peer *peer,
                                enum rondo_direction direction, const struct rondo_connection *connection,
                                struct rondo_end *end_out)
{
    uint64_t bytes = rondo_mailbox_bytes(layout);
    unsigned char *mailbox = find_mailbox(reach, peer, bytes);

    if (!mailbox)
        return rondo_fail(
            ncclInternalError,
            "connect rank %d with rank %d: a mailbox of %llu bytes does not fit where its owner says it is "
            "(%llu bytes at %llu of an arena of %llu)",
            self->rank, peer->rank, (unsigned long long)bytes, (unsigned long long)peer->mailbox.bytes,
            (unsigned long long)peer->mailbox.offset, (unsigned long long)reach->arena_bytes);
    return rondo_mailbox_connect((unsigned char *)(uintptr_t)self->local_mailbox, mailbox, reach->board,
                                 layout, self->rank, peer->rank, direction, connection, end_out);
}

static struct rondo_rank_page *shm_page(struct rondo_reach *reach, const struct rondo_peer *peer)
{
    return (struct rondo_rank_page *)find_mailbox(reach, peer, sizeof(struct rondo_rank_page));
}

/* A mailbox is the start of its allocation, so its address and its offset say where the peer has its arena.
 */
static ncclResult_t shm_window(struct rondo_reach *reach, const struct rondo_peer *peer,
                               struct rondo_window *window_out)
{
    if (!find_mailbox(reach, peer, sizeof(struct rondo_rank_page)) ||
        peer->local_mailbox < peer->mailbox.offset)
        return rondo_fail(ncclInternalError,
                          "map the memory of rank %d: its mailbox is said to be at %llu of its arena, and at "
                          "address %llx",
                          peer->rank, (unsigned long long)peer->mailbox.offset,
                          (unsigned long long)peer->local_mailbox);
    *window_out = (struct rondo_window){
        .base = peer->local_mailbox - peer->mailbox.offset,
        .bytes = reach->arena_bytes,
        .here = reach->arena,
    };
    return ncclSuccess;
}

static struct rondo_switchboard *shm_board(struct rondo_reach *reach)
{
    return reach->board;
}

static int shm_death(struct rondo_reach *reach)
{
    return reach->death;
}

static int shm_life(struct rondo_reach *reach)
{
    return reach->life;
}

const struct rondo_transport_ops rondo_transport_shm = {
    .name = "shm",
    .score = shm_score,
    .attach = shm_attach,
    .connect = shm_connect,
    .page = shm_page,
    .has_windows = true,
    .window = shm_window,
    .board = shm_board,
    .death = shm_death,
    .life = shm_life,
    .release = rondo_shm_cache_put,
};
