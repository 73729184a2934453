/*
 * fiber.h - a stack of its own that a thread can step into and out of.
 *
 * The CPU device runs every block, and every concurrent role in a block, as a fiber. The switch itself is
 * Boost.Context's; sanitizers are told of every switch.
 *
 * A fiber may be resumed by different threads, one at a time; the caller orders them. Code on a fiber must
 * therefore not keep the address of a thread-local variable across a yield.
 */
#ifndef RONDO_BASE_FIBER_H
#define RONDO_BASE_FIBER_H

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_fiber;

/* Allocate a fiber with a stack of at least stack_bytes above a no-access page. The caller owns *fiber_out.
 * ncclSystemError: no memory or no mapping left. */
ncclResult_t rondo_fiber_create(size_t stack_bytes, struct rondo_fiber **fiber_out);

/* Give an idle fiber its next function. It runs at the first resume. */
void rondo_fiber_prepare(struct rondo_fiber *fiber,
                         void (*function)(struct rondo_fiber *self, void *argument), void *argument);

/* Run the fiber on the calling thread until it yields (false) or its function returns (true; idle again). */
bool rondo_fiber_resume(struct rondo_fiber *fiber);

/* From inside the fiber's function: return control to whoever resumed it. */
void rondo_fiber_yield(struct rondo_fiber *self);

/* Takes NULL. The fiber must be idle or never resumed. */
void rondo_fiber_destroy(struct rondo_fiber *fiber);

#ifdef __cplusplus
}
#endif
#endif
