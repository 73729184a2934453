/* enqueue.c - from an API call that communicates to a task of the thread's group: checking its arguments. */
#include "enqueue.h"

#include "comm.h"
#include "group.h"
#include "redop.h"
#include "roster.h"
#include "stream.h"

#include "base/error.h"
#include "collectives/operation.h"
#include "device/types.h"

/* Whether this rank is one of a buffer's users. */
static bool is_user(enum rondo_users users, bool is_root)
{
    return users == RONDO_USERS_ALL || (users == RONDO_USERS_ROOT && is_root);
}

static ncclResult_t check_buffers(const struct rondo_call *call, const struct ncclComm *comm)
{
    const struct rondo_facts *facts = rondo_operation_facts(call->operation);
    size_t bytes = rondo_dtype_bytes(call->dtype);
    size_t blocks = facts->send_blocks || facts->recv_blocks ? (size_t)comm->ranks : 1;
    bool is_root = call->root == comm->rank;

    if (call->count > SIZE_MAX / 2 / bytes / blocks)
        return rondo_fail(ncclInvalidArgument,
                          "%s: %zu elements of %s, times %zu, are more than memory has addresses",
                          call->function, call->count, rondo_dtype_name(call->dtype), blocks);
    if (call->count == 0)
        return ncclSuccess;
    if (!call->send && is_user(facts->send, is_root))
        return rondo_fail(ncclInvalidArgument, "%s: %s is NULL, with a count of %zu, on rank %d",
                          call->function,
                          call->recv || facts->recv != RONDO_USERS_ALL ? "sendbuff" : "the buffer",
                          call->count, comm->rank);
    if (!call->recv && is_user(facts->recv, is_root))
        return rondo_fail(ncclInvalidArgument, "%s: recvbuff is NULL, with a count of %zu, on rank %d",
                          call->function, call->count, comm->rank);
    return ncclSuccess;
}

/* Bytes that one of the call's buffers has. */
static size_t bytes_of(const struct rondo_call *call, const struct ncclComm *comm, bool has_blocks)
{
    return call->count * rondo_dtype_bytes(call->dtype) * (has_blocks ? (size_t)comm->ranks : 1);
}

/* Memory that the device knows must hold all of the buffer: past its end there is somebody else's, or a fault
 * in the middle of a kernel. Of other memory only the program knows how much there is. */
static ncclResult_t check_allocation(const struct rondo_call *call, const struct ncclComm *comm,
                                     const char *buffer, const void *pointer, size_t bytes)
{
    struct rondo_pointer_info info;
    ncclResult_t rc = comm->ops->query_pointer(pointer, &info);

    if (rc != ncclSuccess || info.kind == RONDO_MEMORY_UNKNOWN)
        return rc;
    if (info.kind == RONDO_MEMORY_VACANT)
        return rondo_fail(ncclInvalidArgument,
                          "%s: on rank %d %s is %p, where nothing is allocated on device %d; was it freed?",
                          call->function, comm->rank, buffer, pointer, info.device);
    size_t left = (size_t)((const char *)info.base + info.bytes - (const char *)pointer);
    if (bytes <= left)
        return ncclSuccess;
    return rondo_fail(
        ncclInvalidArgument,
        "%s: on rank %d %s is %p, with %zu elements of %s it takes %zu bytes, but the allocation "
        "it lies in (%zu bytes at %p) has %zu bytes left from there on",
        call->function, comm->rank, buffer, pointer, call->count, rondo_dtype_name(call->dtype), bytes,
        info.bytes, info.base, left);
}

/* A factor on the device was only an address when its operation was made. */
static ncclResult_t check_scalar(const struct rondo_call *call, const struct ncclComm *comm,
                                 const struct rondo_task *task)
{
    struct rondo_call element = *call;

    if (!(task->flags & RONDO_WORK_SCALAR_POINTER))
        return ncclSuccess;
    element.count = 1;
    return check_allocation(&element, comm, "the reduction's scalar", (const void *)(uintptr_t)task->scalar,
                            rondo_dtype_bytes(call->dtype));
}

static ncclResult_t check_allocations(const struct rondo_call *call, const struct ncclComm *comm)
{
    const struct rondo_facts *facts = rondo_operation_facts(call->operation);
    bool is_root = call->root == comm->rank, is_one = call->send == call->recv;
    ncclResult_t rc = ncclSuccess;

    if (is_user(facts->send, is_root))
        rc = check_allocation(call, comm, is_one ? "the buffer" : "sendbuff", call->send,
                              bytes_of(call, comm, facts->send_blocks));
    if (rc == ncclSuccess && is_user(facts->recv, is_root))
        rc = check_allocation(call, comm, is_one ? "the buffer" : "recvbuff", call->recv,
                              bytes_of(call, comm, facts->recv_blocks));
    return rc;
}

