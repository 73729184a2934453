/*
 * plan_ring.c - collectives that travel round the rings: one work a channel, each with its range of the data.
 *
 * - Ring: each rank receives from its predecessor and sends to its successor; schedule.h has what goes when.
 * - Chain: the same connections on an ascending ring, so that ranks are folded 0 .. n-1 for every element.
 *   For reductions of floating types when results must not depend on anything else.
 */
#include "chunking.h"
#include "plan_parts.h"

#include "base/error.h"

/* RONDO_WORK_NUM: the operation does not travel round rings. */
static enum rondo_work_kind choose_kind(enum rondo_operation operation, bool by_chain)
{
    switch (operation) {
    case RONDO_OP_ALL_REDUCE:
        return by_chain ? RONDO_WORK_CHAIN_ALL_REDUCE : RONDO_WORK_RING_ALL_REDUCE;
    case RONDO_OP_REDUCE_SCATTER:
        return by_chain ? RONDO_WORK_CHAIN_REDUCE_SCATTER : RONDO_WORK_RING_REDUCE_SCATTER;
    case RONDO_OP_REDUCE:
        return by_chain ? RONDO_WORK_CHAIN_REDUCE : RONDO_WORK_RING_REDUCE;
    case RONDO_OP_ALL_GATHER:
        return RONDO_WORK_RING_ALL_GATHER;
    case RONDO_OP_BROADCAST:
        return RONDO_WORK_RING_BROADCAST;
    default:
        return RONDO_WORK_NUM;
    }
}

static bool is_chain(const struct rondo_work *work)
{
    return work->kind == RONDO_WORK_CHAIN_ALL_REDUCE || work->kind == RONDO_WORK_CHAIN_REDUCE_SCATTER ||
           work->kind == RONDO_WORK_CHAIN_REDUCE;
}

/* Elements a slot, for the work's count (a block's, in all-gather and reduce-scatter). */
static uint64_t choose_chunk(const struct rondo_plan_context *context, const struct rondo_work *work)
{
    enum rondo_protocol protocol = (enum rondo_protocol)work->protocol;
    uint64_t ranks = context->layout->ranks, count = work->count;
    uint64_t element_bytes = rondo_dtype_bytes((ncclDataType_t)work->dtype);
    uint64_t wire_bytes = rondo_plan_wire_bytes(work);
    uint64_t slot_bytes = rondo_protocol_capacity(
        protocol, rondo_layout_slot_bytes(context->layout, RONDO_CONNECTION_RING, protocol));

    switch (work->kind) {
    case RONDO_WORK_RING_ALL_REDUCE:
        return rondo_chunking_even(count / ranks + (count % ranks != 0), element_bytes, wire_bytes,
                                   slot_bytes);
    case RONDO_WORK_RING_ALL_GATHER:
    case RONDO_WORK_RING_REDUCE_SCATTER:
        return rondo_chunking_even(count, element_bytes, wire_bytes, slot_bytes);
    case RONDO_WORK_CHAIN_REDUCE_SCATTER:
        return rondo_chunking_pipeline(count * ranks, count, ranks, element_bytes, wire_bytes, slot_bytes);
    default:
        return rondo_chunking_pipeline(count, count, ranks, element_bytes, wire_bytes, slot_bytes);
    }
}

/* Connect both ends on the work's channel, also where a rooted operation leaves one unused: that costs no
 * message. */
static ncclResult_t connect_work(const struct rondo_plan_context *context, struct rondo_work *work)
{
    uint32_t ranks = context->layout->ranks;
    const int32_t *order = context->order + (size_t)work->channel * ranks;
    uint32_t position = (uint32_t)context->position[work->channel];
    struct rondo_connection ring = {.kind = RONDO_CONNECTION_RING,
                                    .protocol = (enum rondo_protocol)work->protocol,
                                    .channel = work->channel};
    int32_t predecessor = order[(position + ranks - 1) % ranks], successor = order[(position + 1) % ranks];

    if (is_chain(work) &&
        (position != (uint32_t)context->rank || (uint32_t)successor != (position + 1) % ranks))
        return rondo_fail(ncclInternalError, "plan %s in rank order on rank %d: ring %u is not ascending",
                          rondo_operation_name((enum rondo_operation)work->operation), context->rank,
                          work->channel);
    work->from = context->end(context->owner, RONDO_RECV, predecessor, &ring);
    if (!work->from)
        return ncclSystemError; /* its text is recorded */
    work->to = context->end(context->owner, RONDO_SEND, successor, &ring);
    if (!work->to)
        return ncclSystemError;
    return ncclSuccess;
}

static ncclResult_t add_work(const struct rondo_plan_context *context, struct rondo_work *work,
                             struct rondo_draft *draft)
{
    ncclResult_t rc = connect_work(context, work);

    if (rc != ncclSuccess)
        return rc;
    work->chunk = choose_chunk(context, work);
    return rondo_draft_add_collective(draft, 0, work);
}

ncclResult_t rondo_plan_ring(const struct rondo_plan_context *context, const struct rondo_task *task,
                             enum rondo_protocol protocol, struct rondo_draft *draft)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);
    /* Integers come out the same in any order. */
    bool by_chain = facts->reduces && context->is_deterministic && rondo_dtype_is_float(task->dtype);
    struct rondo_work work = rondo_plan_work(task, choose_kind(task->operation, by_chain), protocol);

    if (work.kind == RONDO_WORK_NUM)
        return rondo_fail(ncclInternalError, "plan %s on rank %d: it has no way round a ring", facts->name,
                          context->rank);
    if (facts->reduces)
        rondo_plan_make_precise(context, &work);
    return rondo_plan_channels(context, task, &work, add_work, draft);
}
