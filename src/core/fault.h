/*
 * fault.h - what a kernel found wrong, told to all ranks in words.
 *
 * The kernel saw that a peer's data belongs to something else. Who is the odd one is in the ranks' records,
 * and the last of them may be a moment late. The error is set before the launch is seen to end, whatever is
 * missing; only its text is provisional then, and the watch thread waits for the records to replace it, for a
 * second at most.
 */
#ifndef RONDO_CORE_FAULT_H
#define RONDO_CORE_FAULT_H

#include "comm.h"

/* Take up plan->fault, whose code is set: the error is set here on return, and on all ranks now or soon.
 * Never blocks. */
void rondo_fault_report(struct ncclComm *comm, const struct rondo_plan *plan);

/* The watch thread's look at what is pending. Yields whether it still is. */
bool rondo_fault_look(struct ncclComm *comm, uint64_t now);

/* Return when nothing is pending. */
void rondo_fault_await(struct ncclComm *comm);

#endif