/* Buffers that share memory in any other way than the interface's in-place positions would be read after they
 * are written. Both ranges fit the address space: check_buffers has seen to it. */
static ncclResult_t check_overlap(const struct rondo_call *call, const struct ncclComm *comm)
{
    const struct rondo_facts *facts = rondo_operation_facts(call->operation);
    bool is_root = call->root == comm->rank;
    size_t block = call->count * rondo_dtype_bytes(call->dtype), own = (size_t)comm->rank * block;
    uintptr_t send = (uintptr_t)call->send, recv = (uintptr_t)call->recv;
    uintptr_t send_end = send + bytes_of(call, comm, facts->send_blocks);
    uintptr_t recv_end = recv + bytes_of(call, comm, facts->recv_blocks);

    if (!is_user(facts->send, is_root) || !is_user(facts->recv, is_root))
        return ncclSuccess;
    if (send >= recv_end || recv >= send_end)
        return ncclSuccess;
    if (send + (facts->send_blocks ? own : 0) == recv + (facts->recv_blocks ? own : 0))
        return ncclSuccess; /* all-to-all too: perf tests run it so, without looking at what comes out */
    return rondo_fail(
        ncclInvalidArgument,
        "%s: on rank %d sendbuff %p (%zu bytes) and recvbuff %p (%zu bytes) overlap, but not as in-place "
        "buffers of this operation do; use separate buffers",
        call->function, comm->rank, call->send, (size_t)(send_end - send), call->recv,
        (size_t)(recv_end - recv));
}

/* Everything about the call that can be wrong, in the order in which the interface looks. */
static ncclResult_t check_call(const struct rondo_call *call, struct ncclComm *comm,
                               struct rondo_task *task_out)
{
    const struct rondo_facts *facts = rondo_operation_facts(call->operation);
    ncclResult_t rc = rondo_comm_check(comm);

    if (rc != ncclSuccess)
        return rc;
    if (comm->is_finalized)
        return rondo_fail(ncclInvalidArgument, "%s: rank %d's communicator has been finalized",
                          call->function, comm->rank);
    if (rondo_dtype_bytes(call->dtype) == 0)
        return rondo_fail(ncclInvalidArgument, "%s: datatype %d is none; known are 0..%d", call->function,
                          (int)call->dtype, RONDO_DTYPE_NUM - 1);
    struct rondo_task task = {
        .operation = call->operation,
        .dtype = call->dtype,
        .root = call->root,
        .send = call->send,
        .recv = call->recv,
        .count = call->count,
    };
    if (facts->reduces) {
        rc = rondo_redop_apply(comm, call->op, &task);
        if (rc != ncclSuccess)
            return rc;
    }
    rc = check_buffers(call, comm);
    if (rc != ncclSuccess)
        return rc;
    if (facts->root != RONDO_ROOT_NONE && (call->root < 0 || call->root >= comm->ranks))
        return rondo_fail(ncclInvalidArgument, "%s: %s %d is outside 0..%d", call->function,
                          facts->root == RONDO_ROOT_PEER ? "peer" : "root", call->root, comm->ranks - 1);
    if (call->count > 0) {
        rc = check_scalar(call, comm, &task);
        if (rc == ncclSuccess)
            rc = check_allocations(call, comm);
    }
    if (rc == ncclSuccess)
        rc = check_overlap(call, comm);
    if (rc == ncclSuccess)
        rc = rondo_stream_check(comm, call->stream, call->function);
    if (rc != ncclSuccess)
        return rc;
    *task_out = task;
    return ncclSuccess;
}

static ncclResult_t record_call(const struct rondo_call *call)
{
    struct ncclComm *comm;
    struct rondo_task task;
    ncclResult_t rc;

    if (call->comm && rondo_group_has_job(call->comm))
        return rondo_fail(ncclInvalidUsage,
                          "%s: the communicator is only made or destroyed when this group ends; end the "
                          "group first, then communicate",
                          call->function);
    rc = rondo_roster_enter(call->comm, call->function, &comm);
    if (rc != ncclSuccess)
        return rc;
    rc = check_call(call, comm, &task);
    if (rc == ncclSuccess)
        rc = rondo_group_add_task(comm, &task, call->stream);
    rondo_roster_leave(comm);
    return rc;
}

ncclResult_t rondo_enqueue(const struct rondo_call *call)
{
    rondo_group_open();
    return rondo_group_close(record_call(call));
}
