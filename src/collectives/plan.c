/*
 * plan.c - the entry of the planner: each task to the file that knows its pattern, then the draft to a plan.
 *
 * Tasks are looked at in the user's order, so messages between two ranks keep it, whether they are the user's
 * own or parts of an all-to-all.
 */
#include "chunking.h"
#include "plan_parts.h"

#include "base/error.h"
#include "base/log.h"

ncclResult_t rondo_plan_copy(const struct rondo_task *task, const void *from, void *to, uint64_t bytes,
                             struct rondo_draft *draft)
{
    struct rondo_work work = {
        .kind = RONDO_WORK_COPY,
        .operation = (uint8_t)task->operation,
        .dtype = ncclUint8, /* bytes: nothing about them may change, not even the sign of a NaN */
        .redop = RONDO_REDOP_SUM,
        .send = from,
        .recv = to,
        .count = bytes,
        .number = task->number,
        .fingerprint = rondo_fingerprint(task),
        .root = -1,
    };

    if (bytes == 0 || from == to)
        return ncclSuccess;
    return rondo_draft_add_message(draft, RONDO_ROLE_SENDS, 0,
                                   &work); /* round 0: no peer, so before all that wait */
}

ncclResult_t rondo_plan_alone(const struct rondo_plan_context *context, const struct rondo_task *task,
                              struct rondo_draft *draft)
{
    bool scales =
        rondo_operation_facts(task->operation)->reduces &&
        (task->redop == RONDO_REDOP_PREMULSUM || (task->redop == RONDO_REDOP_SUMDIV && task->scalar > 1));
    struct rondo_work work = {
        .kind = RONDO_WORK_COPY,
        .operation = (uint8_t)task->operation,
        .dtype = (uint8_t)task->dtype,
        .redop = (uint8_t)task->redop,
        .flags = (uint8_t)task->flags,
        .send = task->send,
        .recv = task->recv,
        .count = task->count,
        .scalar = task->scalar,
        .number = task->number,
        .fingerprint = rondo_fingerprint(task),
        .root = -1,
    };

    (void)context;
    if (scales)
        return rondo_draft_add_message(draft, RONDO_ROLE_SENDS, 0, &work);
    return rondo_plan_copy(task, task->send, task->recv, task->count * rondo_dtype_bytes(task->dtype), draft);
}

uint64_t rondo_plan_moved_bytes(const struct rondo_plan_context *context, const struct rondo_task *task)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);
    bool has_blocks = facts->send_blocks || facts->recv_blocks;

    return task->count * rondo_dtype_bytes(task->dtype) * (has_blocks ? context->layout->ranks : 1);
}

static ncclResult_t plan_task(const struct rondo_plan_context *context, const struct rondo_task *task,
                              struct rondo_draft *draft)
{
    enum rondo_travel travel = rondo_operation_facts(task->operation)->travel;
    bool is_message = rondo_operation_is_message(task->operation);
    struct rondo_choice choice = {.algorithm = RONDO_ALGORITHM_RING};
    ncclResult_t rc = ncclSuccess;

    if (is_message && task->root == context->rank)
        return ncclSuccess; /* rondo_plan_self looks at all of them together */
    if (!is_message && task->count == 0)
        return ncclSuccess;
    if (context->layout->ranks == 1 && !is_message)
        return rondo_plan_alone(context, task, draft);
    if (!is_message && travel != RONDO_TRAVEL_NONE)
        rc = rondo_choose(&context->choices, task->operation, rondo_plan_moved_bytes(context, task),
                          context->layout->ranks, rondo_plan_direct_uses(context, task),
                          rondo_plan_no_tree(context, task), &choice);
    if (rc != ncclSuccess)
        return rc;
    if (!is_message && rondo_log_enabled(RONDO_LOG_TRACE, RONDO_LOG_TUNING))
        rondo_log(RONDO_LOG_TRACE, RONDO_LOG_TUNING, "%s %llu of %llu elements goes by %s, %s",
                  rondo_operation_name(task->operation), (unsigned long long)task->number,
                  (unsigned long long)task->count,
                  travel == RONDO_TRAVEL_PAIRS && choice.algorithm == RONDO_ALGORITHM_RING
                      ? "messages"
                      : rondo_algorithm_name(choice.algorithm),
                  rondo_protocol_name(choice.protocol));
    if (choice.algorithm == RONDO_ALGORITHM_DIRECT)
        return rondo_plan_direct(context, task, choice.protocol, draft);
    if (choice.algorithm == RONDO_ALGORITHM_TREE)
        return rondo_plan_tree(context, task, choice.protocol, draft);
    switch (travel) {
    case RONDO_TRAVEL_RING:
        return rondo_plan_ring(context, task, choice.protocol, draft);
    case RONDO_TRAVEL_PAIRS:
        return rondo_plan_pair(context, task, draft);
    case RONDO_TRAVEL_NONE:
    default:
        return rondo_fail(ncclInternalError, "plan operation %d on rank %d: there is no such operation",
                          (int)task->operation, context->rank);
    }
}

ncclResult_t rondo_plan_build(const struct rondo_plan_context *context, const struct rondo_task *tasks,
                              size_t count, struct rondo_plan **plan_out)
{
    struct rondo_draft draft = {0};
    struct rondo_plan *plan = NULL;
    ncclResult_t rc = rondo_plan_self(context, tasks, count, &draft);

    for (size_t i = 0; i < count && rc == ncclSuccess; i++)
        rc = plan_task(context, &tasks[i], &draft);
    if (rc == ncclSuccess && draft.count > 0)
        rc = rondo_draft_finish(&draft, context, &plan);
    if (rc == ncclSuccess)
        *plan_out = plan;
    rondo_draft_fini(&draft);
    return rc;
}
