/*
 * draft.h - the works of a launch while they are being collected, each with the list it belongs to.
 *
 * Works of collectives go to a list of their channel's block in the order they come: to the first, but for
 * what comes down a tree, which has the second. Works of point to point go by direction and round; finishing
 * the draft deals the rounds to blocks. plan_pair.c has the reason for rounds.
 */
#ifndef RONDO_COLLECTIVES_DRAFT_H
#define RONDO_COLLECTIVES_DRAFT_H

#include "collectives/plan.h"

#include <stdbool.h>

struct rondo_draft_item;

/* Starts all zero. */
struct rondo_draft {
    struct rondo_draft_item *items;
    size_t count, capacity;
    bool has_messages;
};

/* The lists of a block, by what point to point has in them. */
enum rondo_role { RONDO_ROLE_SENDS, RONDO_ROLE_RECEIVES, RONDO_ROLES };

/* A collective's work, to list 0 or 1 of work->channel. ncclSystemError: no memory; the draft is as before.
 */
ncclResult_t rondo_draft_add_collective(struct rondo_draft *draft, unsigned list,
                                        const struct rondo_work *work);

/* A message of a round, or a copy, which has no peer. Likewise. */
ncclResult_t rondo_draft_add_message(struct rondo_draft *draft, enum rondo_role role, uint32_t round,
                                     const struct rondo_work *work);

/* Lay the works out as a plan. The draft must hold at least one. ncclSystemError: no memory. */
ncclResult_t rondo_draft_finish(const struct rondo_draft *draft, const struct rondo_plan_context *context,
                                struct rondo_plan **plan_out);

void rondo_draft_fini(struct rondo_draft *draft);

#endif
