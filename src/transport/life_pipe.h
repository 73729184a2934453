/*
 * life_pipe.h - how peers notice that this program is gone although its process is not: exec() replaces it.
 */
#ifndef RONDO_TRANSPORT_LIFE_PIPE_H
#define RONDO_TRANSPORT_LIFE_PIPE_H

#include "nccl.h"

/* A descriptor for a peer, close-on-exec, which the caller closes. It hangs up when this process ends,
 * executes another program, or closes descriptors that it did not open. ncclSystemError: no descriptor is
 * left. Thread-safe; does not block. */
ncclResult_t rondo_life_export(int *fd_out);

#endif
