/*
 * plan_pair.c - sends and receives, and the collectives made of them, ordered so that no launch can block
 * itself.
 *
 * In round d, 0 < d < n, a rank sends to rank + d and receives from rank - d: a message has the same round on
 * both sides. A block's sends are one list and its receives another, each in order of rounds, and all
 * messages of a round and direction are in one list, in the user's order. Each list runs in order; the lists
 * run side by side.
 *
 * Why it cannot get stuck, if every send has its receive in launches that run: take the lowest round d in
 * which any rank has messages left, and in it any such pair, a -> b. Everything of lower rounds is done
 * everywhere. So at a the first unfinished message to b is at the head of its list, and at b the first
 * unfinished one from a is too, whatever blocks the two ranks dealt the round to. Slots arrive in order, so
 * either the receiver finds its next slot posted, or all that was posted is consumed, the sender has credit
 * for a slot of the same message or of a later one, and sends it. Somebody always moves. The argument needs
 * neither the same number of blocks on both sides nor the same rounds in use.
 */
#include "chunking.h"
#include "plan_parts.h"

#include "base/error.h"

/* One message with another rank. data is written by receives only. */
static ncclResult_t add_message(const struct rondo_plan_context *context, const struct rondo_task *task,
                                enum rondo_role role, int32_t peer, void *data, uint64_t bytes,
                                struct rondo_draft *draft)
{
    bool is_send = role == RONDO_ROLE_SENDS;
    uint32_t ranks = context->layout->ranks;
    int32_t ahead = is_send ? peer - context->rank : context->rank - peer;
    const struct rondo_direct_uses none = {.pulled = RONDO_DIRECT_IMPOSSIBLE,
                                           .oneshot = RONDO_DIRECT_IMPOSSIBLE};
    struct rondo_choice choice;
    ncclResult_t rc = rondo_choose(&context->choices, task->operation, bytes, ranks, none, NULL, &choice);

    if (rc != ncclSuccess)
        return rc;
    struct rondo_connection pair = {.kind = RONDO_CONNECTION_PAIR, .protocol = choice.protocol};
    struct rondo_end *end = context->end(context->owner, is_send ? RONDO_SEND : RONDO_RECV, peer, &pair);
    uint64_t slot_bytes = rondo_layout_slot_bytes(context->layout, pair.kind, pair.protocol);
    struct rondo_work work = {
        .kind = is_send ? RONDO_WORK_SEND : RONDO_WORK_RECV,
        .operation = (uint8_t)task->operation,
        .dtype = ncclUint8,
        .redop = RONDO_REDOP_SUM,
        .send = is_send ? data : NULL,
        .recv = is_send ? NULL : data,
        .count = bytes,
        .stride = bytes,
        .protocol = (uint8_t)choice.protocol,
        .chunk = rondo_chunking_message(bytes, rondo_protocol_capacity(choice.protocol, slot_bytes)),
        .number = task->number,
        .fingerprint = rondo_fingerprint(task),
        .root = peer,
        .from = is_send ? NULL : end,
        .to = is_send ? end : NULL,
    };

    if (!end)
        return ncclSystemError; /* its text is recorded */
    return rondo_draft_add_message(draft, role, (uint32_t)(ahead + (int32_t)ranks) % ranks, &work);
}

static ncclResult_t add_send(const struct rondo_plan_context *context, const struct rondo_task *task,
                             int32_t peer, uint64_t from, uint64_t bytes, struct rondo_draft *draft)
{
    return add_message(context, task, RONDO_ROLE_SENDS, peer, (char *)task->send + from, bytes, draft);
}

static ncclResult_t add_recv(const struct rondo_plan_context *context, const struct rondo_task *task,
                             int32_t peer, uint64_t to, uint64_t bytes, struct rondo_draft *draft)
{
    return add_message(context, task, RONDO_ROLE_RECEIVES, peer, (char *)task->recv + to, bytes, draft);
}

/* Whether a block goes from one rank to another, or to itself. */
static bool has_block(const struct rondo_task *task, int32_t from, int32_t to)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);

    return (facts->send == RONDO_USERS_ALL || from == task->root) &&
           (facts->recv == RONDO_USERS_ALL || to == task->root);
}

