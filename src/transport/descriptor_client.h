/* descriptor_client.h - fetching the descriptors of a peer's memory. */
#ifndef RONDO_TRANSPORT_DESCRIPTOR_CLIENT_H
#define RONDO_TRANSPORT_DESCRIPTOR_CLIENT_H

#include "transport/peer.h"

/* Close-on-exec; the holder closes them. */
struct rondo_descriptors {
    int arena;
    int board;
    int death; /* pidfd */
    int life;  /* reading end of its life pipe */
};

/* Ask the process of `peer` for the arena of its device. Blocks until the answer or the deadline.
 * ncclRemoteError: the process has ended, does not answer for this peer, or answers nonsense; ncclTimeout: in
 * time it did not answer at all; otherwise what the peer failed with. Every message names rank and process.
 */
ncclResult_t rondo_descriptors_fetch(const struct rondo_peer *peer, int32_t device, uint64_t deadline,
                                     struct rondo_descriptors *descriptors_out);

/* Closes those that are not -1. */
void rondo_descriptors_close(struct rondo_descriptors *descriptors);

#endif
