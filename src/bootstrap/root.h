/*
 * root.h - where the ranks of a job first meet.
 *
 * Every rank reports to the root who it is and where it listens. When all have, the root tells each the few
 * addresses it needs, and ends. When they do not fit together, or some do not come, or one goes away or
 * reports that it cannot start, it tells all that came, and for a while those who come, what is wrong. A root
 * is a source of the loop; it belongs to nobody and frees itself.
 */
#ifndef RONDO_BOOTSTRAP_ROOT_H
#define RONDO_BOOTSTRAP_ROOT_H

#include "challenge.h"
#include "id.h"

#include "base/address.h"

#include <stdbool.h>
#include <stdint.h>

#define RONDO_RANKS_MOST (1 << 20)
#define RONDO_ROUNDS_MOST 20 /* of a dissemination among that many */

#define RONDO_REASON_MOST 800 /* bytes of why a rank cannot start, or gave up, in its words */

/* Payload of RONDO_FRAME_REPORT, followed by `bytes` bytes, at most RONDO_REASON_MOST: with a code other
 * than ncclSuccess the rank cannot start, and they are the text that says why, without terminating zero.
 * The first three words stay where they are in every version. */
struct rondo_report {
    uint32_t version; /* of the library */
    int32_t rank, ranks;
    uint32_t
        patience_ms; /* how long this rank will wait for the answer; UINT32_MAX: as long as the root will */
    union rondo_address listener; /* of a rank that cannot start: its end of this connection */
    int32_t code;
    uint32_t bytes;
};

/* Payload of RONDO_FRAME_ANSWER, followed by `bytes` bytes: the addresses of ranks rank - 1, rank - 2, rank -
 * 4, ... (as many as a dissemination has rounds) with code ncclSuccess, and a text without terminating zero
 * otherwise. */
struct rondo_answer {
    int32_t code;
    uint32_t bytes;
    unsigned char session[RONDO_SESSION_BYTES];
};

/* Rounds of a dissemination among ranks: the least r with 2^r >= ranks. Pure. */
int rondo_rounds(int ranks);

/* Write ranks whose flag is zero as "3", "1-2,5" or "none"; returns how many there are. Cut with "..." when
 * it does not fit. Pure. */
int rondo_ranks_missing(const unsigned char *is_there, int ranks, char *out, size_t bytes);

/* Take the head of a frame's payload; false: that is no report. Pure. */
bool rondo_report_read(const void *data, size_t bytes, struct rondo_report *report_out);

/* Whether a report makes sense, and with the first of all (NULL: there is none yet); if not, text says
 * why. Pure. */
bool rondo_reports_agree(const struct rondo_report *report, const struct rondo_report *first, char *text,
                         size_t bytes);

/* Open a root at address (port 0: any) and let it run. Takes the loop's lock. *address_out is what it is
 * bound to. */
ncclResult_t rondo_root_start(const union rondo_address *address, const struct rondo_secret *secret,
                              bool is_fixed, union rondo_address *address_out);

/* Rank 0 of a fixed id will not join after all: the root at that address, if one of this process waits there,
 * tells the ranks that came and ends. Takes the loop's lock. */
void rondo_root_give_up(const union rondo_address *address);

/* A rank of this process cannot start: tell the root at that address if it is in this process too, which
 * takes no connection. false: it is not. reason is report->bytes long. Takes the loop's lock. */
bool rondo_root_hear(const union rondo_address *address, const struct rondo_report *report,
                     const char *reason);

/* Whether the root at that address is this process's, and has failed when it could not accept all
 * connections: then it may never take ours, and this is its answer. *text_out is the root's. The loop's
 * lock is held. */
bool rondo_root_has_starved(const union rondo_address *address, ncclResult_t *code_out,
                            const char **text_out);

/* Whether the root at that address is this process's, and stays to tell ranks of a failure other than that
 * their time is up. Takes the loop's lock. */
bool rondo_root_has_news(const union rondo_address *address);

#endif
