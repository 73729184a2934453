/*
 * stall.h - looking at a communicator that waits: who is late, who never comes, and what can never finish.
 */
#ifndef RONDO_CORE_STALL_H
#define RONDO_CORE_STALL_H

#include "comm.h"

/* One look of the watch thread, at time now. check_deaths: some peer's process may have ended. Yields in how
 * many nanoseconds it wants to look again, 0 when nothing waits. Never blocks. */
uint64_t rondo_stall_look(struct ncclComm *comm, uint64_t now, bool check_deaths);

#endif
