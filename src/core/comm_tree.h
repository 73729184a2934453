/* comm_tree.h - a communicator's neighbours in the two trees. */
#ifndef RONDO_CORE_COMM_TREE_H
#define RONDO_CORE_COMM_TREE_H

#include "comm.h"

/* Find the neighbours among all ranks' places, and what the planner wants to know of trees. Once. */
void rondo_comm_find_trees(struct ncclComm *comm, const struct rondo_place *places);

/* For struct rondo_plan_context, whose call it is: of the thread that holds the communicator's in_call, since
 * what it makes at first use is kept without a lock. The communicator owns it. */
struct rondo_peer_ends *rondo_comm_tree(void *owner, uint32_t channel, enum rondo_protocol protocol);

#endif
