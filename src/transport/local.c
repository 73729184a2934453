/* local.c - between ranks of one process: the peer's addresses are good here as they are. */
#include "mailbox_blocks.h"
#include "reach.h"

#include "base/error.h"
#include "base/host.h"

#include <stdlib.h>

#define SCORE 100u /* above any way that leaves the process */

static unsigned local_score(const struct rondo_peer *self, const struct rondo_peer *peer)
{
    return self->host == peer->host && self->process == peer->process ? SCORE : 0;
}

static ncclResult_t local_attach(const struct rondo_peer *self, const struct rondo_peer *peer,
                                 uint64_t deadline, struct rondo_reach **reach_out)
{
    const struct rondo_device_ops *device;
    struct rondo_reach *reach;
    ncclResult_t rc;

    (void)deadline;
    if (self->process != peer->process || peer->process != rondo_process_nonce())
        return rondo_fail(ncclInternalError,
                          "reach rank %d from rank %d by address: they are not in this process", peer->rank,
                          self->rank);
    rc = rondo_device_select(&device);
    if (rc != ncclSuccess)
        return rc;
    reach = malloc(sizeof(*reach));
    if (!reach)
        return rondo_fail(ncclSystemError, "allocate the reach of rank %d: out of memory", peer->rank);
    *reach = (struct rondo_reach){.board = device->switchboard(), .death = -1, .life = -1};
    *reach_out = reach;
    return ncclSuccess;
}

static ncclResult_t local_connect(struct rondo_reach *reach, const struct rondo_layout *layout,
                                  const struct rondo_peer *self, const struct rondo_peer *peer,
                                  enum rondo_direction direction, const struct rondo_connection *connection,
                                  struct rondo_end *end_out)
{
    return rondo_mailbox_connect((unsigned char *)(uintptr_t)self->local_mailbox,
                                 (unsigned char *)(uintptr_t)peer->local_mailbox, reach->board, layout,
                                 self->rank, peer->rank, direction, connection, end_out);
}

static struct rondo_rank_page *local_page(struct rondo_reach *reach, const struct rondo_peer *peer)
{
    (void)reach;
    return (struct rondo_rank_page *)(uintptr_t)peer->local_mailbox;
}

static ncclResult_t local_window(struct rondo_reach *reach, const struct rondo_peer *peer,
                                 struct rondo_window *window_out)
{
    (void)reach;
    (void)peer;
    *window_out = (struct rondo_window){.base = 0, .bytes = UINT64_MAX, .here = NULL};
    return ncclSuccess;
}

static struct rondo_switchboard *local_board(struct rondo_reach *reach)
{
    return reach->board;
}

static void local_release(struct rondo_reach *reach)
{
    free(reach);
}

/* death and life are left to the list's default: a process does not outlive itself. */
const struct rondo_transport_ops rondo_transport_local = {
    .name = "local",
    .score = local_score,
    .attach = local_attach,
    .connect = local_connect,
    .page = local_page,
    .has_windows = true,
    .window = local_window,
    .board = local_board,
    .release = local_release,
};
