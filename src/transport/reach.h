/* reach.h - what the transports of mapped memory keep for a peer, and their tables. */
#ifndef RONDO_TRANSPORT_REACH_H
#define RONDO_TRANSPORT_REACH_H

#include "transport/transport.h"

/* The shm transport embeds this first in its own record; local uses it as it is. */
struct rondo_reach {
    unsigned char
        *arena; /* where the peer's arena is mapped here; NULL: the same process, its addresses are ours */
    uint64_t arena_bytes;
    struct rondo_switchboard *board;
    int death; /* pidfd or -1 */
    int life;  /* life pipe or -1 */
};

extern const struct rondo_transport_ops rondo_transport_local;
extern const struct rondo_transport_ops rondo_transport_shm;

#endif
