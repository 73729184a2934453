/* comm_peers.h - what a communicator has mapped of its peers' memory, for works that read it directly. */
#ifndef RONDO_CORE_COMM_PEERS_H
#define RONDO_CORE_COMM_PEERS_H

#include "comm.h"

/* Find the windows to all peers, and what peers can read of this rank. Once all reaches are there.
 * ncclInternalError: a peer's record makes no sense. */
ncclResult_t rondo_comm_find_windows(struct ncclComm *comm);

/* For struct rondo_plan_context, whose calls they are: of the thread that holds the communicator's in_call,
 * since what they make at first use is kept without a lock. The communicator owns it. */
bool rondo_comm_is_mapped(void *owner, const void *memory, uint64_t bytes);
const struct rondo_direct *rondo_comm_direct(void *owner, uint32_t channel, enum rondo_protocol protocol);

/* Free what the calls above made. */
void rondo_comm_free_directs(struct ncclComm *comm);

#endif
