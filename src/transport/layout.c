/* layout.c - the sizes and settings of a communicator, agreed from the records of all its ranks. */
#include "transport/layout.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

#define RANKS_NAMED 8 /* in a message; the rest is counted */
#define LIST_BYTES 160

_Static_assert(2 * RONDO_CHANNELS_MAX < RONDO_NOTES, "point to point has notes beside all channels");

/* Something that must be equal on all ranks, and how to say what it is on one. */
struct field {
    const char *what, *remedy;
    uint64_t (*value)(const struct rondo_peer *peer);
    const char *(*text)(const struct rondo_peer *peer); /* NULL: the number tells */
};

static uint64_t version_of(const struct rondo_peer *peer)
{
    return peer->version;
}

static uint64_t precise_of(const struct rondo_peer *peer)
{
    return peer->settings & RONDO_SETTING_PRECISE ? 1 : 0;
}

static uint64_t deterministic_of(const struct rondo_peer *peer)
{
    return peer->settings & RONDO_SETTING_DETERMINISTIC ? 1 : 0;
}

static uint64_t algorithms_of(const struct rondo_peer *peer)
{
    return peer->algorithms;
}

static uint64_t named_of(const struct rondo_peer *peer)
{
    return peer->named;
}

static const char *algorithms_text_of(const struct rondo_peer *peer)
{
    return peer->algorithms_text;
}

static uint64_t protocols_of(const struct rondo_peer *peer)
{
    return peer->protocols;
}

static const char *protocols_text_of(const struct rondo_peer *peer)
{
    return peer->protocols_text;
}

#define ALIKE "set it alike on all of them"

/* The version first: it says whether the others can be read. */
static const struct field fields[] = {
    {"the library's wire format", "load one version of the library on all of them", version_of, NULL},
    {"RONDO_PRECISE", ALIKE, precise_of, NULL},
    {"RONDO_DETERMINISTIC", ALIKE, deterministic_of, NULL},
    {"NCCL_ALGO", ALIKE, algorithms_of, algorithms_text_of},
    {"NCCL_ALGO", ALIKE, named_of, algorithms_text_of},
    {"NCCL_PROTO", ALIKE, protocols_of, protocols_text_of},
};

/* "rank 3 (hostname)" or "ranks 1, 2, 5 and 9 more": those whose field is as peer's. */
static void list_ranks(const struct rondo_peer *peers, int ranks, const struct field *field, int peer,
                       char text[LIST_BYTES])
{
    uint64_t value = field->value(&peers[peer]);
    int count = 0, first = 0;
    size_t length;

    for (int i = 0; i < ranks; i++) {
        if (field->value(&peers[i]) == value && count++ == 0)
            first = i;
    }
    if (count == 1) {
        snprintf(text, LIST_BYTES, "rank %d (%.31s)", first, peers[first].hostname);
        return;
    }
    length = (size_t)snprintf(text, LIST_BYTES, "ranks");
    for (int i = first, named = 0; i < ranks && named < RANKS_NAMED; i++) {
        if (field->value(&peers[i]) == value)
            length += (size_t)snprintf(text + length, LIST_BYTES - length, "%s %d", named++ ? "," : "", i);
    }
    if (count > RANKS_NAMED)
        snprintf(text + length, LIST_BYTES - length, " and %d more", count - RANKS_NAMED);
}

static void show(const struct field *field, const struct rondo_peer *peer, char text[RONDO_SETTING_TEXT])
{
    const char *words = field->text ? field->text(peer) : "";

    if (!field->text)
        snprintf(text, RONDO_SETTING_TEXT, "%llu", (unsigned long long)field->value(peer));
    else
        snprintf(text, RONDO_SETTING_TEXT, "%.*s", RONDO_SETTING_TEXT - 1, words[0] ? words : "unset");
}

/* Every rank must have rank 0's value. */
static ncclResult_t require_equal(const struct rondo_peer *peers, int ranks, const struct field *field)
{
    char ours[LIST_BYTES], theirs[LIST_BYTES], our_value[RONDO_SETTING_TEXT], their_value[RONDO_SETTING_TEXT];

    for (int i = 1; i < ranks; i++) {
        if (field->value(&peers[i]) == field->value(&peers[0]))
            continue;
        list_ranks(peers, ranks, field, 0, ours);
        list_ranks(peers, ranks, field, i, theirs);
        show(field, &peers[0], our_value);
        show(field, &peers[i], their_value);
        return rondo_fail(ncclInvalidUsage,
                          "create a communicator of %d ranks: %s is %s on %s but %s on %s; %s", ranks,
                          field->what, our_value, ours, their_value, theirs, field->remedy);
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
        return RONDO_OFFER_SLOT_BYTES;
    return has_peers ? layout->pair_slot_bytes : layout->ring_slot_bytes;
}

uint64_t rondo_layout_piece_bytes(const struct rondo_layout *layout)
{
    uint64_t wanted = RONDO_SLOTS * layout->ring_slot_bytes;

    return wanted < RONDO_PIECE_BYTES ? wanted : RONDO_PIECE_BYTES;
}

uint64_t rondo_layout_bounce_bytes(const struct rondo_layout *layout)
{
    return 3 * rondo_layout_piece_bytes(layout);
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
    uint64_t slot_bytes = 0, channels = 0;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        ncclResult_t rc = require_equal(peers, ranks, &fields[i]);
        if (rc != ncclSuccess)
            return rc;
    }
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
