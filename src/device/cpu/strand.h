/*
 * strand.h - launches as fibers: one strand for each list of works (block x role) that has any.
 *
 * A strand that waits says for which line and target, or flag, and switches back to its driver, which looks
 * at that itself and resumes the strand only when it has arrived or the launch is to stop.
 */
#ifndef RONDO_CPU_STRAND_H
#define RONDO_CPU_STRAND_H

#include "cpu/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Give a launch its strands, with the lock free. On failure it has none and its fault is set: it ends at
 * once, and its owner finds the reason there. */
void rondo_item_start(struct rondo_item *item);

/* Resume once every strand that can go on. Returns whether there was one. */
bool rondo_item_resume(struct rondo_item *item);

/* Whether there is a strand that could go on. */
bool rondo_item_is_ready(const struct rondo_item *item);

/* Enlist on, or take back from, every line that the item's strands wait for. Items that are no launches have
 * none. */
void rondo_item_enlist(const struct rondo_item *item, uint32_t waiter);
void rondo_item_delist(const struct rondo_item *item, uint32_t waiter);

/* Give an ended launch's strands back. Needs the lock. */
void rondo_item_recycle(struct rondo_item *item);

/* Free the strands that no launch has. Needs the lock. */
void rondo_strand_trim(void);

/* Tests: run this instead of the kernel of the instruction set; NULL restores it. */
void rondo_strand_set_kernel(rondo_cpu_kernel kernel);

#ifdef __cplusplus
}
#endif
#endif
