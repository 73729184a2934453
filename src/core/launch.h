/* launch.h - running the operations of a group, all communicators together. */
#ifndef RONDO_CORE_LAUNCH_H
#define RONDO_CORE_LAUNCH_H

#include "group.h"

/* Number, plan and launch each batch. When the device has no streams that the program could wait on, return
 * only when all is done. A failure before the first launch leaves nothing done; a later one is the error of
 * its communicator, on all ranks. */
ncclResult_t rondo_launch_batches(struct rondo_batch *batches, size_t count);

/* Whether the oldest launch of comm waits in its stream behind one of another communicator; then out says so.
 * Any thread. */
bool rondo_launch_behind(const struct ncclComm *comm, char *out, size_t bytes);

#endif
