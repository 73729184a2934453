/*
 * mailbox_blocks.h - where everything is in a rank's mailbox: offsets, as a pure function of the agreed
 * layout.
 *
 *     rank page | control blocks | pad to 4096 | slots | bounce areas
 *
 * There is a control block, and slots, for each connection of each kind and protocol, in the order of the
 * enumerations. A control block is 384 bytes: the line for data that arrives here, the line for credit of
 * what this rank sends, the heads of the slots here. The lines of all connections are together, so that small
 * messages touch few pages.
 *
 * A connection's block in a mailbox serves what its owner receives on it, and holds the credit line of what
 * it sends on it. On a ring the one comes from the predecessor and the other goes to the successor; all
 * others have one peer for both.
 */
#ifndef RONDO_TRANSPORT_MAILBOX_BLOCKS_H
#define RONDO_TRANSPORT_MAILBOX_BLOCKS_H

#include "transport/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets from the mailbox's start. */
struct rondo_mailbox_block {
    uint64_t posted;   /* polled by the owner: data for it */
    uint64_t consumed; /* polled by the owner: credit for its sends */
    uint64_t heads;    /* of the slots below */
    uint64_t slots;
    uint64_t slot_bytes;
};

/* index is in [0, rondo_layout_connections()): for RING the channel; for TREE channel * RONDO_TREE_PORTS +
 * the owner's port; for PAIR the peer; for DIRECT channel * ranks + peer. A rank's blocks for itself are
 * there and unused. Pure. */
struct rondo_mailbox_block rondo_mailbox_block_at(const struct rondo_layout *layout,
                                                  enum rondo_connection_kind kind,
                                                  enum rondo_protocol protocol, uint64_t index);

/* Fill one end of the connection between two mailboxes. own and far are where this process sees them; board
 * is the far process's. ncclInternalError: no such connection or rank. */
ncclResult_t rondo_mailbox_connect(unsigned char *own, unsigned char *far, struct rondo_switchboard *board,
                                   const struct rondo_layout *layout, int32_t own_rank, int32_t far_rank,
                                   enum rondo_direction direction, const struct rondo_connection *connection,
                                   struct rondo_end *end_out);

#ifdef __cplusplus
}
#endif
#endif
