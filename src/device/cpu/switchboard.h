/*
 * switchboard.h - the doorbells of this process: who has which, ringing them, and sleeping on them.
 */
#ifndef RONDO_CPU_SWITCHBOARD_H
#define RONDO_CPU_SWITCHBOARD_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Make the board at the first call. NULL: it could not be made, the error is recorded. */
struct rondo_switchboard *rondo_switchboard_own(void);

ncclResult_t rondo_switchboard_export(int *fd_out);
ncclResult_t rondo_switchboard_map(int fd, struct rondo_switchboard **board_out);
ncclResult_t rondo_switchboard_unmap(struct rondo_switchboard *board);

/* A bell for the calling thread until it is given back. *waiter_out is what the thread writes into lines.
 * With more threads than bells some share one; who comes second writes RONDO_WAITER_MANY, so that the first
 * one's leave-taking hides nobody. */
uint32_t rondo_doorbell_take(uint32_t *waiter_out);
void rondo_doorbell_give_back(uint32_t bell);

/* Steps 1 and 5 of the protocol in line.h. Between them the caller registers on lines and looks again.
 * prepare yields the sequence to sleep on; done follows however the sleep went, or instead of it. deadline:
 * rondo_clock_ns() units. */
uint32_t rondo_doorbell_prepare(struct rondo_doorbell *bell);
void rondo_doorbell_sleep(struct rondo_doorbell *bell, uint32_t sequence, uint64_t deadline);
void rondo_doorbell_done(struct rondo_doorbell *bell);

/* Step 2: say on a line that a thread will sleep; if another thread is there already: that all are to be
 * rung. */
void rondo_line_enlist(struct rondo_line *line, uint32_t waiter);

/* Take that back. A line that several threads enlisted on stays as it is. */
void rondo_line_delist(struct rondo_line *line, uint32_t waiter);

#ifdef __cplusplus
}
#endif
#endif
