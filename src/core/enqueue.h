/* enqueue.h - from an API call that communicates to a task of the thread's group. */
#ifndef RONDO_CORE_ENQUEUE_H
#define RONDO_CORE_ENQUEUE_H

#include "device/work.h"

#include "nccl.h"

/* The arguments of one call; those it does not have are 0. */
struct rondo_call {
    const char *function; /* "ncclAllReduce" */
    enum rondo_operation operation;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t dtype;
    ncclRedOp_t op;
    int root; /* or peer */
    ncclComm_t comm;
    cudaStream_t stream;
};

/* Check the arguments, in the interface's order, and record the call; outside a group also run it. */
ncclResult_t rondo_enqueue(const struct rondo_call *call);

#endif
