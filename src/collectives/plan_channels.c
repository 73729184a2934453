/*
 * plan_channels.c - what all collectives but those made of messages have in common: one work a channel, each
 * with its range of the data.
 */
#include "chunking.h"
#include "plan_parts.h"

struct rondo_work rondo_plan_work(const struct rondo_task *task, enum rondo_work_kind kind,
                                  enum rondo_protocol protocol)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);

    return (struct rondo_work){
        .kind = (uint8_t)kind,
        .operation = (uint8_t)task->operation,
        .dtype = (uint8_t)task->dtype,
        .redop = facts->reduces ? (uint8_t)task->redop : RONDO_REDOP_SUM,
        .flags = facts->reduces ? (uint8_t)task->flags : 0,
        .protocol = (uint8_t)protocol,
        .stride = task->count,
        .scalar = facts->reduces ? task->scalar : 0,
        .number = task->number,
        .fingerprint = rondo_fingerprint(task),
        .root = facts->root == RONDO_ROOT_RANK ? task->root : -1,
    };
}

void rondo_plan_make_precise(const struct rondo_plan_context *context, struct rondo_work *work)
{
    ncclDataType_t dtype = (ncclDataType_t)work->dtype;

    if (context->is_precise && rondo_dtype_wide_bytes(dtype) != rondo_dtype_bytes(dtype))
        work->flags |= RONDO_WORK_PRECISE;
}

uint64_t rondo_plan_wire_bytes(const struct rondo_work *work)
{
    ncclDataType_t dtype = (ncclDataType_t)work->dtype;

    return work->flags & RONDO_WORK_PRECISE ? rondo_dtype_wide_bytes(dtype) : rondo_dtype_bytes(dtype);
}

ncclResult_t rondo_plan_channels(const struct rondo_plan_context *context, const struct rondo_task *task,
                                 const struct rondo_work *common, rondo_plan_add add,
                                 struct rondo_draft *draft)
{
    uint64_t element_bytes = rondo_dtype_bytes(task->dtype);
    uint32_t channels =
        rondo_chunking_channels(rondo_plan_moved_bytes(context, task), context->layout->channels);
    ncclResult_t rc = ncclSuccess;

    for (uint32_t channel = 0; channel < channels && rc == ncclSuccess; channel++) {
        struct rondo_part range = rondo_chunking_range(task->count, element_bytes, channels, channel);
        uint64_t first = range.first * element_bytes;
        struct rondo_work work = *common;

        if (range.count == 0)
            break; /* few elements a block among very many ranks */
        work.channel = channel;
        work.send = task->send ? (const char *)task->send + first : NULL;
        work.recv = task->recv ? (char *)task->recv + first : NULL;
        work.count = range.count;
        rc = add(context, &work, draft);
    }
    return rc;
}
