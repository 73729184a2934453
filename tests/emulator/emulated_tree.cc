// A rank's neighbours in a tree on the emulator, and the same for the CPU device's kernels.
#include "../kernels/wired_world.h"
#include "emulated_world.h"

#include <cstring>

namespace emulator
{

std::vector<rondo_place> Communicator::Places() const
{
    std::vector<rondo_place> places(shape_.ranks);

    for (unsigned rank = 0; rank < shape_.ranks; rank++)
        places[rank].host = shape_.hosts > 0 ? rank % shape_.hosts : 0;
    return places;
}

rondo_tree_node Communicator::NodeOf(unsigned rank, unsigned channel) const
{
    rondo_tree_node node;

    rondo_tree_build(Places().data(), static_cast<int>(shape_.ranks), static_cast<int>(rank),
                     static_cast<int>(channel % RONDO_TREES), &node);
    return node;
}

namespace
{

// -1: nobody.
int PeerAt(const rondo_tree_node &node, unsigned port)
{
    return port == RONDO_TREE_PARENT ? node.parent : node.child[port - RONDO_TREE_CHILD];
}

} // namespace

rondo_peer_ends *Communicator::TreeOf(void *owner, uint32_t, rondo_protocol)
{
    const Owner &o = *static_cast<Owner *>(owner);
    Memory &memory = o.self->machine_.memory();
    rondo_peer_ends *&ports = o.self->trees_[{o.rank, o.channel}];
    rondo_tree_node node = o.self->NodeOf(o.rank, o.channel);
    int key = kTree + static_cast<int>(o.channel);

    if (ports)
        return ports;
    ports = static_cast<rondo_peer_ends *>(memory.Allocate("neighbours of rank " + std::to_string(o.rank) +
                                                               ", channel " + std::to_string(o.channel),
                                                           RONDO_TREE_PORTS * sizeof(rondo_peer_ends), true));
    for (unsigned port = 0; port < RONDO_TREE_PORTS; port++) {
        rondo_peer_ends value{};
        int peer = PeerAt(node, port);
        if (peer >= 0) {
            value.from = o.self->Connect(static_cast<unsigned>(peer), o.rank, key).from;
            value.to = o.self->Connect(o.rank, static_cast<unsigned>(peer), key).to;
        }
        std::memcpy(memory.Host(ports + port), &value, sizeof(value));
    }
    return ports;
}

void Communicator::ToCpuTree(::World &cpu, unsigned rank, rondo_work &work)
{
    rondo_tree_node node = NodeOf(rank, work.channel);
    cpu_directs_.emplace_back();
    std::vector<rondo_peer_ends> &ports = cpu_directs_.back().peers;

    for (unsigned port = 0; port < RONDO_TREE_PORTS; port++) {
        rondo_peer_ends value{};
        int peer = PeerAt(node, port);
        if (peer >= 0) {
            value.from = cpu.TreeFrom(rank, static_cast<unsigned>(peer), work.channel);
            value.to = cpu.TreeTo(rank, static_cast<unsigned>(peer), work.channel);
        }
        ports.push_back(value);
    }
    work.peers = ports.data();
}

} // namespace emulator
