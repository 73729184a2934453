// What direct works of a communicator on the emulator share, and the same for the CPU device's kernels.
#include "../kernels/wired_world.h"
#include "emulated_world.h"

#include <cstring>

namespace emulator
{

void Communicator::FillPlanContext(rondo_plan_context &context, Owner &owner)
{
    context.end = End;
    context.has_windows = shape_.is_direct;
    context.direct_bytes = 0;
    context.is_mapped = IsMapped;
    context.direct = DirectOf;
    context.tree_levels = rondo_tree_levels(Places().data(), static_cast<int>(shape_.ranks));
    context.tree = TreeOf;
    context.owner = &owner;
}

bool Communicator::IsMapped(void *owner, const void *, uint64_t)
{
    const Owner &o = *static_cast<Owner *>(owner);

    return !(o.self->shape_.bounced >> o.rank & 1);
}

// All memory; apart, through a mapping that happens to be at the same addresses.
rondo_window Communicator::Window() const
{
    if (shape_.is_apart)
        return {1, UINT64_MAX - 1, reinterpret_cast<unsigned char *>(1)};
    return {0, UINT64_MAX, nullptr};
}

void Communicator::MakeDirect(unsigned rank, unsigned channel, rondo_direct &direct)
{
    Memory &memory = machine_.memory();
    std::string name = " of rank " + std::to_string(rank) + ", channel " + std::to_string(channel);
    uint64_t bounce_bytes = rondo_layout_bounce_bytes(&layout_);
    auto *peers = static_cast<rondo_peer_ends *>(
        memory.Allocate("peers" + name, shape_.ranks * sizeof(rondo_peer_ends), true));

    for (unsigned peer = 0; peer < shape_.ranks; peer++) {
        rondo_peer_ends value{};
        if (peer != rank) {
            int key = kDirect + static_cast<int>(channel);
            value.from = Connect(peer, rank, key).from;
            value.to = Connect(rank, peer, key).to;
            value.window = Window();
        }
        std::memcpy(memory.Host(peers + peer), &value, sizeof(value));
    }
    direct = {peers, nullptr, nullptr, 0};
    if (shape_.protocol != RONDO_PROTOCOL_SIMPLE)
        return;
    direct.sources =
        static_cast<rondo_source *>(memory.Allocate("sources" + name, shape_.ranks * sizeof(rondo_source)));
    direct.bounce = static_cast<unsigned char *>(memory.Allocate("bounce area" + name, bounce_bytes));
    direct.bounce_bytes = bounce_bytes;
}

// One protocol a communicator.
const rondo_direct *Communicator::DirectOf(void *owner, uint32_t, rondo_protocol)
{
    const Owner &o = *static_cast<Owner *>(owner);
    rondo_direct &direct = o.self->directs_[{o.rank, o.channel}];

    if (!direct.peers)
        o.self->MakeDirect(o.rank, o.channel, direct);
    return &direct;
}

void Communicator::ToCpuDirect(::World &cpu, unsigned rank, rondo_work &work)
{
    cpu_directs_.emplace_back();
    CpuDirect &direct = cpu_directs_.back();

    for (unsigned peer = 0; peer < shape_.ranks; peer++) {
        rondo_peer_ends value{};
        if (peer != rank) {
            value.from = cpu.DirectFrom(rank, peer, work.channel);
            value.to = cpu.DirectTo(rank, peer, work.channel);
            value.window = Window();
        }
        direct.peers.push_back(value);
    }
    direct.sources.resize(shape_.ranks);
    direct.bounce.resize(work.bounce_bytes);
    work.peers = direct.peers.data();
    work.sources = direct.sources.data();
    work.bounce = direct.bounce.data();
}

} // namespace emulator
