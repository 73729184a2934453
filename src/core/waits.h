/*
 * waits.h - who waits for whom, from the notes that kernels leave in the ranks' pages.
 */
#ifndef RONDO_CORE_WAITS_H
#define RONDO_CORE_WAITS_H

#include "comm.h"

/* One note, read. */
struct rondo_wait {
    int peer;
    uint32_t sequence;
    uint64_t number;
    enum rondo_wait_kind kind;
    enum rondo_operation operation;
};

/* The i-th note of a page. false: nobody waits there. Pages of other processes are not trusted: a peer
 * outside the communicator is no wait. */
bool rondo_wait_read(const struct ncclComm *comm, const struct rondo_rank_page *page, int i,
                     struct rondo_wait *wait_out);

/* The first note of a rank's page. false: it waits for nobody. */
bool rondo_wait_first(const struct ncclComm *comm, int rank, struct rondo_wait *wait_out);

/* Whether the end of a wait needs rank: all of a collective, the peer of a send or receive. */
bool rondo_wait_needs(const struct ncclComm *comm, const struct rondo_wait *wait, int rank);

/* Whether rank has called what a wait of this rank needs. */
bool rondo_wait_has_called(const struct ncclComm *comm, const struct rondo_wait *wait, int rank);

/* Hash of all waits of a rank and of how many launches have ended; 0 when it waits for nothing. Two equal
 * ones in a row: nothing has moved. */
uint64_t rondo_wait_signature(const struct ncclComm *comm, int rank);

/* Whether a rank has launches that have not ended. */
bool rondo_wait_is_busy(const struct rondo_rank_page *page);

/* If this rank, whoever it waits for, and so on, all wait for each other alone: a hash of that set and its
 * waits, and members_out[r] says who is in it. 0 otherwise. Such a set can never move again, provided that
 * the notes are current. */
uint64_t rondo_wait_closure(const struct ncclComm *comm, bool *members_out);

/* "0 -> 1 -> 0: rank 0 in Send 1 waits to send to rank 1, ...": a cycle inside such a set. */
void rondo_wait_cycle_text(const struct ncclComm *comm, char *out, size_t bytes);

#endif
