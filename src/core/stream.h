/*
 * stream.h - on which stream a batch runs, and what has to wait for what.
 *
 * A batch runs on the first stream its calls named. The other ones it named wait for it, and it waits for
 * them, so that it is as if it had been posted on each. Operations of one communicator keep their order
 * whatever streams they name. Where calls are complete when they return there is nothing to order.
 */
#ifndef RONDO_CORE_STREAM_H
#define RONDO_CORE_STREAM_H

#include "group.h"

/* Whether the communicator can run on the stream, which function was given.
 * ncclInvalidArgument: it is no stream, or one of another device. */
ncclResult_t rondo_stream_check(const struct ncclComm *comm, void *stream, const char *function);

/* Choose batch->stream of all batches and queue their waits. On failure nothing has been launched.
 * ncclInvalidUsage: a stream is being captured into a graph. */
ncclResult_t rondo_stream_join(struct rondo_batch *batches, size_t count);

/* After the launches: let the other streams wait for them. */
ncclResult_t rondo_stream_fork(struct rondo_batch *batches, size_t count);

/* Destroy a communicator's private stream and its event; it runs nothing any more. */
void rondo_stream_release(struct ncclComm *comm);

#endif
