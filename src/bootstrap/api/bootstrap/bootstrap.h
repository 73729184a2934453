/*
 * bootstrap.h - how the ranks of a new communicator find each other, and a small network between them.
 *
 * A unique id carries the root's address and a 128-bit secret. Every connection of the job starts with a
 * mutual challenge under that secret before a byte is believed. A rank reports to the root, learns the
 * addresses it needs, and from then on talks to its peers alone. With NCCL_COMM_ID the id is the same for all
 * who read that variable and rank 0 starts the root; the secret then comes from RONDO_SECRET_FILE.
 *
 * Threads: one at a time per bootstrap; different ones are independent. Deadlines are in rondo_clock_ns()
 * units. All calls that take one block until what they wait for has come or
 *
 *     ncclTimeout        the deadline has passed; the message names the rank that is waited for
 *     ncclInvalidUsage   *stop of the join has become nonzero: "aborted", within 10 ms
 *     ncclRemoteError    the rank that is waited for went away or has left; in a collective, any rank
 *     ncclInvalidUsage   the bootstrap was made before a fork, and this is the child
 *     ncclSystemError    no memory or descriptor is left
 *
 * After a failure other than of an argument the bootstrap can only be destroyed.
 */
#ifndef RONDO_BOOTSTRAP_H
#define RONDO_BOOTSTRAP_H

#include "nccl.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_bootstrap;

/* For a rank that cannot start to reach the root, which with a fixed id may not be there yet, and whose
 * process may be held up. A choice, not measured: the others are told more surely the longer it is, and
 * where nobody answers the caller gets its error later. */
#define RONDO_NOTICE_NS UINT64_C(20000000000)

/* For a root in this process to tell the others, some of whom may never come. A choice, not measured. */
#define RONDO_SETTLE_NS UINT64_C(2000000000)

/* Open a root and write its id. It is served by the bootstrap's thread, and ends when all ranks have been
 * told about each other, or after RONDO_INIT_TIMEOUT. With NCCL_COMM_ID no root is opened. Does not wait for
 * anybody; thread-safe. ncclInvalidUsage: no usable interface, or RONDO_SECRET_FILE is unsafe or empty.
 * ncclInvalidArgument: NCCL_COMM_ID does not parse. ncclSystemError: no socket, thread, memory or random
 * bytes, or the secret file cannot be read. */
ncclResult_t rondo_bootstrap_create_id(ncclUniqueId *id_out);

/* Join as this rank of `ranks`; returns when all ranks have. *stop nonzero ends this and all later waits
 * early; it is read until destroy, and may be NULL. The caller owns *bootstrap_out.
 *
 * ncclInvalidArgument: the bytes are no id of ours, or ranks is below 1 or above 2^20. ncclInvalidUsage on
 * every rank, with the ranks concerned: two ranks with one number, different `ranks`, different library
 * versions, or a rank out of range, which reports to the root as well, so that the others do not wait for it;
 * on this one: another secret than the root's. ncclTimeout: names the ranks that never came. ncclRemoteError:
 * the root is not there, or a peer went away. ncclSystemError: also, for rank 0 of a fixed id, its port is in
 * use. Any code on every rank: that with which one of them cannot start; the text names it and says why. */
ncclResult_t rondo_bootstrap_join(const ncclUniqueId *id, int rank, int ranks, uint64_t deadline,
                                  const volatile uint32_t *stop, struct rondo_bootstrap **bootstrap_out);

/* This rank cannot start, with code and for that reason, and will not join: tell the root, so that the
 * joins of all others fail with both. Blocks until the root has heard it, which takes no other rank, or
 * cannot be reached, or until the deadline (a fifth of a second at least), or *stop, which may be NULL, is
 * nonzero. Then other ranks find out when their time is up. Records no error of its own. Thread-safe. */
void rondo_bootstrap_excuse(const ncclUniqueId *id, int rank, int ranks, ncclResult_t code,
                            const char *reason, uint64_t deadline, const volatile uint32_t *stop);

/* After a join has failed, or an excuse was made: block while the root of this id is in this process and
 * has not yet told all ranks why, or until the deadline. A process that ends sooner takes the reason with
 * it. Returns at once in all other processes, and when time was up. Thread-safe. */
void rondo_bootstrap_settle(const ncclUniqueId *id, uint64_t deadline);

/* data is [ranks][bytes], this rank's entry filled in; on return all are, on failure its contents are
 * undefined. O(log ranks) rounds. All ranks call it, with the same bytes. ncclInvalidUsage: they differ.
 * ncclInvalidArgument: more than one message (64 MiB) holds of half the ranks. */
ncclResult_t rondo_bootstrap_all_gather(struct rondo_bootstrap *bootstrap, void *data, size_t bytes,
                                        uint64_t deadline);

/* Messages of exactly bytes, matched by (peer, tag) in order. data is the caller's again on return. send
 * copies it and does not wait for the receiver's call, but for room when 16 MiB to that peer are queued.
 * Connections are made at first use. ncclInvalidArgument: no such peer, or more than 64 MiB.
 * ncclInvalidUsage, at the receiver: the message has another size. */
ncclResult_t rondo_bootstrap_send(struct rondo_bootstrap *bootstrap, int peer, uint32_t tag, const void *data,
                                  size_t bytes, uint64_t deadline);
ncclResult_t rondo_bootstrap_recv(struct rondo_bootstrap *bootstrap, int peer, uint32_t tag, void *data,
                                  size_t bytes, uint64_t deadline);

/* Returns when all ranks have called it. */
ncclResult_t rondo_bootstrap_barrier(struct rondo_bootstrap *bootstrap, uint64_t deadline);

/* Tell the peers why this rank goes: what they wait for ends with ncclRemoteError and that reason. A
 * collective that fails does so by itself. Only destroy may follow. Does not block; the reason is copied, 255
 * bytes of it at most. */
void rondo_bootstrap_give_up(struct rondo_bootstrap *bootstrap, const char *reason);

/* Say goodbye to who is left and close all connections. Blocks for what is still queued, 5 s at most, or half
 * a second when a rank has died or this one has given up; not once *stop is set. Takes NULL. */
void rondo_bootstrap_destroy(struct rondo_bootstrap *bootstrap);

#ifdef __cplusplus
}
#endif

#endif
