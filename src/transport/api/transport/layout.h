/*
 * layout.h - the sizes that all ranks of a communicator agree on.
 */
#ifndef RONDO_TRANSPORT_LAYOUT_H
#define RONDO_TRANSPORT_LAYOUT_H

#include "transport/connection.h"
#include "transport/peer.h"

#include "nccl.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With them each rank can compute every other's mailbox. */
struct rondo_layout {
    uint32_t ranks;
    uint32_t channels;
    uint64_t ring_slot_bytes; /* multiples of 128 */
    uint64_t pair_slot_bytes;
};

/* Bytes of a slot of the protocols whose words carry flags, flags included: 8 KiB of data for LL, 15 for
 * LL128. A choice, not measured, as is the next: small messages are what these protocols are for. */
#define RONDO_LL_SLOT_BYTES (16u * 1024u)
/* The same where there is a connection for every peer. */
#define RONDO_LL_PEER_SLOT_BYTES (4u * 1024u)

/* Bytes of a slot, a multiple of 128: of a direct collective's simple ones RONDO_OFFER_SLOT_BYTES. Pure. */
uint64_t rondo_layout_slot_bytes(const struct rondo_layout *layout, enum rondo_connection_kind kind,
                                 enum rondo_protocol protocol);

/* A piece of a direct collective (device/pull.h): bytes that go through the bounce area at a time, or that
 * ranks are apart when none do. As much as a ring connection's slots hold, at most RONDO_PIECE_BYTES. A
 * multiple of 128. Pure.
 *
 * With pieces of 512 KiB, 1 and 2 MiB bench_all_reduce 40 took, in the medians of 7 runs in turn on 2 CPUs
 * with other work beside them, 22, 23 and 25 ms for 128 MiB and 170, 156 and 188 us for 2 MiB. */
#define RONDO_PIECE_BYTES (1024u * 1024u)
uint64_t rondo_layout_piece_bytes(const struct rondo_layout *layout);

/* A channel's bounce area: two pieces of an input and two chunks of results, which are half a piece at most,
 * for there are two ranks or more. Pure. */
uint64_t rondo_layout_bounce_bytes(const struct rondo_layout *layout);

/* How many connections of a kind a rank has, each way and for each protocol. Pure. */
uint64_t rondo_layout_connections(const struct rondo_layout *layout, enum rondo_connection_kind kind);

/* What a communicator gets when nobody asks for anything. A ring connection's slots (8) fit in a
 * second-level cache beside the data; a pair connection exists once for every peer, so it is smaller.
 * Untouched slots cost no memory.
 *
 * NCCL_ALGO=Ring NCCL_BUFFSIZE=n bench_all_reduce 10 shows what the size does: 2 ranks on 2 CPUs with 1 MiB
 * of second-level cache each and other work beside them took, for 128 MiB in slots of 32, 64, 128, 256 and
 * 512 KiB, 80, 44, 33, 22 and 20 ms. So more would be faster there, where each hand-over may cost a sleep;
 * 128 KiB is a choice that spares cache and memory of many communicators. The pairs' size is a choice without
 * measurement. */
#define RONDO_RING_SLOT_BYTES (128u * 1024u)
#define RONDO_PAIR_SLOT_BYTES (64u * 1024u)
/* The fibers of one stream share a thread: more channels add no hands. They do keep it from sleeping while
 * one of them waits: NCCL_ALGO=Ring NCCL_MIN_CTAS=n bench_all_reduce 10, n of 1, 2 and 4, took 32, 19 and 14
 * ms for 128 MiB on the machine above. 1 is a choice for the least memory and hand-overs. */
#define RONDO_CHANNELS 1u

#define RONDO_SLOT_BYTES_MIN 1024u
#define RONDO_SLOT_BYTES_MAX (128u * 1024u * 1024u)
/* Two notes each in the rank page; the rest is for point to point: layout.c asserts one. */
#define RONDO_CHANNELS_MAX 32u

/* The sizes for a communicator, from the records of all its ranks, the same on each of them: of what is asked
 * for (peer.slot_bytes and peer.channels, 0: no wish) the smallest, within the bounds above; pair slots never
 * exceed their default. ncclInvalidUsage: versions or settings differ; the message lists the ranks on either
 * side and both values. Pure. */
ncclResult_t rondo_layout_agree(const struct rondo_peer *peers, int ranks, struct rondo_layout *layout_out);

#ifdef __cplusplus
}
#endif

#endif
