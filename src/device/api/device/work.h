/*
 * work.h - what the host hands to a kernel: connections, work descriptors, launch arguments.
 *
 * All of it lives in memory that the host writes and the device reads, and stays unchanged from launch to
 * the end of the kernel, except `struct rondo_end`, which the kernel advances. The layout is meant for GPUs
 * as well as for the CPU device.
 */
#ifndef RONDO_DEVICE_WORK_H
#define RONDO_DEVICE_WORK_H

#include "device/line.h"
#include "device/protocol.h"
#include "device/rank_page.h"

#include <stddef.h>
#include <stdint.h>

/* Operations as users name them, from RONDO_OP_ALL_REDUCE to RONDO_OP_RECV; also in records and
 * fingerprints. */
enum rondo_operation {
    RONDO_OP_NONE,
#define RONDO_OPERATION(id, ...) RONDO_OP_##id,
#include "device/operations.def"
#undef RONDO_OPERATION
    RONDO_OP_NUM
};

/* What a kernel does. */
enum rondo_work_kind {
#define RONDO_WORK(id, ...) RONDO_WORK_##id,
#include "device/works.def"
#undef RONDO_WORK
    RONDO_WORK_NUM
};

/* Written by the sender before the slot is posted. 16 bytes. */
struct rondo_slot_head {
    uint64_t fingerprint; /* of the operation the bytes belong to: what sender and receiver must agree on */
    uint64_t bytes;       /* payload in the slot; 0 is a slot that only synchronises */
};

/*
 * One end of a connection for one protocol. Sender and receiver each own one; they share posted, consumed,
 * heads and slots. Step s uses slot s % RONDO_SLOTS.
 *
 * SIMPLE:
 *     sender                                            receiver
 *     waits   consumed >= s + 1 - RONDO_SLOTS           waits   posted >= s + 1
 *     fills   slot and head                             reads   head and slot
 *     posts   posted = s + 1 (release)                  frees   consumed = s + 1 (release)
 *
 * LL, LL128, where C is RONDO_CREDIT_STEPS:
 *     sender                                            receiver
 *     waits   if C divides s: consumed >= s - C         waits   for flag s + 1 in each of its words
 *     stores  words with flag s + 1                     reads   them, the slot's head first
 *     wakes   who waits at posted (CPU device)          frees   if C divides s + 1: consumed = s + 1
 *
 * With those, posted's value and heads are not used, and slots are all zero before the first step.
 */
struct rondo_end {
    uint64_t step;               /* next step of this end; kept across launches; only the kernel changes it */
    struct rondo_line *posted;   /* lives with the receiver */
    struct rondo_line *consumed; /* lives with the sender */
    struct rondo_slot_head *heads;  /* [RONDO_SLOTS], with the receiver */
    unsigned char *slots;           /* [RONDO_SLOTS][slot_bytes], with the receiver, 128-byte aligned */
    uint64_t slot_bytes;            /* a multiple of 128 */
    struct rondo_switchboard *peer; /* doorbells of the process at the other end (CPU device) */
    int32_t peer_rank;
    uint32_t unused;
};

/* A peer's memory [base, base + bytes), in the peer's own addresses, and where it is mapped here. here NULL:
 * in this process, whose addresses need no translation. */
struct rondo_window {
    uint64_t base, bytes;
    unsigned char *here;
};

/* What a slot of a DIRECT connection holds, simple protocol: "what the slot's head counts lies here, for you
 * to read". The slot's owner may read until it frees the slot, or until a later offer says that it has read.
 */
struct rondo_offer {
    uint64_t address;  /* as the sender has it; anything when the head says 0 bytes */
    uint64_t is_whole; /* 1: the whole input, 0: the piece that is due, or a result */
    uint64_t scalar;   /* what the sender's input enters a reduction with: ranks may have different ones */
};

/* At RONDO_GATE_OFFSET of the first slot of such a connection. The receiver holds it while it reads the
 * sender's memory; a sender that ends before its time takes it for good, so that nobody reads what it no
 * longer owns. */
struct rondo_gate {
    uint32_t is_taken;
    uint32_t is_revoked; /* the sender has ended: what was read meanwhile may be anything */
};

#define RONDO_GATE_OFFSET 64u

/* Bytes of such a slot: an offer, and the gate on a cache line of its own. */
#define RONDO_OFFER_SLOT_BYTES 128u

/* Where a tree's neighbours are attached: the parent, then the children. Three children: one in the own host
 * and two in others. */
#define RONDO_TREE_PARENT 0u
#define RONDO_TREE_CHILD 1u
#define RONDO_TREE_PORTS 4u

