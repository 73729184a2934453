/*
 * plan_tree.c - all-reduces that go by tree: on each channel what goes up and, but for the root, what comes
 * down, over the channel's range of the data. Odd channels use the second tree (topology/trees.h).
 *
 * The order of the fold is the tree's, and so depends on who shares a host with whom: deterministic sums of
 * floating types do not go this way. Integers come out the same in any order.
 */
#include "chunking.h"
#include "plan_parts.h"

const char *rondo_plan_no_tree(const struct rondo_plan_context *context, const struct rondo_task *task)
{
    if (task->operation != RONDO_OP_ALL_REDUCE)
        return "it does AllReduce alone";
    if (context->is_deterministic && rondo_dtype_is_float(task->dtype))
        return "RONDO_DETERMINISTIC is set, and a tree's floating-point result depends on which ranks share "
               "a host";
    return NULL;
}

/* Elements a slot, for the work's count. */
static uint64_t choose_chunk(const struct rondo_plan_context *context, const struct rondo_work *work)
{
    enum rondo_protocol protocol = (enum rondo_protocol)work->protocol;
    uint64_t slot_bytes = rondo_layout_slot_bytes(context->layout, RONDO_CONNECTION_TREE, protocol);

    return rondo_chunking_pipeline(
        work->count, work->count, context->tree_levels, rondo_dtype_bytes((ncclDataType_t)work->dtype),
        rondo_plan_wire_bytes(work), rondo_protocol_capacity(protocol, slot_bytes));
}

static ncclResult_t add_works(const struct rondo_plan_context *context, struct rondo_work *work,
                              struct rondo_draft *draft)
{
    ncclResult_t rc;

    work->peers = context->tree(context->owner, work->channel, (enum rondo_protocol)work->protocol);
    if (!work->peers)
        return ncclSystemError; /* its text is recorded */
    work->chunk = choose_chunk(context, work);
    rc = rondo_draft_add_collective(draft, 0, work);
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
    struct rondo_work work = rondo_plan_work(task, RONDO_WORK_TREE_UP, protocol);

    rondo_plan_make_precise(context, &work);
    return rondo_plan_channels(context, task, &work, add_works, draft);
}
