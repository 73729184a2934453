/* comm_init.h - making a communicator together with its other ranks. */
#ifndef RONDO_CORE_COMM_INIT_H
#define RONDO_CORE_COMM_INIT_H

#include "comm.h"

/* What to do about several ranks on one device. Theirs may be one NULL stream, and streams that wait for it:
 * an operation of one rank would then wait behind that of another, which waits for it. */
#define RONDO_MULTI_RANK_REMEDY                                                                             \
    "give each rank its own, or set NCCL_MULTI_RANK_GPU_ENABLE=1 to allow it and use non-blocking streams " \
    "(cudaStreamCreateWithFlags with cudaStreamNonBlocking), or operations can wait for each other for ever"

/* Check the arguments, write the handle, and record the init in the thread's group. device: -1 for the
 * thread's current one. On failure *comm_out is NULL, here or at the end of the group. */
ncclResult_t rondo_init_record(const char *function, ncclComm_t *comm_out, int ranks, const ncclUniqueId *id,
                               int rank, const ncclConfig_t *settings, int device);

#endif
