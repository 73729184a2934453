/*
 * memory_limit.h - how much memory a process may use, read below a root so that recorded systems can be read
 * too.
 */
#ifndef RONDO_MEMORY_LIMIT_H
#define RONDO_MEMORY_LIMIT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_memory_limit {
    uint64_t total;     /* least of MemTotal and the limits of the control groups; 0 unknown */
    uint64_t available; /* least of MemAvailable and what the control groups leave; 0 unknown */
};

/* Read root/proc and root/sys; root is "" for this system. Understands control groups v1, v2 and both. */
struct rondo_memory_limit rondo_memory_limit_read(const char *root);

#ifdef __cplusplus
}
#endif
#endif
