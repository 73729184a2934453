/*
 * agreement.h - whether the ranks have called the same collectives, also those that nobody waits in.
 *
 * A rank that only sends, or that has nothing to do, sees no peer's fingerprint: its call succeeds whatever
 * the others called. What they called is in their records, and a record carries a hash of all before it.
 */
#ifndef RONDO_CORE_AGREEMENT_H
#define RONDO_CORE_AGREEMENT_H

#include "comm.h"

/* Compare the ranks' histories up to the newest collective that all have called, unless *agreed says that they
 * were equal up to it; then advance *agreed. If they differ, end all with ncclInvalidUsage and what each rank
 * called, and say true. false also while a rank is so far ahead that its record of that collective is
 * overwritten: a later look sees it. Never blocks; any thread that is inside the communicator. */
bool rondo_agreement_look(struct ncclComm *comm, uint64_t *agreed);

#endif
