/*
 * plan_tree.c - all-reduces that go by tree: on each channel what goes up and, but for the root, what comes
 * down, over the channel's range of the data. Odd channels use the second tree (topology/trees.h).
 *
 * The order of the fold is the tree's, and so depends on who shares a host with whom: deterministic sums of
 * floating types do not go this way. Integers come out the same in any order.
 */
#include "chunking.h"
#include "plan_parts.h"

bool rondo_plan_has_tree(const struct rondo_plan_context *context, const struct rondo_task *task)
{
    return task->operation == RONDO_OP_ALL_REDUCE &&
           !(context->is_deterministic && rondo_dtype_is_float(task->dtype));
}

/* Elements a slot, for a range of count elements. */
static uint64_t choose_chunk(const struct rondo_plan_context *context, enum rondo_protocol protocol,
                             uint64_t count, uint64_t element_bytes, uint64_t wire_bytes)
{
    uint64_t slot_bytes = rondo_layout_slot_bytes(context->layout, RONDO_CONNECTION_TREE, protocol);

    return rondo_chunking_pipeline(count, count, context->tree_levels, element_bytes, wire_bytes,
                                   rondo_protocol_capacity(protocol, slot_bytes));
}

static ncclResult_t add_works(struct rondo_draft *draft, struct rondo_work *work)
{
    ncclResult_t rc = rondo_draft_add_collective(draft, 0, work);

    if (rc != ncclSuccess || !work->peers[RONDO_TREE_PARENT].from)
        return rc;
    struct rondo_work down = *work;
    down.kind = RONDO_WORK_TREE_DOWN;
    down.redop = RONDO_REDOP_SUM;
    down.flags &= RONDO_WORK_PRECISE; /* results have the places of partial sums */
    down.scalar = 0;
    down.send = NULL;
    return rondo_draft_add_collective(draft, 1, &down);
}

ncclResult_t rondo_plan_tree(const struct rondo_plan_context *context, const struct rondo_task *task,
                             enum rondo_protocol protocol, struct rondo_draft *draft)
{
    uint64_t element_bytes = rondo_dtype_bytes(task->dtype);
    uint64_t wire_bytes = context->is_precise ? rondo_dtype_wide_bytes(task->dtype) : element_bytes;
    uint32_t channels =
        rondo_chunking_channels(rondo_plan_moved_bytes(context, task), context->layout->channels);
    struct rondo_work work = {
        .kind = RONDO_WORK_TREE_UP,
        .operation = (uint8_t)task->operation,
        .dtype = (uint8_t)task->dtype,
        .redop = (uint8_t)task->redop,
        .flags = (uint8_t)(task->flags | (wire_bytes != element_bytes ? RONDO_WORK_PRECISE : 0)),
        .protocol = (uint8_t)protocol,
        .stride = task->count,
        .scalar = task->scalar,
        .number = task->number,
        .fingerprint = rondo_fingerprint(task),
        .root = -1,
    };

    for (uint32_t channel = 0; channel < channels; channel++) {
        struct rondo_part range = rondo_chunking_range(task->count, element_bytes, channels, channel);
        uint64_t first = range.first * element_bytes;
        ncclResult_t rc;

        if (range.count == 0)
            break;
        work.peers = context->tree(context->owner, channel, protocol);
        if (!work.peers)
            return ncclSystemError; /* its text is recorded */
        work.channel = channel;
        work.send = (const char *)task->send + first;
        work.recv = (char *)task->recv + first;
        work.count = range.count;
        work.chunk = choose_chunk(context, protocol, range.count, element_bytes, wire_bytes);
        rc = add_works(draft, &work);
        if (rc != ncclSuccess)
            return rc;
    }
    return ncclSuccess;
}
