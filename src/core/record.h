/*
 * record.h - what ranks say of their operations in their pages, and finding out where they disagree.
 */
#ifndef RONDO_CORE_RECORD_H
#define RONDO_CORE_RECORD_H

#include "comm.h"

/* Say in this rank's page what task is: before its launch, in the order of launches. */
void rondo_record_write(struct ncclComm *comm, const struct rondo_task *task);

/* The record of a collective in somebody's page. false: not enqueued yet, or overwritten since. */
bool rondo_record_read(const struct rondo_rank_page *page, uint64_t number, struct rondo_record *record_out);

/* The record of a send or receive, likewise. */
bool rondo_record_read_pair(const struct rondo_rank_page *page, enum rondo_operation operation, int peer,
                            uint64_t number, struct rondo_record *record_out);

/* "AllReduce(count 4, ncclFloat32, ncclSum)"; returns out. */
#define RONDO_RECORD_TEXT 96
const char *rondo_record_text(const struct rondo_record *record, char out[RONDO_RECORD_TEXT]);

/* Whether all ranks have said what a collective is. */
bool rondo_record_is_complete(const struct ncclComm *comm, uint64_t number);

/* Whether the ranks' records of a collective differ; then text_out names the odd ranks and what each called,
 * and *culprit_out is the first of them. */
bool rondo_record_disagree(const struct ncclComm *comm, uint64_t number, char *text_out, size_t bytes,
                           int *culprit_out);

/* Whether the ranks' histories up to a collective differ, of which no record may be left. */
bool rondo_record_disagree_before(const struct ncclComm *comm, uint64_t number, char *text_out, size_t bytes,
                                  int *culprit_out);

/* As rondo_record_disagree for the number-th message from rank `from` to rank `to`. */
bool rondo_record_disagree_pair(const struct ncclComm *comm, int from, int to, uint64_t number,
                                char *text_out, size_t bytes, int *culprit_out);

#endif
