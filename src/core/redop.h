/*
 * redop.h - what a kernel does for a ncclRedOp_t on a communicator: the built-in ones, and the user's own
 * (ncclRedOpCreatePreMulSum), which are numbers that no other communicator of the process has.
 */
#ifndef RONDO_CORE_REDOP_H
#define RONDO_CORE_REDOP_H

#include "collectives/plan.h"

#include "nccl.h"

struct ncclComm;

/* Fill redop, flags and scalar of a task whose dtype is set. The operation's state is copied, so that it may
 * be destroyed at once. ncclInvalidArgument: no operation of this communicator, or one made for another type.
 */
ncclResult_t rondo_redop_apply(struct ncclComm *comm, ncclRedOp_t op, struct rondo_task *task);

/* Create and destroy an operation. ncclInvalidArgument as above. */
ncclResult_t rondo_premul_create(struct ncclComm *comm, const void *scalar, ncclDataType_t dtype,
                                 ncclScalarResidence_t residence, ncclRedOp_t *op_out);
ncclResult_t rondo_premul_destroy(struct ncclComm *comm, ncclRedOp_t op);
void rondo_premul_free_all(struct ncclComm *comm);

/* "ncclSum", or "a user's operation" for any other value. Static text. */
const char *rondo_redop_name(ncclRedOp_t op);

/* One value of a type at scalar as the bits of its accumulator (dtypes.def). Pure. */
uint64_t rondo_scalar_bits(const void *scalar, ncclDataType_t dtype);

#endif
