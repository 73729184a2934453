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

/* What one operation needs to know of itself on every channel. */
struct course {
    enum rondo_work_kind kind;
    bool is_chain;
    bool is_reduction;
    enum rondo_protocol protocol;
    uint64_t element_bytes, wire_bytes, slot_bytes; /* of the last: what a slot holds of the user's */
};

/* RONDO_WORK_NUM: the operation does not travel round rings. */
static enum rondo_work_kind choose_kind(enum rondo_operation operation, bool is_chain)
{
    switch (operation) {
    case RONDO_OP_ALL_REDUCE:
        return is_chain ? RONDO_WORK_CHAIN_ALL_REDUCE : RONDO_WORK_RING_ALL_REDUCE;
    case RONDO_OP_REDUCE_SCATTER:
        return is_chain ? RONDO_WORK_CHAIN_REDUCE_SCATTER : RONDO_WORK_RING_REDUCE_SCATTER;
    case RONDO_OP_REDUCE:
        return is_chain ? RONDO_WORK_CHAIN_REDUCE : RONDO_WORK_RING_REDUCE;
    case RONDO_OP_ALL_GATHER:
        return RONDO_WORK_RING_ALL_GATHER;
    case RONDO_OP_BROADCAST:
        return RONDO_WORK_RING_BROADCAST;
    default:
        return RONDO_WORK_NUM;
    }
}

static struct course choose_course(const struct rondo_plan_context *context, const struct rondo_task *task,
                                   enum rondo_protocol protocol)
{
    struct course course = {
        .is_reduction = rondo_operation_facts(task->operation)->reduces,
        .protocol = protocol,
        .element_bytes = rondo_dtype_bytes(task->dtype),
        .slot_bytes = rondo_protocol_capacity(
            protocol, rondo_layout_slot_bytes(context->layout, RONDO_CONNECTION_RING, protocol)),
    };

    /* Integers come out the same in any order. */
    course.is_chain = course.is_reduction && context->is_deterministic && rondo_dtype_is_float(task->dtype);
    course.kind = choose_kind(task->operation, course.is_chain);
    course.wire_bytes = course.is_reduction && context->is_precise ? rondo_dtype_wide_bytes(task->dtype)
                                                                   : course.element_bytes;
    return course;
}

/* Elements a slot, for a range of count elements (a block's, in all-gather and reduce-scatter). */
static uint64_t choose_chunk(const struct rondo_plan_context *context, const struct course *course,
                             uint64_t count)
{
    uint64_t ranks = context->layout->ranks, slot_bytes = course->slot_bytes;

    switch (course->kind) {
    case RONDO_WORK_RING_ALL_REDUCE:
        return rondo_chunking_even(count / ranks + (count % ranks != 0), course->element_bytes,
                                   course->wire_bytes, slot_bytes);
    case RONDO_WORK_RING_ALL_GATHER:
    case RONDO_WORK_RING_REDUCE_SCATTER:
        return rondo_chunking_even(count, course->element_bytes, course->wire_bytes, slot_bytes);
    case RONDO_WORK_CHAIN_REDUCE_SCATTER:
        return rondo_chunking_pipeline(count * ranks, count, ranks, course->element_bytes, course->wire_bytes,
                                       slot_bytes);
    default:
        return rondo_chunking_pipeline(count, count, ranks, course->element_bytes, course->wire_bytes,
                                       slot_bytes);
    }
}

/* Connect both ends on the work's channel, also where a rooted operation leaves one unused: that costs no
 * message. */
static ncclResult_t connect_work(const struct rondo_plan_context *context, const struct course *course,
                                 struct rondo_work *work)
{
    uint32_t ranks = context->layout->ranks;
    const int32_t *order = context->order + (size_t)work->channel * ranks;
    uint32_t position = (uint32_t)context->position[work->channel];
    struct rondo_connection ring = {
        .kind = RONDO_CONNECTION_RING, .protocol = course->protocol, .channel = work->channel};
    int32_t predecessor = order[(position + ranks - 1) % ranks], successor = order[(position + 1) % ranks];

    if (course->is_chain &&
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

static const void *offset_const(const void *base, uint64_t bytes)
{
    return base ? (const char *)base + bytes : NULL;
}

static void *offset(void *base, uint64_t bytes)
{
    return base ? (char *)base + bytes : NULL;
}

ncclResult_t rondo_plan_ring(const struct rondo_plan_context *context, const struct rondo_task *task,
                             enum rondo_protocol protocol, struct rondo_draft *draft)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);
    uint64_t moved = rondo_plan_moved_bytes(context, task);
    uint32_t channels = rondo_chunking_channels(moved, context->layout->channels);
    struct course course = choose_course(context, task, protocol);
    struct rondo_work work = {
        .kind = (uint8_t)course.kind,
        .operation = (uint8_t)task->operation,
        .dtype = (uint8_t)task->dtype,
        .redop = course.is_reduction ? (uint8_t)task->redop : RONDO_REDOP_SUM,
        .flags = course.is_reduction ? (uint8_t)task->flags : 0,
        .protocol = (uint8_t)course.protocol,
        .stride = task->count,
        .scalar = course.is_reduction ? task->scalar : 0,
        .number = task->number,
        .fingerprint = rondo_fingerprint(task),
        .root = facts->root == RONDO_ROOT_RANK ? task->root : -1,
    };

    if (course.kind == RONDO_WORK_NUM)
        return rondo_fail(ncclInternalError, "plan %s on rank %d: it has no way round a ring", facts->name,
                          context->rank);
    if (course.wire_bytes != course.element_bytes)
        work.flags |= RONDO_WORK_PRECISE;
    for (uint32_t channel = 0; channel < channels; channel++) {
        struct rondo_part range = rondo_chunking_range(task->count, course.element_bytes, channels, channel);

        if (range.count == 0)
            break; /* few elements a block among very many ranks */
        work.channel = channel;
        work.send = offset_const(task->send, range.first * course.element_bytes);
        work.recv = offset(task->recv, range.first * course.element_bytes);
        work.count = range.count;
        work.chunk = choose_chunk(context, &course, range.count);
        work.from = work.to = NULL;
        ncclResult_t rc = connect_work(context, &course, &work);
        if (rc == ncclSuccess)
            rc = rondo_draft_add_collective(draft, 0, &work);
        if (rc != ncclSuccess)
            return rc;
    }
    return ncclSuccess;
}
