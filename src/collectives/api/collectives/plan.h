/*
 * plan.h - from the operations of a group to the works of one launch. Pure arithmetic: no I/O, no device,
 * no waiting.
 */
#ifndef RONDO_COLLECTIVES_PLAN_H
#define RONDO_COLLECTIVES_PLAN_H

#include "collectives/choose.h"
#include "collectives/operation.h"
#include "device/types.h"
#include "device/work.h"
#include "transport/transport.h"

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One API call on one communicator, arguments already checked. Counts are elements, as the API defines them
 * per operation. */
struct rondo_task {
    enum rondo_operation operation;
    ncclDataType_t dtype;
    ncclRedOp_t public_redop; /* as the user gave it: for records and messages */
    enum rondo_redop redop;   /* what kernels do */
    uint32_t flags;           /* RONDO_WORK_SCALAR_POINTER */
    int32_t root;             /* root, or the peer of a send or receive */
    const void *send;
    void *recv;
    uint64_t count;
    uint64_t scalar; /* see struct rondo_work */
    uint64_t number; /* of this collective in the communicator; for send / recv: of this pair and direction,
                        from 1 */
};

/* What direct works of one channel and protocol share. */
struct rondo_direct {
    struct rondo_peer_ends *peers; /* [ranks] */
    struct rondo_source *sources;  /* [ranks]; SIMPLE alone, as is the next: NULL otherwise */
    unsigned char *bounce;
    uint64_t bounce_bytes;
};

/* What a communicator is to the planner. */
struct rondo_plan_context {
    int32_t rank;
    const struct rondo_layout *layout; /* ranks, channels, slot sizes */
    const int32_t *order;              /* as in struct rondo_kernel_args; ascending when is_deterministic */
    const int32_t *position;
    bool is_precise;
    bool is_deterministic;
    struct rondo_choices choices; /* the same on all ranks */
    uint32_t max_pair_blocks; /* blocks that point to point may use at once; at most what the rank page has
                                 notes for */

    /* The communicator's end of a connection, connected at the first call. NULL and a recorded error if it
     * cannot be. */
    struct rondo_end *(*end)(void *owner, enum rondo_direction direction, int peer,
                             const struct rondo_connection *connection);

    bool has_windows;      /* all ranks can map the memory of all others: they agree on it */
    uint64_t direct_bytes; /* as RONDO_DIRECT_BYTES has it, agreed; UINT64_MAX: what was measured */

    /* Whether all peers can read [memory, memory + bytes), this rank's, where it lies. */
    bool (*is_mapped)(void *owner, const void *memory, uint64_t bytes);

    /* A channel's direct connections for a protocol, and its bounce area, made at the first call; they live
     * as long as the communicator. NULL and a recorded error if they cannot be. Only with has_windows. */
    const struct rondo_direct *(*direct)(void *owner, uint32_t channel, enum rondo_protocol protocol);

    uint32_t tree_levels; /* ranks on the longest way to a tree's root, or more; agreed */

    /* This rank's neighbours in the tree of a channel, by port, connected at the first call; they live as
     * long as the communicator. NULL and a recorded error if they cannot be. */
    struct rondo_peer_ends *(*tree)(void *owner, uint32_t channel, enum rondo_protocol protocol);
    void *owner;
};

/* One launch. All arrays belong to it and live until rondo_plan_destroy. */
struct rondo_plan {
    struct rondo_kernel_args args; /* page and board are filled in by the caller */
    struct rondo_fault fault;
    struct rondo_block *blocks;
    struct rondo_work *works;
};

/* Plan the tasks of one communicator and one launch, in the order the user gave them. *plan_out is NULL
 * when there is nothing to run (counts of 0). Caller owns it. ncclInvalidUsage: a send to self without its
 * receive in the same tasks, or the reverse; or what rondo_choose refuses. ncclSystemError: no memory.
 * ncclSystemError with the text that context->end recorded, when it yields NULL. */
ncclResult_t rondo_plan_build(const struct rondo_plan_context *context, const struct rondo_task *tasks,
                              size_t count, struct rondo_plan **plan_out);

/* Takes NULL. */
void rondo_plan_destroy(struct rondo_plan *plan);

/* What sender and receiver of an operation must agree on, never 0. Reductions: operation, count, type,
 * root, and the kind of reduction but neither handle nor scalar; data movement: bytes; point to point:
 * bytes and the number in that direction. */
uint64_t rondo_fingerprint(const struct rondo_task *task);

#ifdef __cplusplus
}
#endif

#endif
