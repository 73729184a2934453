/* mailbox.c - the arithmetic of mailboxes and their blocks. */
#include "mailbox_blocks.h"

#include "base/error.h"
#include "transport/mailbox.h"

#define CONTROL_BYTES (2u * RONDO_LINE_BYTES + HEADS_BYTES)
#define HEADS_BYTES (RONDO_SLOTS * sizeof(struct rondo_slot_head))
#define SLOTS_ALIGNMENT 4096u

_Static_assert(sizeof(struct rondo_rank_page) % RONDO_LINE_BYTES == 0, "control blocks follow the page");
_Static_assert(HEADS_BYTES % RONDO_LINE_BYTES == 0, "a control block is whole lines");

/* How much of a mailbox comes before the blocks of a kind and protocol; RONDO_CONNECTION_NUM: all of it. */
struct before {
    uint64_t blocks, slot_bytes;
};

static struct before count_before(const struct rondo_layout *layout, unsigned kind, unsigned protocol)
{
    struct before sum = {0, 0};

    for (unsigned u = 0; u < RONDO_CONNECTION_NUM && u <= kind; u++) {
        uint64_t connections = rondo_layout_connections(layout, (enum rondo_connection_kind)u);

        for (unsigned r = 0; r < RONDO_PROTOCOL_NUM && (u < kind || r < protocol); r++) {
            sum.blocks += connections;
            sum.slot_bytes +=
                connections * RONDO_SLOTS *
                rondo_layout_slot_bytes(layout, (enum rondo_connection_kind)u, (enum rondo_protocol)r);
        }
    }
    return sum;
}

static uint64_t slots_start(const struct rondo_layout *layout)
{
    struct before all = count_before(layout, RONDO_CONNECTION_NUM, 0);
    uint64_t end = sizeof(struct rondo_rank_page) + all.blocks * CONTROL_BYTES;

    return (end + SLOTS_ALIGNMENT - 1) / SLOTS_ALIGNMENT * SLOTS_ALIGNMENT;
}

struct rondo_mailbox_block rondo_mailbox_block_at(const struct rondo_layout *layout,
                                                  enum rondo_connection_kind kind,
                                                  enum rondo_protocol protocol, uint64_t index)
{
    struct before before = count_before(layout, kind, protocol);
    uint64_t slot_bytes = rondo_layout_slot_bytes(layout, kind, protocol);
    uint64_t control = sizeof(struct rondo_rank_page) + (before.blocks + index) * CONTROL_BYTES;

    return (struct rondo_mailbox_block){
        .posted = control,
        .consumed = control + RONDO_LINE_BYTES,
        .heads = control + 2 * (uint64_t)RONDO_LINE_BYTES,
        .slots = slots_start(layout) + before.slot_bytes + index * RONDO_SLOTS * slot_bytes,
        .slot_bytes = slot_bytes,
    };
}

uint64_t rondo_mailbox_bounce(const struct rondo_layout *layout, uint32_t channel)
{
    return slots_start(layout) + count_before(layout, RONDO_CONNECTION_NUM, 0).slot_bytes +
           channel * rondo_layout_bounce_bytes(layout);
}

uint64_t rondo_mailbox_bytes(const struct rondo_layout *layout)
{
    return rondo_mailbox_bounce(layout, layout->channels);
}

static uint64_t index_of(const struct rondo_layout *layout, const struct rondo_connection *connection,
                         uint32_t port, uint32_t peer)
{
    switch (connection->kind) {
    case RONDO_CONNECTION_PAIR:
        return peer;
    case RONDO_CONNECTION_DIRECT:
        return (uint64_t)connection->channel * layout->ranks + peer;
    default:
        return (uint64_t)connection->channel * rondo_connection_ports(connection->kind) + port;
    }
}

static bool exists(const struct rondo_layout *layout, const struct rondo_connection *connection)
{
    uint32_t ports = rondo_connection_ports(connection->kind);
    uint32_t channels = connection->kind == RONDO_CONNECTION_PAIR ? 1 : layout->channels;

    return connection->kind < RONDO_CONNECTION_NUM && connection->protocol < RONDO_PROTOCOL_NUM &&
           connection->channel < channels && connection->own_port < ports && connection->far_port < ports &&
           rondo_layout_slot_bytes(layout, connection->kind, connection->protocol) > 0;
}

ncclResult_t rondo_mailbox_connect(unsigned char *own, unsigned char *far, struct rondo_switchboard *board,
                                   const struct rondo_layout *layout, int32_t own_rank, int32_t far_rank,
                                   enum rondo_direction direction, const struct rondo_connection *connection,
                                   struct rondo_end *end_out)
{
    struct rondo_mailbox_block here, there;

    if (own_rank < 0 || far_rank < 0 || (uint32_t)own_rank >= layout->ranks ||
        (uint32_t)far_rank >= layout->ranks || own_rank == far_rank)
        return rondo_fail(ncclInternalError, "connect rank %d with rank %d in a communicator of %u ranks",
                          own_rank, far_rank, layout->ranks);
    if (!exists(layout, connection))
        return rondo_fail(ncclInternalError,
                          "connect rank %d with rank %d: there is no connection of kind %d and protocol %d "
                          "on channel %u of %u, ports %u and %u",
                          own_rank, far_rank, (int)connection->kind, (int)connection->protocol,
                          connection->channel, layout->channels, connection->own_port, connection->far_port);
    here = rondo_mailbox_block_at(layout, connection->kind, connection->protocol,
                                  index_of(layout, connection, connection->own_port, (uint32_t)far_rank));
    there = rondo_mailbox_block_at(layout, connection->kind, connection->protocol,
                                   index_of(layout, connection, connection->far_port, (uint32_t)own_rank));

    /* What the receiver polls and reads is in its mailbox, what the sender polls is in the sender's. */
    unsigned char *receiver = direction == RONDO_SEND ? far : own;
    const struct rondo_mailbox_block *receiving = direction == RONDO_SEND ? &there : &here;
    unsigned char *sender = direction == RONDO_SEND ? own : far;
    const struct rondo_mailbox_block *sending = direction == RONDO_SEND ? &here : &there;

    *end_out = (struct rondo_end){
        .posted = (struct rondo_line *)(receiver + receiving->posted),
        .consumed = (struct rondo_line *)(sender + sending->consumed),
        .heads = (struct rondo_slot_head *)(receiver + receiving->heads),
        .slots = receiver + receiving->slots,
        .slot_bytes = receiving->slot_bytes,
        .peer = board,
        .peer_rank = far_rank,
    };
    return ncclSuccess;
}
