/* api_collective.c - the entry points that communicate. */
#include "api.h"
#include "enqueue.h"

ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclAllReduce",
                                              .operation = RONDO_OP_ALL_REDUCE,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .op = op,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclAllReduce);

ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclAllGather",
                                              .operation = RONDO_OP_ALL_GATHER,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = sendcount,
                                              .dtype = datatype,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclAllGather);

ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclReduceScatter",
                                              .operation = RONDO_OP_REDUCE_SCATTER,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = recvcount,
                                              .dtype = datatype,
                                              .op = op,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclReduceScatter);

ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                            int root, ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclBroadcast",
                                              .operation = RONDO_OP_BROADCAST,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .root = root,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclBroadcast);

ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclBcast",
                                              .operation = RONDO_OP_BROADCAST,
                                              .send = buff,
                                              .recv = buff,
                                              .count = count,
                                              .dtype = datatype,
                                              .root = root,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclBcast);

ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclReduce",
                                              .operation = RONDO_OP_REDUCE,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .op = op,
                                              .root = root,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclReduce);

ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclAlltoAll",
                                              .operation = RONDO_OP_ALL_TO_ALL,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclAlltoAll);

ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                         int root, ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclGather",
                                              .operation = RONDO_OP_GATHER,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .root = root,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclGather);

ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                          int root, ncclComm_t comm, cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclScatter",
                                              .operation = RONDO_OP_SCATTER,
                                              .send = sendbuff,
                                              .recv = recvbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .root = root,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclScatter);

ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclSend",
                                              .operation = RONDO_OP_SEND,
                                              .send = sendbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .root = peer,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclSend);

ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream)
{
    return rondo_enqueue(&(struct rondo_call){.function = "ncclRecv",
                                              .operation = RONDO_OP_RECV,
                                              .recv = recvbuff,
                                              .count = count,
                                              .dtype = datatype,
                                              .root = peer,
                                              .comm = comm,
                                              .stream = stream});
}
RONDO_TWIN(ncclRecv);
