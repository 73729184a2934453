/*
 * connection.h - the connections between ranks, by name.
 *
 * Two ranks may have many: for each kind, channel and protocol one in each direction. A name is all that is
 * needed to compute where a connection lies in the two mailboxes, so both sides find it without a word.
 */
#ifndef RONDO_TRANSPORT_CONNECTION_H
#define RONDO_TRANSPORT_CONNECTION_H

#include "device/work.h"

#include <stdint.h>

enum rondo_connection_kind {
    RONDO_CONNECTION_RING,   /* from the predecessor, to the successor on a ring; one a channel */
    RONDO_CONNECTION_TREE,   /* with the neighbours in a tree; RONDO_TREE_PORTS a channel */
    RONDO_CONNECTION_PAIR,   /* point to point; one a peer */
    RONDO_CONNECTION_DIRECT, /* the direct collectives; one a channel and peer */
    RONDO_CONNECTION_NUM
};

enum rondo_direction { RONDO_SEND, RONDO_RECV };

struct rondo_connection {
    enum rondo_connection_kind kind;
    enum rondo_protocol protocol;
    uint32_t channel;            /* 0 for PAIR */
    uint32_t own_port, far_port; /* TREE: which of this rank's ports, and of the peer's; 0 for others */
};

/* Ports of a rank on one channel, each with connections of its own. Pure. */
static inline uint32_t rondo_connection_ports(enum rondo_connection_kind kind)
{
    return kind == RONDO_CONNECTION_TREE ? RONDO_TREE_PORTS : 1;
}

#endif
