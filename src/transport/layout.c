/* layout.c - the sizes and settings of a communicator, agreed from the records of all its ranks. */
#include "transport/layout.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

#define RANKS_NAMED 8 /* in a message; the rest is counted */
#define LIST_BYTES 160

_Static_assert(2 * RONDO_CHANNELS_MAX < RONDO_NOTES, "point to point has notes beside all channels");

static uint32_t field_version(const struct rondo_peer *peer)
{
    return peer->version;
}

static uint32_t field_precise(const struct rondo_peer *peer)
{
    return peer->settings & RONDO_SETTING_PRECISE ? 1 : 0;
}

static uint32_t field_deterministic(const struct rondo_peer *peer)
{
    return peer->settings & RONDO_SETTING_DETERMINISTIC ? 1 : 0;
}

/* "rank 3 (hostname)" or "ranks 1, 2, 5 and 9 more": those whose field has the value. */
static void list_ranks(const struct rondo_peer *peers, int ranks,
                       uint32_t (*field)(const struct rondo_peer *), uint32_t value, char text[LIST_BYTES])
{
    int count = 0, first = 0;
    size_t length;

    for (int i = 0; i < ranks; i++) {
        if (field(&peers[i]) == value && count++ == 0)
            first = i;
    }
    if (count == 1) {
        snprintf(text, LIST_BYTES, "rank %d (%.31s)", first, peers[first].hostname);
        return;
    }
    length = (size_t)snprintf(text, LIST_BYTES, "ranks");
    for (int i = first, named = 0; i < ranks && named < RANKS_NAMED; i++) {
        if (field(&peers[i]) == value)
            length += (size_t)snprintf(text + length, LIST_BYTES - length, "%s %d", named++ ? "," : "", i);
    }
    if (count > RANKS_NAMED)
        snprintf(text + length, LIST_BYTES - length, " and %d more", count - RANKS_NAMED);
}

/* Every rank must have rank 0's value. */
static ncclResult_t require_equal(const struct rondo_peer *peers, int ranks,
                                  uint32_t (*field)(const struct rondo_peer *), const char *what,
                                  const char *remedy)
{
    char ours[LIST_BYTES], theirs[LIST_BYTES];

    for (int i = 1; i < ranks; i++) {
        if (field(&peers[i]) == field(&peers[0]))
            continue;
        list_ranks(peers, ranks, field, field(&peers[0]), ours);
        list_ranks(peers, ranks, field, field(&peers[i]), theirs);
        return rondo_fail(ncclInvalidUsage,
                          "create a communicator of %d ranks: %s is %u on %s but %u on %s; %s", ranks, what,
                          field(&peers[0]), ours, field(&peers[i]), theirs, remedy);
    }
    return ncclSuccess;
}

/* The smaller of two wishes; 0 is none. */
static uint64_t smallest(uint64_t so_far, uint64_t wish)
{
    return wish != 0 && (so_far == 0 || wish < so_far) ? wish : so_far;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : value > high ? high : value;
}

uint64_t rondo_layout_slot_bytes(const struct rondo_layout *layout, enum rondo_connection_kind kind,
                                 enum rondo_protocol protocol)
{
    bool has_peers = kind == RONDO_CONNECTION_PAIR || kind == RONDO_CONNECTION_DIRECT;

    if (protocol != RONDO_PROTOCOL_SIMPLE)
        return has_peers ? RONDO_LL_PEER_SLOT_BYTES : RONDO_LL_SLOT_BYTES;
    if (kind == RONDO_CONNECTION_DIRECT)
        return RONDO_DIRECT_SLOT_BYTES;
    return has_peers ? layout->pair_slot_bytes : layout->ring_slot_bytes;
}

uint64_t rondo_layout_connections(const struct rondo_layout *layout, enum rondo_connection_kind kind)
{
    switch (kind) {
    case RONDO_CONNECTION_RING:
    case RONDO_CONNECTION_TREE:
        return (uint64_t)layout->channels * rondo_connection_ports(kind);
    case RONDO_CONNECTION_PAIR:
        return layout->ranks;
    case RONDO_CONNECTION_DIRECT:
        return (uint64_t)layout->channels * layout->ranks;
    default:
        return 0;
    }
}

ncclResult_t rondo_layout_agree(const struct rondo_peer *peers, int ranks, struct rondo_layout *layout_out)
{
    ncclResult_t rc;
    uint64_t slot_bytes = 0, channels = 0;

    rc = require_equal(peers, ranks, field_version, "the library's wire format",
                       "load one version of the library on all of them");
    if (rc != ncclSuccess)
        return rc;
    rc = require_equal(peers, ranks, field_precise, "RONDO_PRECISE", "set it alike on all of them");
    if (rc != ncclSuccess)
        return rc;
    rc = require_equal(peers, ranks, field_deterministic, "RONDO_DETERMINISTIC",
                       "set it alike on all of them");
    if (rc != ncclSuccess)
        return rc;

    for (int i = 0; i < ranks; i++) {
        slot_bytes = smallest(slot_bytes, peers[i].slot_bytes);
        channels = smallest(channels, peers[i].channels);
    }
    if (slot_bytes == 0)
        slot_bytes = RONDO_RING_SLOT_BYTES;
    if (channels == 0)
        channels = RONDO_CHANNELS;
    slot_bytes =
        clamp(slot_bytes, RONDO_SLOT_BYTES_MIN, RONDO_SLOT_BYTES_MAX) / RONDO_LINE_BYTES * RONDO_LINE_BYTES;
    *layout_out = (struct rondo_layout){
        .ranks = (uint32_t)ranks,
        .channels = (uint32_t)clamp(channels, 1, RONDO_CHANNELS_MAX),
        .ring_slot_bytes = slot_bytes,
        .pair_slot_bytes = slot_bytes < RONDO_PAIR_SLOT_BYTES ? slot_bytes : RONDO_PAIR_SLOT_BYTES,
    };
    return ncclSuccess;
}
