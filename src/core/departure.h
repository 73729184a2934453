/*
 * departure.h - ranks that have left while this one waits.
 */
#ifndef RONDO_CORE_DEPARTURE_H
#define RONDO_CORE_DEPARTURE_H

#include "waits.h"

/* If a rank that this wait needs has closed, aborted or exited without its part, end all with
 * ncclRemoteError and say true, but only a second after the first look of this wait that saw it gone
 * (comm->look.gone_since): what it sent last may have come while this rank's threads did not run. Of several
 * the first that was seen gone is named. True too, with the communicator's error as it is, when it has been
 * ended meanwhile. Never blocks; for the watch thread. */
bool rondo_departure_look(struct ncclComm *comm, const struct rondo_wait *wait, uint64_t now);

#endif
