// A communicator without memory or device: what the planner of each rank needs, with ends that only have an
// identity.
#ifndef RONDO_TESTS_PLAN_WORLD_H
#define RONDO_TESTS_PLAN_WORLD_H

#include "base/error.h"
#include "collectives/plan.h"
#include "topology/trees.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

struct PlanDeleter {
    void operator()(rondo_plan *plan) const
    {
        rondo_plan_destroy(plan);
    }
};
using Plan = std::unique_ptr<rondo_plan, PlanDeleter>;

// (sender, receiver, channel): a connection, whichever end. The channel is -1 for point to point, counts on
// from kTreeWires for trees, and from kProtocolWires for each further protocol.
constexpr int kProtocolWires = 1000, kTreeWires = 500;
using Wire = std::tuple<int, int, int>;

class World
{
  public:
    explicit World(int ranks, int channels = 1, uint64_t ring_slot = 4096, uint64_t pair_slot = 2048)
        : order(ranks * channels), owners_(ranks)
    {
        layout = {(uint32_t)ranks, (uint32_t)channels, ring_slot, pair_slot};
        for (int c = 0; c < channels; c++) {
            for (int i = 0; i < ranks; i++)
                order[c * ranks + i] = i;
        }
        for (int rank = 0; rank < ranks; rank++)
            owners_[rank] = {this, rank};
    }

    int ranks() const
    {
        return (int)layout.ranks;
    }

    // Addresses that no two ranks share and that leave room for terabytes.
    static uint64_t SendBase(int rank)
    {
        return (uint64_t)(rank + 1) << 44;
    }
    static uint64_t RecvBase(int rank)
    {
        return SendBase(rank) + ((uint64_t)1 << 43);
    }

    ncclResult_t Build(int rank, const std::vector<rondo_task> &tasks, Plan *plan_out)
    {
        std::vector<int32_t> position(layout.channels);
        for (uint32_t c = 0; c < layout.channels; c++) {
            for (int i = 0; i < ranks(); i++) {
                if (order[c * ranks() + i] == rank)
                    position[c] = i;
            }
        }
        rondo_plan_context context = {};
        context.rank = rank;
        context.layout = &layout;
        context.order = order.data();
        context.position = position.data();
        context.is_precise = is_precise;
        context.is_deterministic = is_deterministic;
        EXPECT_EQ(rondo_choices_parse(algorithms, protocols, &context.choices), ncclSuccess);
        context.max_pair_blocks =
            max_pair_blocks.empty() ? 4 : max_pair_blocks[rank % max_pair_blocks.size()];
        context.end = &World::End;
        context.has_windows = has_windows;
        context.direct_bytes = direct_bytes;
        context.is_mapped = &World::IsMapped;
        context.direct = &World::Direct;
        context.tree_levels = rondo_tree_levels(Places().data(), ranks());
        context.tree = &World::Tree;
        context.owner = &owners_[rank];
        rondo_plan *plan = nullptr;
        ncclResult_t rc = rondo_plan_build(&context, tasks.data(), tasks.size(), &plan);
        plan_out->reset(plan);
        return rc;
    }

    // On so many hosts, dealt round.
    std::vector<rondo_place> Places() const
    {
        std::vector<rondo_place> places((size_t)ranks());
        for (int rank = 0; rank < ranks(); rank++)
            places[(size_t)rank].host = (uint64_t)(rank % hosts);
        return places;
    }

    rondo_tree_node NodeOf(int rank, uint32_t channel) const
    {
        rondo_tree_node node;
        rondo_tree_build(Places().data(), ranks(), rank, (int)(channel % RONDO_TREES), &node);
        return node;
    }

    Wire WireOf(const rondo_end *end) const
    {
        return names_.at(end);
    }

    rondo_layout layout;
    std::vector<int32_t> order;
    // What a work's slots hold.
    uint64_t Capacity(const rondo_work &work) const
    {
        bool is_pair = work.kind == RONDO_WORK_SEND || work.kind == RONDO_WORK_RECV;
        auto protocol = (rondo_protocol)work.protocol;
        return rondo_protocol_capacity(
            protocol, rondo_layout_slot_bytes(
                          &layout, is_pair ? RONDO_CONNECTION_PAIR : RONDO_CONNECTION_RING, protocol));
    }

    const char *algorithms = nullptr, *protocols = nullptr; // NCCL_ALGO, NCCL_PROTO
    bool is_precise = false, is_deterministic = false;
    int hosts = 1;
    std::vector<uint32_t> max_pair_blocks;
    bool has_windows = false;
    uint64_t direct_bytes = UINT64_MAX;
    unsigned unmapped = 0; // bit 2r: rank r's send buffer, bit 2r + 1: its recv
    bool fails_direct = false;
    int fail_end_after = -1; // this many more ends, then NULL

  private:
    struct Owner {
        World *world;
        int rank;
    };

