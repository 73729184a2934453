/*
 * rings.h - the order of the ranks on each ring. For now from what ranks say of themselves: host and device.
 */
#ifndef RONDO_TOPOLOGY_RINGS_H
#define RONDO_TOPOLOGY_RINGS_H

#include "nccl.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_place {
    uint64_t host;    /* ranks with equal values share a host */
    uint64_t process; /* ranks with equal values share a process */
};

/* Fill order[channels][ranks] so that each ring visits a host once, in order of its lowest rank, and a
 * process once within its host; the same on every rank. Within those bounds ascending by rank, so that one
 * process's ring is 0, 1, .. n-1. Pure. Equal places for all give the ascending ring, which chains
 * (RONDO_DETERMINISTIC) need. */
void rondo_rings_build(const struct rondo_place *places, int ranks, int channels, int32_t *order);

#ifdef __cplusplus
}
#endif

#endif
