/*
 * rank_page.h - what a rank of a communicator shows its peers: whether it must stop, what it is doing, whom
 * it waits for. It lives in device memory that peers on the host map, so that any of them can say who is
 * late.
 *
 * Writers: the owner, except `stop`, which anybody in the communicator may raise once. Readers: everybody,
 * at any time; a reader must expect values in the middle of a change and check `number` twice around a
 * record. Others also write `departed` and, before they raise stop, `verdict`.
 *
 * What pairs with what: the words from `enqueued` on are the host's. Their owner stores them with release, so
 * that who loads one with acquire finds what came before it: of `enqueued` the records (record.c; waits.c and
 * agreement.c look), of `launched`, `finished` and `landed` each other's and what the launch did (launch.c;
 * waits.c looks), of `goodbye` all of them (comm_close.c and roster.c; whoever watches for departures looks),
 * of `beat` what the watch thread noted before (stall.c). `owner` and `blocked` are hints and order nothing.
 * `departed` is released by peers to retire.c and comm_close.c. A record and its number: record.c. A note and
 * its `wait`, and `stop` and what it tells of: the kernels' port, waits.c, comm_error.c.
 */
#ifndef RONDO_DEVICE_RANK_PAGE_H
#define RONDO_DEVICE_RANK_PAGE_H

#include "device/line.h"

#include <stdint.h>

/* Choices, not measured: how many operations a rank may be ahead of another before a mismatch between them is
 * told without its words, and how many lists of a launch can say whom they wait for; both are bytes of a page
 * that every rank has. */
#define RONDO_RECORDS 64
#define RONDO_NOTES 192 /* two roles of 96 blocks */

/* What a rank said about one operation when it was enqueued. number is 0 while the record is written. */
struct rondo_record {
    uint64_t number; /* of the collective in this communicator; send and receive: of this pair and direction;
                        from 1 */
    uint64_t fingerprint; /* what travels with the data */
    uint64_t count;       /* elements */
    uint8_t kind;         /* enum rondo_operation */
    uint8_t dtype;
    uint8_t redop; /* ncclRedOp_t capped at 255 */
    uint8_t unused;
    int32_t root;     /* or peer */
    uint64_t history; /* hash of this and all collectives before: equal where the same has been called */
};

enum rondo_wait_kind { RONDO_WAIT_NONE, RONDO_WAIT_SEND, RONDO_WAIT_RECV };

/* Written by a kernel when a wait does not end at once; cleared when it ends. */
struct rondo_note {
    uint32_t sequence; /* advanced at every wait, so that a watcher sees whether this is still the same one */
    int32_t peer;      /* rank waited for */
    uint64_t number;   /* operation number of the work */
    uint8_t wait;      /* enum rondo_wait_kind: for credit to send to, or for data from, peer */
    uint8_t operation; /* enum rondo_operation */
    uint8_t pad[14];
};

/* stop's value: 0 go on; else code in the low 32 bits (an ncclResult_t, or RONDO_STOP_ABORT) and rank + 1
 * of the culprit, 0 if none, in the high ones. Raised by compare-and-swap from 0, then published like any
 * line. */
#define RONDO_STOP_ABORT 0x100u
#define RONDO_STOP_TEXT 0x80000000u /* in the code: who raised it has written `verdict` */
#define RONDO_STOP_VALUE(code, rank) ((uint64_t)(uint32_t)(code) | ((uint64_t)(uint32_t)((rank) + 1) << 32))

/* How a rank left; goodbye's values. */
enum rondo_goodbye {
    RONDO_GOODBYE_NONE,
    RONDO_GOODBYE_CLOSED, /* finalized or destroyed, all its operations done */
    RONDO_GOODBYE_ABORTED,
    RONDO_GOODBYE_EXITED /* its process ended by exit() and had not closed it */
};

#define RONDO_VERDICT_BYTES 1020

struct rondo_rank_page {
    struct rondo_line stop;
    uint64_t enqueued; /* collectives enqueued so far: the number of the newest */
    uint64_t finished; /* collectives whose launch has ended */
    uint64_t goodbye;  /* enum rondo_goodbye */
    uint64_t owner;    /* thread id of the last API call on this rank, for hints */
    uint64_t launched; /* launches so far, of any operations, */
    uint64_t landed;   /* and how many of them have ended */
    uint64_t beat;     /* advanced by the owner's watch thread at every look: who beats is not stopped */
    uint64_t blocked;  /* thread id while a call on this rank waits for its operations to end, else 0 */
    uint64_t departed; /* peers that will never touch this mailbox again */
    unsigned char pad[56];
    struct rondo_record records[RONDO_RECORDS]; /* collective k at index k % RONDO_RECORDS */
    struct rondo_record pairs[RONDO_RECORDS];   /* the newest sends and receives, in no certain order */
    struct rondo_note notes[RONDO_NOTES];       /* block * 2 + role */
    uint32_t verdict_claim;            /* 0, or 1 once somebody has taken the right to write verdict */
    char verdict[RONDO_VERDICT_BYTES]; /* why stop was raised, a text ended by 0 */
};

#endif
