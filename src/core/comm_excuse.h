/* comm_excuse.h - telling the other ranks that this one cannot start. */
#ifndef RONDO_CORE_COMM_EXCUSE_H
#define RONDO_CORE_COMM_EXCUSE_H

#include "nccl.h"

/* This rank has failed with code, whose text was recorded last, before it could meet the others. Record in
 * the thread's group that they are to be told; the group then ends with code. Yields ncclSuccess, or code
 * when there is no memory for it. */
ncclResult_t rondo_excuse_record(const ncclUniqueId *id, int ranks, int rank, ncclResult_t code);

#endif
