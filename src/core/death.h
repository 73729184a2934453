/*
 * death.h - peers whose processes have ended, or run another program, without a goodbye.
 */
#ifndef RONDO_CORE_DEATH_H
#define RONDO_CORE_DEATH_H

#include "comm.h"

/* A process that runs beats at least once a second: one that has not for so long does not run. Longer than
 * watch.c's IDLE_NS. */
#define RONDO_SILENCE_NS 1500000000ull

/* One look of the watch thread, at time now; beats have been felt before. has_news: some descriptor says that
 * a peer is gone. Ends the communicator if one is. Yields whether another look is needed soon to be sure. */
bool rondo_death_look(struct ncclComm *comm, uint64_t now, bool has_news);

#endif