/* All-to-all, gather, scatter; bytes are a block's. */
static ncclResult_t plan_blocks(const struct rondo_plan_context *context, const struct rondo_task *task,
                                uint64_t bytes, struct rondo_draft *draft)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);
    uint64_t send_stride = facts->send_blocks ? bytes : 0, recv_stride = facts->recv_blocks ? bytes : 0;
    uint64_t own = (uint64_t)context->rank;
    int32_t rank = context->rank, ranks = (int32_t)context->layout->ranks;
    ncclResult_t rc = ncclSuccess;

    if (has_block(task, rank, rank))
        rc = rondo_plan_copy(task, (const char *)task->send + own * send_stride,
                             (char *)task->recv + own * recv_stride, bytes, draft);
    for (int32_t peer = 0; peer < ranks && rc == ncclSuccess; peer++) {
        if (peer != rank && has_block(task, rank, peer))
            rc = add_send(context, task, peer, (uint64_t)peer * send_stride, bytes, draft);
        if (peer != rank && rc == ncclSuccess && has_block(task, peer, rank))
            rc = add_recv(context, task, peer, (uint64_t)peer * recv_stride, bytes, draft);
    }
    return rc;
}

ncclResult_t rondo_plan_pair(const struct rondo_plan_context *context, const struct rondo_task *task,
                             struct rondo_draft *draft)
{
    uint64_t bytes = task->count * rondo_dtype_bytes(task->dtype);

    switch (task->operation) {
    case RONDO_OP_SEND:
        return add_send(context, task, task->root, 0, bytes, draft);
    case RONDO_OP_RECV:
        return add_recv(context, task, task->root, 0, bytes, draft);
    case RONDO_OP_ALL_TO_ALL:
    case RONDO_OP_GATHER:
    case RONDO_OP_SCATTER:
        return plan_blocks(context, task, bytes, draft);
    default:
        return rondo_fail(ncclInternalError, "plan %s on rank %d: it is not made of messages",
                          rondo_operation_name(task->operation), context->rank);
    }
}

/* The next send or receive of the rank with itself from index on; count: none. */
static size_t next_self(const struct rondo_task *tasks, size_t count, size_t index,
                        enum rondo_operation operation, int32_t rank)
{
    while (index < count && !(tasks[index].operation == operation && tasks[index].root == rank))
        index++;
    return index;
}

static size_t count_self(const struct rondo_task *tasks, size_t count, enum rondo_operation operation,
                         int32_t rank)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += tasks[i].operation == operation && tasks[i].root == rank;
    return found;
}

ncclResult_t rondo_plan_self(const struct rondo_plan_context *context, const struct rondo_task *tasks,
                             size_t count, struct rondo_draft *draft)
{
    int32_t rank = context->rank;
    size_t sends = count_self(tasks, count, RONDO_OP_SEND, rank),
           receives = count_self(tasks, count, RONDO_OP_RECV, rank);
    size_t send = 0, receive = 0;
    ncclResult_t rc = ncclSuccess;

    if (sends != receives)
        return rondo_fail(
            ncclInvalidUsage,
            "rank %d sends to itself %zu time(s) but receives from itself %zu time(s) in one group; "
            "both must be in the same group",
            rank, sends, receives);
    for (size_t i = 0; i < sends && rc == ncclSuccess; i++, send++, receive++) {
        uint64_t sent, received;

        send = next_self(tasks, count, send, RONDO_OP_SEND, rank);
        receive = next_self(tasks, count, receive, RONDO_OP_RECV, rank);
        sent = tasks[send].count * rondo_dtype_bytes(tasks[send].dtype);
        received = tasks[receive].count * rondo_dtype_bytes(tasks[receive].dtype);
        if (sent != received)
            return rondo_fail(
                ncclInvalidUsage,
                "send %zu of rank %d to itself is of %llu bytes, the matching receive of %llu: in a "
                "group they match in the order of the calls; give both the same bytes",
                i + 1, rank, (unsigned long long)sent, (unsigned long long)received);
        rc = rondo_plan_copy(&tasks[send], tasks[send].send, tasks[receive].recv, sent, draft);
    }
    return rc;
}
