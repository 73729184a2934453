/* comm_close.h - ending a communicator: in order, or at once. */
#ifndef RONDO_CORE_COMM_CLOSE_H
#define RONDO_CORE_COMM_CLOSE_H

#include "comm.h"

/* Record a destroy, or a finalize, in the thread's group. NULL is ncclSuccess. */
ncclResult_t rondo_close_record(ncclComm_t handle);
ncclResult_t rondo_finalize_record(ncclComm_t handle);

/* End everything and free, without waiting for peers. NULL is ncclSuccess. */
ncclResult_t rondo_comm_abort(ncclComm_t handle);

/* Give up everything a communicator holds, in whatever state its making or its life has left it. Nobody may
 * be inside. */
void rondo_comm_dismantle(struct ncclComm *comm);

#endif
