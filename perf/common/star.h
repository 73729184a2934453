/*
 * star.h - how the processes of a run talk apart from NCCL: a star of sockets around rank 0.
 *
 * There is one operation, a gather to all of small records; barriers, broadcasts and reductions are made from
 * it. All processes call it in the same order, one thread of each at a time. Every wait has an end: a process
 * that is gone, one that reports a failure, or RONDO_PERF_TIMEOUT seconds.
 */
#ifndef PERF_STAR_H
#define PERF_STAR_H

#include "processes.h"

#include <stddef.h>

struct perf_rendezvous;

/* Meet the others. Blocks for at most 60 s (RONDO_PERF_TIMEOUT). A run of one process gets an object too. */
enum perf_status perf_rendezvous_open(const struct perf_identity *identity,
                                      struct perf_rendezvous **rendezvous_out);

/* Wait at most so long from now on, unless the environment says less. */
void perf_rendezvous_limit(struct perf_rendezvous *rendezvous, int limit_s);

/* Give bytes from mine, get those of all in order of rank. what names the operation, for messages and to
 * notice processes that do different things. */
enum perf_status perf_rendezvous_exchange(struct perf_rendezvous *rendezvous, const char *what,
                                          const void *mine, size_t bytes, void *all_out);

/* Tell the others, without waiting, that this process has failed; they end with the same status. */
void perf_rendezvous_fail(struct perf_rendezvous *rendezvous, enum perf_status status);

/* Has another process gone or failed? Never blocks, takes nothing off the sockets, and may run in another
 * thread than an exchange. PERF_OK: not that we know; else the status to end with, after a line that says who
 * it was. */
enum perf_status perf_rendezvous_check(struct perf_rendezvous *rendezvous);

/* Takes NULL. */
void perf_rendezvous_close(struct perf_rendezvous *rendezvous);

#endif
