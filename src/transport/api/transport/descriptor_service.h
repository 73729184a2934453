/*
 * descriptor_service.h - handing the descriptors of this process's memory to processes that may map it.
 *
 * The service is a listening abstract Unix socket (@rondo-XXXXXXXX, a random name) that gives this
 * process's arena, switchboard, pidfd and life pipe to processes of the same user that know its token. One
 * serves a process; it has no thread of its own. A forked child has no use of it.
 */
#ifndef RONDO_TRANSPORT_DESCRIPTOR_SERVICE_H
#define RONDO_TRANSPORT_DESCRIPTOR_SERVICE_H

#include "nccl.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Open the service, or count one more use of it. *service_out, its name, goes into struct rondo_peer;
 * *fd_out, an epoll set, is the service's own and the same at every start. ncclSystemError: no descriptor,
 * socket or random bytes, or no name was free; nothing is left behind. Thread-safe; does not block. */
ncclResult_t rondo_descriptor_service_start(uint32_t *service_out, int *fd_out);

/* Do all there is to do; the watch thread calls it when *fd_out is readable, and no other call is needed. It
 * never blocks, whatever clients do: one that breaks the rules is dropped, and at most an INFO line says so.
 * Nothing to do when the service is not open. Thread-safe. */
void rondo_descriptor_service_poll(void);

/* Take a use back; the last one closes the service and drops who waits. Thread-safe; does not block. */
void rondo_descriptor_service_stop(void);

#ifdef __cplusplus
}
#endif

#endif
