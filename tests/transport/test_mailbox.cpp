// Where things lie in a mailbox: no overlap, in bounds, aligned; and the two ends of every connection name
// the same bytes.
#include "base/error.h"
#include "mailbox_blocks.h"
#include "transport/mailbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace
{

struct Extent {
    uint64_t first, bytes;
};

const rondo_connection_kind kKinds[] = {RONDO_CONNECTION_RING, RONDO_CONNECTION_TREE, RONDO_CONNECTION_PAIR,
                                        RONDO_CONNECTION_DIRECT};
const rondo_protocol kProtocols[] = {RONDO_PROTOCOL_SIMPLE, RONDO_PROTOCOL_LL, RONDO_PROTOCOL_LL128};

void AddExtents(const rondo_mailbox_block &block, std::vector<Extent> *extents)
{
    extents->push_back({block.posted, RONDO_LINE_BYTES});
    extents->push_back({block.consumed, RONDO_LINE_BYTES});
    extents->push_back({block.heads, RONDO_SLOTS * sizeof(rondo_slot_head)});
    extents->push_back({block.slots, RONDO_SLOTS * block.slot_bytes});
}

std::vector<Extent> AllExtents(const rondo_layout &layout)
{
    std::vector<Extent> extents = {{0, sizeof(rondo_rank_page)}};
    for (rondo_connection_kind kind : kKinds) {
        for (rondo_protocol protocol : kProtocols) {
            for (uint64_t i = 0; i < rondo_layout_connections(&layout, kind); i++)
                AddExtents(rondo_mailbox_block_at(&layout, kind, protocol, i), &extents);
        }
    }
    for (uint32_t channel = 0; channel < layout.channels; channel++)
        extents.push_back({rondo_mailbox_bounce(&layout, channel), rondo_layout_bounce_bytes(&layout)});
    std::sort(extents.begin(), extents.end(),
              [](const Extent &a, const Extent &b) { return a.first < b.first; });
    return extents;
}

TEST(Mailbox, NothingOverlapsAndAllIsAlignedAndInBounds)
{
    for (uint32_t ranks : {1, 2, 3, 8, 17, 64}) {
        for (uint32_t channels : {1, 2, 7, 32}) {
            for (uint64_t ring : {1024u, 1152u, RONDO_RING_SLOT_BYTES, RONDO_SLOT_BYTES_MAX}) {
                for (uint64_t pair : {1152u, RONDO_PAIR_SLOT_BYTES}) {
                    rondo_layout layout = {ranks, channels, ring, pair};
                    std::vector<Extent> extents = AllExtents(layout);
                    for (size_t i = 0; i < extents.size(); i++) {
                        bool is_last = i + 1 == extents.size();
                        ASSERT_EQ(extents[i].first % RONDO_LINE_BYTES, 0u);
                        ASSERT_LE(extents[i].first + extents[i].bytes,
                                  is_last ? rondo_mailbox_bytes(&layout) : extents[i + 1].first);
                    }
                }
            }
        }
    }
}

TEST(Mailbox, LargestLayoutDoesNotOverflow)
{
    rondo_layout layout = {INT32_MAX, RONDO_CHANNELS_MAX, RONDO_SLOT_BYTES_MAX, RONDO_SLOT_BYTES_MAX};
    uint64_t before = 0;
    for (rondo_connection_kind kind : kKinds) {
        for (rondo_protocol protocol : kProtocols) {
            uint64_t last = rondo_layout_connections(&layout, kind) - 1;
            rondo_mailbox_block block = rondo_mailbox_block_at(&layout, kind, protocol, last);
            EXPECT_GT(block.slots, before);
            before = block.slots + RONDO_SLOTS * block.slot_bytes;
        }
    }
    EXPECT_EQ(before, rondo_mailbox_bounce(&layout, 0));
    EXPECT_EQ(rondo_mailbox_bounce(&layout, RONDO_CHANNELS_MAX), rondo_mailbox_bytes(&layout));
}

class Ends : public testing::Test
{
  protected:
    Ends()
    {
        for (uint32_t rank = 0; rank < layout.ranks; rank++)
            boxes.push_back((unsigned char *)((uint64_t)(rank + 1) << 32)); // addresses only, never touched
    }

    rondo_end Connect(int own, int far, rondo_direction direction, const rondo_connection &connection)
    {
        rondo_end end = {};
        EXPECT_EQ(rondo_mailbox_connect(boxes[own], boxes[far], (rondo_switchboard *)(uintptr_t)(far + 1),
                                        &layout, own, far, direction, &connection, &end),
                  ncclSuccess);
        EXPECT_EQ(end.peer_rank, far);
        EXPECT_EQ(end.peer, (rondo_switchboard *)(uintptr_t)(far + 1));
        EXPECT_EQ(end.step, 0u);
        return end;
    }

    // Check both ends of one connection; the lines that are polled are appended.
    void CheckEnds(int sender, int receiver, const rondo_connection &connection,
                   std::vector<const void *> *lines)
    {
        rondo_connection back = connection;
        std::swap(back.own_port, back.far_port);
        rondo_end to = Connect(sender, receiver, RONDO_SEND, connection),
                  from = Connect(receiver, sender, RONDO_RECV, back);
        ASSERT_EQ(to.posted, from.posted);
        ASSERT_EQ(to.consumed, from.consumed);
        ASSERT_EQ(to.heads, from.heads);
        ASSERT_EQ(to.slots, from.slots);
        ASSERT_EQ(to.slot_bytes, rondo_layout_slot_bytes(&layout, connection.kind, connection.protocol));
        ASSERT_EQ(to.slot_bytes, from.slot_bytes);
        ASSERT_TRUE(IsIn(to.posted, receiver));
        ASSERT_TRUE(IsIn(to.consumed, sender));
        ASSERT_TRUE(IsIn(to.heads, receiver));
        ASSERT_TRUE(IsIn(to.slots, receiver));
        ASSERT_TRUE(IsIn(to.slots + RONDO_SLOTS * to.slot_bytes - 1, receiver));
        lines->push_back(to.posted);
        lines->push_back(to.consumed);
    }

    bool IsIn(const void *address, int rank)
    {
        return (unsigned char *)address >= boxes[rank] &&
               (unsigned char *)address < boxes[rank] + rondo_mailbox_bytes(&layout);
    }

    rondo_layout layout = {5, 2, 4096, 2048};
    std::vector<unsigned char *> boxes;
};

void ExpectDistinct(std::vector<const void *> lines)
{
    std::sort(lines.begin(), lines.end());
    EXPECT_EQ(std::adjacent_find(lines.begin(), lines.end()), lines.end());
}

// All of them may be in use at once.
TEST_F(Ends, OfPeersAgreeAndEachThingLivesWithItsPoller)
{
    std::vector<const void *> lines;
    for (rondo_protocol protocol : kProtocols) {
        for (int sender = 0; sender < 5; sender++) {
            for (int receiver = 0; receiver < 5; receiver++) {
                if (sender == receiver)
                    continue;
                CheckEnds(sender, receiver, {RONDO_CONNECTION_PAIR, protocol, 0, 0, 0}, &lines);
                for (uint32_t channel = 0; channel < 2; channel++)
                    CheckEnds(sender, receiver, {RONDO_CONNECTION_DIRECT, protocol, channel, 0, 0}, &lines);
            }
        }
    }
    ExpectDistinct(lines);
}

TEST_F(Ends, OfARingAgreeAndAreDistinct)
{
    std::vector<const void *> lines;
    for (rondo_protocol protocol : kProtocols) {
        for (uint32_t channel = 0; channel < 2; channel++) {
            for (int rank = 0; rank < 5; rank++)
                CheckEnds(rank, (rank + 2) % 5, {RONDO_CONNECTION_RING, protocol, channel, 0, 0}, &lines);
        }
    }
    ExpectDistinct(lines);
}

// Rank 0 is the parent of 1, 2 and 3, and 4 is a child of 3.
TEST_F(Ends, OfATreeAgreeAndAreDistinct)
{
    const struct {
        int parent, child;
        uint32_t port;
    } edges[] = {{0, 1, 1}, {0, 2, 2}, {0, 3, 3}, {3, 4, 1}};
    std::vector<const void *> lines;
    for (rondo_protocol protocol : kProtocols) {
        for (uint32_t channel = 0; channel < 2; channel++) {
            for (const auto &edge : edges) {
                CheckEnds(edge.parent, edge.child,
                          {RONDO_CONNECTION_TREE, protocol, channel, edge.port, RONDO_TREE_PARENT}, &lines);
                CheckEnds(edge.child, edge.parent,
                          {RONDO_CONNECTION_TREE, protocol, channel, RONDO_TREE_PARENT, edge.port}, &lines);
            }
        }
    }
    ExpectDistinct(lines);
}

TEST_F(Ends, WhatDoesNotExistIsRefused)
{
    const rondo_connection ring = {RONDO_CONNECTION_RING, RONDO_PROTOCOL_SIMPLE, 0, 0, 0};
    const rondo_connection none[] = {
        {RONDO_CONNECTION_RING, RONDO_PROTOCOL_SIMPLE, 2, 0, 0},
        {RONDO_CONNECTION_RING, RONDO_PROTOCOL_NUM, 0, 0, 0},
        {RONDO_CONNECTION_NUM, RONDO_PROTOCOL_SIMPLE, 0, 0, 0},
        {RONDO_CONNECTION_RING, RONDO_PROTOCOL_SIMPLE, 0, 1, 0},
        {RONDO_CONNECTION_TREE, RONDO_PROTOCOL_SIMPLE, 0, 4, 0},
        {RONDO_CONNECTION_TREE, RONDO_PROTOCOL_SIMPLE, 0, 0, 4},
        {RONDO_CONNECTION_PAIR, RONDO_PROTOCOL_SIMPLE, 1, 0, 0},
        {RONDO_CONNECTION_DIRECT, RONDO_PROTOCOL_SIMPLE, 2, 0, 0},
    };
    rondo_end end = {};
    auto refused = [&](int own, int far, const rondo_connection &connection) {
        EXPECT_EQ(rondo_mailbox_connect(boxes[0], boxes[1], nullptr, &layout, own, far, RONDO_SEND,
                                        &connection, &end),
                  ncclInternalError);
    };
    for (auto [own, far] : {std::pair{0, 5}, {5, 0}, {-1, 0}, {0, -1}, {2, 2}})
        refused(own, far, ring);
    for (const rondo_connection &connection : none)
        refused(0, 1, connection);
    EXPECT_EQ(end.posted, nullptr);
}

} // namespace
