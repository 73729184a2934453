/* comm_meet.h - how the ranks of a new communicator learn of each other and reach each other's memory. */
#ifndef RONDO_CORE_COMM_MEET_H
#define RONDO_CORE_COMM_MEET_H

#include "comm.h"

#include "bootstrap/bootstrap.h"

/* Fill comm up to where it can communicate: all ranks do this together, and all fail if one does. May leave a
 * half-built communicator for rondo_comm_dismantle(). */
ncclResult_t rondo_comm_meet(struct ncclComm *comm, struct rondo_bootstrap *bootstrap, uint64_t deadline);

#endif
