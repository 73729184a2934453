/* plan_parts.h - what plan.c has the other files do for each task. */
#ifndef RONDO_COLLECTIVES_PLAN_PARTS_H
#define RONDO_COLLECTIVES_PLAN_PARTS_H

#include "draft.h"

#include "collectives/plan.h"

/* Bytes of the larger of a rank's buffers, of a collective. */
uint64_t rondo_plan_moved_bytes(const struct rondo_plan_context *context, const struct rondo_task *task);

/* What a collective's works have in common, whichever channel. Pure. */
struct rondo_work rondo_plan_work(const struct rondo_task *task, enum rondo_work_kind kind,
                                  enum rondo_protocol protocol);

/* Have partial sums of a reduction travel in the accumulator's type, if that is asked for and any wider. */
void rondo_plan_make_precise(const struct rondo_plan_context *context, struct rondo_work *work);

/* Bytes of an element of partial sums, or of what only moves. Pure. */
uint64_t rondo_plan_wire_bytes(const struct rondo_work *work);

/* Connect a work, choose its chunk, and add it to the draft, with others that belong to it. It has its
 * channel, and of that the range of its buffers and count. */
typedef ncclResult_t (*rondo_plan_add)(const struct rondo_plan_context *context, struct rondo_work *work,
                                       struct rondo_draft *draft);

/* Add a work for each channel that a collective uses. */
ncclResult_t rondo_plan_channels(const struct rondo_plan_context *context, const struct rondo_task *task,
                                 const struct rondo_work *common, rondo_plan_add add,
                                 struct rondo_draft *draft);

/* The works of a collective that goes round the rings, or along a chain. Two ranks or more, count > 0. */
ncclResult_t rondo_plan_ring(const struct rondo_plan_context *context, const struct rondo_task *task,
                             enum rondo_protocol protocol, struct rondo_draft *draft);

/* What going directly would be for a collective, by what all ranks agree on. Two ranks or more, count > 0.
 * Pure.
 */
struct rondo_direct_uses rondo_plan_direct_uses(const struct rondo_plan_context *context,
                                                const struct rondo_task *task);

/* Its works when it goes directly, over a protocol that makes that possible. */
ncclResult_t rondo_plan_direct(const struct rondo_plan_context *context, const struct rondo_task *task,
                               enum rondo_protocol protocol, struct rondo_draft *draft);

/* What makes it impossible for a collective to go by tree, by what all ranks agree on; NULL: nothing does.
 * Pure. */
const char *rondo_plan_no_tree(const struct rondo_plan_context *context, const struct rondo_task *task);

/* Its works when it does. Two ranks or more, count > 0. */
ncclResult_t rondo_plan_tree(const struct rondo_plan_context *context, const struct rondo_task *task,
                             enum rondo_protocol protocol, struct rondo_draft *draft);

/* The works of a send or receive with another rank, or of a collective made of such: all-to-all, gather,
 * scatter. Two ranks or more. Sends and receives with oneself are rondo_plan_self's. */
ncclResult_t rondo_plan_pair(const struct rondo_plan_context *context, const struct rondo_task *task,
                             struct rondo_draft *draft);

/* Match this rank's sends to itself with its receives from itself, in order, and copy. */
ncclResult_t rondo_plan_self(const struct rondo_plan_context *context, const struct rondo_task *tasks,
                             size_t count, struct rondo_draft *draft);

/* A collective in a communicator of one rank; count > 0. */
ncclResult_t rondo_plan_alone(const struct rondo_plan_context *context, const struct rondo_task *task,
                              struct rondo_draft *draft);

/* Copy bytes for a task, unless they are where they should be; no bytes, no work. */
ncclResult_t rondo_plan_copy(const struct rondo_task *task, const void *from, void *to, uint64_t bytes,
                             struct rondo_draft *draft);

#endif
