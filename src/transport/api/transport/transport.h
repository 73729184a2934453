/*
 * transport.h - what each way of moving bytes between two ranks must provide.
 *
 * Callers reach a transport only through this table. The list of transports fills every slot left unset
 * with a stub that refuses, so no caller tests a slot for NULL.
 *
 * The transports of this version map memory: pointers inside a process ("local") and the peers' arenas
 * between processes of a host ("shm"). For them a connection is address arithmetic over the peers'
 * mailboxes, so connecting never waits for the peer.
 *
 * Unless a slot says otherwise: callable from any thread, does not block, writes outputs only on success.
 */
#ifndef RONDO_TRANSPORT_H
#define RONDO_TRANSPORT_H

#include "device/device.h"
#include "transport/connection.h"
#include "transport/layout.h"
#include "transport/peer.h"

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_reach; /* how a peer's memory is reached; ranks whose memory lies together may share one */

struct rondo_transport_ops {
    const char *name;

    /* How well this pair would be served: 0 cannot, higher is preferred. Pure: reads the two records and
     * touches no device, so that every rank orders the transports alike. */
    unsigned (*score)(const struct rondo_peer *self, const struct rondo_peer *peer);

    /* Make the peer's memory addressable. May talk to the peer's process, and blocks until that has answered
     * or the deadline, in rondo_clock_ns() units. The caller owns *reach_out until release. Tried for every
     * pair at init, and the results are exchanged, so that both sides use the same transport. On failure
     * nothing is left behind and the message says why. ncclInternalError: the transport cannot serve this
     * pair. ncclRemoteError: the peer's process has ended, refuses, or answers nonsense. ncclTimeout: it did
     * not answer in time. ncclInvalidArgument: what it handed over is no arena. ncclSystemError: no memory,
     * descriptor or mapping here, or in the peer's process. */
    ncclResult_t (*attach)(const struct rondo_peer *self, const struct rondo_peer *peer, uint64_t deadline,
                           struct rondo_reach **reach_out);

    /* Fill one end of a connection over a reach. Local; cannot wait. *end_out points into both mailboxes
     * and is good until release of the reach, or until either mailbox goes. ncclInternalError: no such
     * rank or connection in the layout, or the peer's mailbox is not where its record says. */
    ncclResult_t (*connect)(struct rondo_reach *reach, const struct rondo_layout *layout,
                            const struct rondo_peer *self, const struct rondo_peer *peer,
                            enum rondo_direction direction, const struct rondo_connection *connection,
                            struct rondo_end *end_out);

    /* Address of the peer's rank page, NULL when its memory cannot be mapped. Good until release. */
    struct rondo_rank_page *(*page)(struct rondo_reach *reach, const struct rondo_peer *peer);

    /* Whether window can succeed: alike for all pairs that this transport serves, so that ranks agree on it.
     */
    bool has_windows;

    /* Where the peer's device memory is mapped here: of a rank in this process all of its memory, of another
     * the device's arena that holds its mailbox. *window_out is good until release. ncclInternalError: this
     * transport maps no memory, or the peer's mailbox is not where its record says. */
    ncclResult_t (*window)(struct rondo_reach *reach, const struct rondo_peer *peer,
                           struct rondo_window *window_out);

    /* The peer process's doorbells, NULL likewise. Good until release. */
    struct rondo_switchboard *(*board)(struct rondo_reach *reach);

    /* A descriptor that becomes readable when the peer's process ends (pidfd), owned by the reach; -1:
     * none. */
    int (*death)(struct rondo_reach *reach);

    /* A descriptor that hangs up when the peer's program has lost all its descriptors: at exec(), at its
     * end, or because it closed them. Owned by the reach; -1: none. */
    int (*life)(struct rondo_reach *reach);

    /* Give back what attach gave; nothing that points into the peer's memory may be used afterwards. Takes
     * NULL. */
    void (*release)(struct rondo_reach *reach);
};

/* The transports in order of preference; *count_out of them. Never NULL; the list is the library's own and
 * constant. */
const struct rondo_transport_ops *const *rondo_transport_list(int *count_out);

#ifdef __cplusplus
}
#endif

#endif