    static rondo_end *End(void *owner, rondo_direction direction, int peer,
                          const rondo_connection *connection)
    {
        auto *self = (Owner *)owner;
        World *world = self->world;
        EXPECT_NE(peer, self->rank);
        EXPECT_TRUE(peer >= 0 && peer < world->ranks());
        bool is_pair = connection->kind == RONDO_CONNECTION_PAIR;
        bool is_tree = connection->kind == RONDO_CONNECTION_TREE;
        EXPECT_TRUE(is_pair || is_tree || connection->kind == RONDO_CONNECTION_RING);
        EXPECT_LT(connection->channel, is_pair ? 1u : world->layout.channels);
        EXPECT_LT(connection->protocol, RONDO_PROTOCOL_NUM);
        int channel = (is_pair ? -1 : (int)connection->channel) + (is_tree ? kTreeWires : 0) +
                      (int)connection->protocol * kProtocolWires;
        if (world->fail_end_after >= 0 && world->fail_end_after-- == 0) {
            rondo_fail(ncclRemoteError, "no way to rank %d", peer);
            return nullptr;
        }
        std::unique_ptr<rondo_end> &slot = world->ends_[{self->rank, (int)direction, peer, channel}];
        if (!slot) {
            slot = std::make_unique<rondo_end>();
            slot->peer_rank = peer;
            world->names_[slot.get()] =
                direction == RONDO_SEND ? Wire{self->rank, peer, channel} : Wire{peer, self->rank, channel};
        }
        return slot.get();
    }

    // Buffers are told by their base.
    static bool IsMapped(void *owner, const void *memory, uint64_t bytes)
    {
        auto *self = (Owner *)owner;
        bool is_recv = (uint64_t)memory >= RecvBase(self->rank);
        EXPECT_EQ((uint64_t)memory, is_recv ? RecvBase(self->rank) : SendBase(self->rank));
        EXPECT_GT(bytes, 0u);
        return !(self->world->unmapped >> (2 * self->rank + is_recv) & 1);
    }

    static const rondo_direct *Direct(void *owner, uint32_t channel, rondo_protocol protocol)
    {
        auto *self = (Owner *)owner;
        EXPECT_LT(channel, self->world->layout.channels);
        if (self->world->fails_direct) {
            rondo_fail(ncclSystemError, "no direct way");
            return nullptr;
        }
        DirectWay &way = self->world->directs_[{self->rank, channel, (int)protocol}];
        way.peers.resize(self->world->layout.ranks);
        way.direct = {way.peers.data(), nullptr, nullptr, 0};
        if (protocol != RONDO_PROTOCOL_SIMPLE)
            return &way.direct;
        way.sources.resize(self->world->layout.ranks);
        way.direct = {way.peers.data(), way.sources.data(), (unsigned char *)(uintptr_t)(channel + 1),
                      rondo_layout_bounce_bytes(&self->world->layout)};
        return &way.direct;
    }

    // Either end of a connection names the other.
    static rondo_peer_ends *Tree(void *owner, uint32_t channel, rondo_protocol protocol)
    {
        auto *self = (Owner *)owner;
        rondo_tree_node node = self->world->NodeOf(self->rank, channel);
        std::vector<rondo_peer_ends> &ports = self->world->trees_[{self->rank, channel, protocol}];
        ports.resize(RONDO_TREE_PORTS);
        for (uint32_t port = 0; port < RONDO_TREE_PORTS; port++) {
            int peer = port == RONDO_TREE_PARENT ? node.parent : node.child[port - RONDO_TREE_CHILD];
            if (peer < 0)
                continue;
            rondo_connection connection = {RONDO_CONNECTION_TREE, protocol, channel, port,
                                           port == RONDO_TREE_PARENT ? RONDO_TREE_CHILD + node.as_child
                                                                     : RONDO_TREE_PARENT};
            ports[port].from = End(owner, RONDO_RECV, peer, &connection);
            ports[port].to = ports[port].from ? End(owner, RONDO_SEND, peer, &connection) : nullptr;
            if (!ports[port].to)
                return nullptr;
        }
        return ports.data();
    }

    struct DirectWay {
        std::vector<rondo_peer_ends> peers;
        std::vector<rondo_source> sources;
        rondo_direct direct;
    };

    std::vector<Owner> owners_;
    std::map<std::tuple<int, uint32_t, int>, DirectWay> directs_;
    std::map<std::tuple<int, uint32_t, rondo_protocol>, std::vector<rondo_peer_ends>> trees_;
    std::map<std::tuple<int, int, int, int>, std::unique_ptr<rondo_end>> ends_;
    std::map<const rondo_end *, Wire> names_;
};

inline rondo_task MakeTask(rondo_operation operation, int rank, uint64_t count,
                           ncclDataType_t dtype = ncclFloat32, int root = 0, uint64_t number = 1)
{
    rondo_task task = {};
    task.operation = operation;
    task.dtype = dtype;
    task.public_redop = ncclSum;
    task.redop = RONDO_REDOP_SUM;
    task.root = root;
    task.send = (const void *)World::SendBase(rank);
    task.recv = (void *)World::RecvBase(rank);
    task.count = count;
    task.number = number;
    return task;
}

#endif
