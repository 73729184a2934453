/*
 * roster.h - which communicators are alive.
 *
 * A handle is looked up before it is dereferenced, so that one that was destroyed, or is no handle at all, is
 * refused. Who has entered a communicator may use its resources until it leaves; who closes one waits for
 * that.
 */
#ifndef RONDO_CORE_ROSTER_H
#define RONDO_CORE_ROSTER_H

#include "comm.h"

/* Refuse to work in a child of fork(): memory, descriptors and threads are the parent's. function is for the
 * message. ncclInvalidUsage in such a child once the parent had made a communicator. */
ncclResult_t rondo_roster_check_process(const char *function);

/* Enter a communicator in state PENDING; the roster takes a reference of its own. */
void rondo_roster_add(struct ncclComm *comm);

/* Use a handle in function. On success leave() must follow.
 * ncclInvalidArgument: NULL, no live communicator, still being made, or being closed. */
ncclResult_t rondo_roster_enter(ncclComm_t handle, const char *function, struct ncclComm **comm_out);
void rondo_roster_leave(struct ncclComm *comm);

/* PENDING to INIT; false: it was aborted before. Ends with ready() or with remove(). */
bool rondo_roster_begin_init(struct ncclComm *comm);
void rondo_roster_ready(struct ncclComm *comm);

/* Whether handle is known and not READY yet. */
bool rondo_roster_is_being_made(ncclComm_t handle);

/* Make an init end soon, if handle is still being made. */
void rondo_roster_stop_init(ncclComm_t handle);

/* Begin to close: from now on calls are refused. The caller gets a reference and must go on with
 * begin_dying() and remove(), or with reopen(). ncclInvalidArgument as enter(). */
ncclResult_t rondo_roster_begin_close(ncclComm_t handle, const char *function, struct ncclComm **comm_out);

/* Give up closing: READY again, for an abort. Drops the caller's reference. */
void rondo_roster_reopen(struct ncclComm *comm);

/* The same for an abort, which may come at any time. *comm_out is NULL, with ncclSuccess, when there is
 * nothing left to do: an init was ended, or another thread that was closing it has been made to finish. One
 * that gave up closing leaves it to this call. */
ncclResult_t rondo_roster_begin_abort(ncclComm_t handle, struct ncclComm **comm_out);

/* Wait until nobody is inside any more. */
void rondo_roster_begin_dying(struct ncclComm *comm);

/* Take it out, wake who waits for that, and drop the roster's reference. */
void rondo_roster_remove(struct ncclComm *comm);

/* Call visit for each communicator that is READY or CLOSING, entered meanwhile. */
void rondo_roster_visit(void (*visit)(struct ncclComm *comm, void *argument), void *argument);

#endif