/* A peer of a work that has many. Of tree works only the ends are used; a port without neighbour has none. */
struct rondo_peer_ends {
    struct rondo_end *from, *to;
    struct rondo_window window;

    /* The kernel's own: the peer's input, or the piece of it that is due, where it is mapped here. */
    const unsigned char *offered;
    uint64_t is_whole, scalar;
};

/* One input of a reduction of several. */
struct rondo_source {
    const void *at;
    uint64_t scalar; /* as in struct rondo_work, bits alone */
};

enum rondo_work_flags {
    RONDO_WORK_PRECISE = 1, /* partial sums travel in the accumulator's type */
    RONDO_WORK_SCALAR_POINTER =
        2, /* scalar is the address of one element of dtype, read when the work runs */
    RONDO_WORK_BOUNCE_SEND =
        4,                     /* direct kinds: some peer cannot read send where it lies; it goes by bounce */
    RONDO_WORK_BOUNCE_RECV = 8 /* the same of recv */
};

/*
 * One piece of work of one rank on one channel. Counts are elements of dtype. A collective that spans
 * several channels is one work a channel, each with its own range: send, recv and count are of the range;
 * stride is the distance between the blocks of successive ranks (all-gather, reduce-scatter), the whole
 * operation's count.
 */
struct rondo_work {
    uint8_t kind;      /* enum rondo_work_kind */
    uint8_t operation; /* enum rondo_operation, for notes and messages */
    uint8_t dtype;     /* ncclDataType_t */
    uint8_t redop;     /* enum rondo_redop */
    uint8_t flags;     /* enum rondo_work_flags */
    uint8_t protocol;  /* enum rondo_protocol, of from and to */
    uint16_t unused;
    const void *send; /* may be unaligned to anything but never NULL when count > 0 and the kind reads it */
    void *recv;
    uint64_t count;  /* elements of this range (per block for all-gather and reduce-scatter); bytes for send
                        and recv */
    uint64_t stride; /* elements between blocks */
    uint64_t chunk;  /* elements (send and recv: bytes) moved a step at most, > 0; times the wire's bytes <=
                        rondo_protocol_capacity() of the slots; of direct kinds over SIMPLE see device/pull.h;
                        of COPY 0: it has no slots, and kernels cut it as they like */
    uint64_t scalar; /* PREMULSUM: bits of one accumulator value, or an address; SUMDIV: the divisor */
    uint64_t number; /* operation number, for notes */
    uint64_t fingerprint;   /* sent with, and compared to, every slot */
    int32_t root;           /* rank, for rooted collectives */
    uint32_t channel;       /* of rings, trees and direct works */
    struct rondo_end *from; /* receives from here; NULL when the kind does not receive */
    struct rondo_end *to;   /* sends to there; NULL likewise */

    /* Direct kinds, over LL and LL128 all but peers NULL; of tree kinds peers alone; NULL for others. A
     * channel's works share all three. */
    struct rondo_peer_ends *peers; /* [ranks], for the protocol, the rank's own is unused; of trees
                                      [RONDO_TREE_PORTS] */
    struct rondo_source *sources;  /* [ranks]; the kernel's own: what it reads from each rank just now */
    unsigned char *bounce;         /* memory of this rank that all peers can read */
    uint64_t bounce_bytes;
};

/* The works of one block: two lists that run concurrently, each in order. Collectives use list 0 alone, but
 * trees have what goes down in list 1; point to point has its sends in list 0 and its receives in list 1,
 * both ordered by round, so that no cycle of waits can close. */
struct rondo_block {
    uint32_t first[2]; /* index of the list's first work */
    uint32_t works[2]; /* its length */
};

/* The first thing that went wrong in a launch. code is written last, with release, from 0 by
 * compare-and-swap of claim. */
struct rondo_fault {
    uint32_t claim;                       /* 0, or 1 once somebody has taken the right to fill this in */
    uint32_t code;                        /* 0, or the ncclResult_t */
    int32_t peer;                         /* whose data did not fit */
    uint32_t work;                        /* index of the work that noticed */
    uint64_t expected, found;             /* fingerprints */
    uint64_t expected_bytes, found_bytes; /* of the slot */
};

struct rondo_kernel_args {
    int32_t rank;
    int32_t ranks;
    uint32_t blocks;
    uint32_t works;
    const struct rondo_block *block; /* [blocks] */
    const struct rondo_work *work;   /* [works] */
    const int32_t *order;    /* [channels][ranks]: order[c * ranks + i] is the rank at position i of ring c */
    const int32_t *position; /* [channels]: this rank's position in ring c */
    struct rondo_rank_page *page;    /* this rank's own: stop and notes */
    struct rondo_switchboard *board; /* this process's own: to wake its own waiters when stop is raised */
    struct rondo_fault *fault;
};

#endif
