/*
 * protocol.h - how bytes cross a connection, and the arithmetic of it that both its ends, and who plans for
 * them, must agree on. No I/O, no device.
 *
 * What a new protocol needs:
 *
 *   here                        its row of enum rondo_protocol, window and capacity
 *   device/work.h               what it does with struct rondo_end
 *   device/kernels/             protocol_<name>.cuh: a struct of ends as ends.cuh has it and a tree_node
 *                               (tree.cuh), or a Wire alone for those of flagged.cuh
 *   device/kernels/list.cuh     its cases in move_work and reduce_work, and of direct works in
 *                               move_directly and reduce_directly
 *   transport/layout.c          the bytes of its slots; mailbox.c makes room for them
 *   collectives/choose.c        its word for NCCL_PROTO, where it is preferred, and whether it goes directly
 *   plan_direct.c, comm_peers.c how direct works use it: what is not SIMPLE writes into slots (push.h)
 *   transport/peer.h            RONDO_PEER_VERSION: mailboxes change
 *   base/params.def             the text of NCCL_PROTO, and from that docs/variables.md
 *   tests                       kProtocols in wired_world.h and test_mailbox.cpp, kWays in
 *                               test_emulated_kernels.cc, test_choose.cpp, in test_faults.cc what fits a slot,
 *                               AddOverFlags in scenarios.cc, and the lists of LL and LL128 in test_plan_*.cpp,
 *                               numbers_ways_test.cc and choices_test.cc
 */
#ifndef RONDO_DEVICE_PROTOCOL_H
#define RONDO_DEVICE_PROTOCOL_H

#include "device/schedule.h"

/* See the headers of the same names in device/kernels/. */
enum rondo_protocol {
    RONDO_PROTOCOL_SIMPLE, /* slots and counters */
    RONDO_PROTOCOL_LL,     /* 8-byte words, half of each a flag */
    RONDO_PROTOCOL_LL128,  /* 128-byte lines with an 8-byte flag */
    RONDO_PROTOCOL_NUM
};

/* Slots of a connection. A choice, not measured: more let a sender run further ahead of its receiver, and
 * take more of a cache. */
#define RONDO_SLOTS 8

/* Credit of the protocols with flags comes once in so many steps, at multiples of it: it costs a store to the
 * other side, and words that carry their own flags need none for data. */
#define RONDO_CREDIT_STEPS (RONDO_SLOTS / 2)

/* Bytes of a slot's data that say whose they are, before the payload; SIMPLE has them elsewhere. */
#define RONDO_FLAGGED_HEAD_BYTES 16u

/* A line of LL holds 8 bytes of data in 16, one of LL128 120 in 128. */
#define RONDO_LL_LINE_BYTES 16u
#define RONDO_LL_LINE_DATA 8u
#define RONDO_LL128_LINE_BYTES 128u
#define RONDO_LL128_LINE_DATA 120u

/* Steps that a sender may always be ahead of its receiver, however late credit comes; and by protocol. */
#define RONDO_FLAGGED_WINDOW (RONDO_SLOTS - RONDO_CREDIT_STEPS + 1)

RONDO_PURE uint32_t rondo_protocol_window(enum rondo_protocol protocol)
{
    return protocol == RONDO_PROTOCOL_SIMPLE ? RONDO_SLOTS : RONDO_FLAGGED_WINDOW;
}

/* Payload bytes of a slot of slot_bytes. 0: no room, or no such protocol. */
RONDO_PURE uint64_t rondo_protocol_capacity(enum rondo_protocol protocol, uint64_t slot_bytes)
{
    uint64_t data = 0;

    if (protocol == RONDO_PROTOCOL_SIMPLE)
        return slot_bytes;
    if (protocol == RONDO_PROTOCOL_LL)
        data = slot_bytes / RONDO_LL_LINE_BYTES * RONDO_LL_LINE_DATA;
    else if (protocol == RONDO_PROTOCOL_LL128)
        data = slot_bytes / RONDO_LL128_LINE_BYTES * RONDO_LL128_LINE_DATA;
    return data > RONDO_FLAGGED_HEAD_BYTES ? data - RONDO_FLAGGED_HEAD_BYTES : 0;
}

#endif
