/*
 * socket.h - TCP connections.
 *
 * No call waits: waiting is the caller's event loop's. All descriptors are close-on-exec and non-blocking.
 */
#ifndef RONDO_BASE_SOCKET_H
#define RONDO_BASE_SOCKET_H

#include "base/address.h"

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Listen on address (port 0: any); *address_out is what was bound. The caller owns *fd_out.
 * ncclSystemError names address and errno ("port in use ..."). */
ncclResult_t rondo_socket_listen(const union rondo_address *address, int backlog, int *fd_out,
                                 union rondo_address *address_out);

/* The two halves of a connect. Begin one: *fd_out is the caller's from then on, and *error_out is the errno
 * value of an answer that came at once, else 0. When poll reports it writable or failed, ask how it ended:
 * 0 or an errno value. A socket that failed at once is reported by poll too. */
ncclResult_t rondo_socket_connect_start(const union rondo_address *address, int *fd_out, int *error_out);
int rondo_socket_connect_finish(int fd);

/* Accept one connection of a listener. ncclInProgress: nobody waits. ncclSystemError: no descriptor is
 * left. */
ncclResult_t rondo_socket_accept(int listener, int *fd_out, union rondo_address *address_out);

#ifdef __cplusplus
}
#endif
#endif
