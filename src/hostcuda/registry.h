/*
 * registry.h - events that are alive, ranges of host memory, and enabled peers: private to libcuda.so.1. The
 * slots of the same names in context.h say how to use them.
 */
#ifndef RONDO_HOSTCUDA_REGISTRY_H
#define RONDO_HOSTCUDA_REGISTRY_H

#include "context.h"

ncclResult_t rondo_registry_event_add(struct rondo_event *event, const struct rondo_event_facts *facts);
bool rondo_registry_event_find(struct rondo_event *event, struct rondo_event_facts *facts_out);
bool rondo_registry_event_take(struct rondo_event *event);

ncclResult_t rondo_registry_range_add(const struct rondo_range *range);
bool rondo_registry_range_find(const void *address, struct rondo_range *range_out);
bool rondo_registry_range_take(const void *base, enum rondo_range_kind kind, struct rondo_range *range_out);

/* Forget all that belongs to a device, one piece a call, until false: an event to destroy (*event_out) or a
 * range. */
bool rondo_registry_event_take_any(int device, struct rondo_event **event_out);
bool rondo_registry_range_take_any(int device, struct rondo_range *range_out);

bool rondo_registry_peer_set(int device, int peer, bool is_enabled);
void rondo_registry_peers_clear(int device);

#endif
