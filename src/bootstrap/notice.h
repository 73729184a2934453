/* notice.h - telling the root that this rank cannot start. */
#ifndef RONDO_BOOTSTRAP_NOTICE_H
#define RONDO_BOOTSTRAP_NOTICE_H

#include "id.h"

#include "nccl.h"

#include <stdint.h>

/* Report to the root of id that rank failed with code, and why; the root then fails for all. Needs one
 * descriptor or one thread, and no memory: any of these may be what the rank lacks. Blocks until the root has
 * taken it, is known to be gone, or until the deadline (an attempt that has begun gets a fifth of a second
 * all the same), or *stop (may be NULL) is nonzero. Not with the loop's lock held, nor on its thread; else
 * thread-safe. */
void rondo_notice_send(const struct rondo_id *id, int rank, int ranks, ncclResult_t code, const char *reason,
                       uint64_t deadline, const volatile uint32_t *stop);

#endif
