/*
 * shm_cache.h - what this process has mapped of others. An arena is mapped once however many communicators
 * use it, and a process's switchboard and pidfd are held once however many of its arenas are mapped.
 */
#ifndef RONDO_TRANSPORT_SHM_CACHE_H
#define RONDO_TRANSPORT_SHM_CACHE_H

#include "transport/transport.h"

/* The arena with peer's mailbox, mapped if it is not yet. Threads that want the same one wait for the first
 * of them; others are not held up. ncclTimeout, ncclRemoteError, ncclSystemError; the caller puts *reach_out
 * back. */
ncclResult_t rondo_shm_cache_get(const struct rondo_peer *peer, uint64_t deadline,
                                 struct rondo_reach **reach_out);

/* Unmaps at the last put. Takes NULL. */
void rondo_shm_cache_put(struct rondo_reach *reach);

#endif
