/*
 * watch.h - the one thread a process keeps while it has communicators.
 *
 * It hands this process's memory to peers that ask, notices the end of a peer's process, and looks at
 * communicators that wait (stall.h). It sleeps otherwise: a look a second, more often only while operations
 * wait.
 */
#ifndef RONDO_CORE_WATCH_H
#define RONDO_CORE_WATCH_H

#include "nccl.h"

#include <stdint.h>

/* Counted. The first start makes the thread and opens the descriptor service, whose name is *service_out; the
 * last stop ends and joins it. ncclSystemError: no thread or descriptor. */
ncclResult_t rondo_watch_start(uint32_t *service_out);
void rondo_watch_stop(void);

/* Make it look at once. Any thread, also a kernel's; there must be a communicator. */
void rondo_watch_kick(void);

/* Watch a descriptor that becomes readable or hangs up when a peer is gone; counted, as peers share one. -1
 * is nothing. */
ncclResult_t rondo_watch_add(int death_fd);
void rondo_watch_remove(int death_fd);

#endif
