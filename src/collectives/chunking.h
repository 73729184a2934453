/*
 * chunking.h - how an operation is cut: into ranges, one a channel, and each range into chunks, one a slot.
 *
 * All of it depends on the operation and the agreed layout alone, never on the rank, so both ends of every
 * connection count the same slots.
 */
#ifndef RONDO_COLLECTIVES_CHUNKING_H
#define RONDO_COLLECTIVES_CHUNKING_H

#include "device/schedule.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Choices, not measured; they change speed alone. RONDO_CHANNEL_BYTES only counts when a communicator has
 * more than one channel (NCCL_MIN_CTAS): less brings channels to smaller messages, each with its own
 * hand-overs. */

/* A channel is worth its synchronisation from this many bytes on. */
#define RONDO_CHANNEL_BYTES (1024u * 1024u)

/* Below this a chunk costs more in handing over than it gains in overlap. */
#define RONDO_PIPELINE_BYTES (16u * 1024u)

/* bytes / RONDO_CHANNEL_BYTES, at least 1, at most channels. */
uint32_t rondo_chunking_channels(uint64_t bytes, uint32_t channels);

/* Part `index` of `parts` of count elements: equal, cut at multiples of 128 bytes; the last ones may be short
 * or empty. */
struct rondo_part rondo_chunking_range(uint64_t count, uint64_t element_bytes, uint32_t parts,
                                       uint32_t index);

/* For operations that keep all ranks busy with a block each: the largest chunk that fits a slot, made smaller
 * so that all chunks of a block of count elements are about equal. A multiple of 16 bytes, at least one. */
uint64_t rondo_chunking_even(uint64_t count, uint64_t element_bytes, uint64_t wire_bytes,
                             uint64_t slot_bytes);

/* For operations that pass everything along a line of ranks: about two chunks a rank, so that all ranks are
 * busy at once, within RONDO_PIPELINE_BYTES and a slot. `total` is what the line carries, `count` what is
 * cut. */
uint64_t rondo_chunking_pipeline(uint64_t total, uint64_t count, uint64_t ranks, uint64_t element_bytes,
                                 uint64_t wire_bytes, uint64_t slot_bytes);

/* Bytes a slot of one message: the whole when it is small; else about a quarter, within RONDO_PIPELINE_BYTES
 * and a slot. */
uint64_t rondo_chunking_message(uint64_t bytes, uint64_t slot_bytes);

#ifdef __cplusplus
}
#endif
#endif
