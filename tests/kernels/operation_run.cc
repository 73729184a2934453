#include "operation_run.h"

#include "device/pull.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

using namespace reference;

namespace
{

constexpr unsigned char kCanary = 0xC3;
constexpr size_t kMargin = 64;

uint64_t NextRandom(uint64_t &state)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return state >> 33;
}

} // namespace

rondo_operation Operation::Pattern() const
{
    switch (kind) {
    case RONDO_WORK_RING_ALL_GATHER:
    case RONDO_WORK_DIRECT_ALL_GATHER:
        return RONDO_OP_ALL_GATHER;
    case RONDO_WORK_RING_REDUCE_SCATTER:
    case RONDO_WORK_CHAIN_REDUCE_SCATTER:
    case RONDO_WORK_DIRECT_REDUCE_SCATTER:
        return RONDO_OP_REDUCE_SCATTER;
    case RONDO_WORK_RING_BROADCAST:
    case RONDO_WORK_DIRECT_BROADCAST:
        return RONDO_OP_BROADCAST;
    case RONDO_WORK_RING_REDUCE:
    case RONDO_WORK_CHAIN_REDUCE:
    case RONDO_WORK_DIRECT_REDUCE:
        return RONDO_OP_REDUCE;
    case RONDO_WORK_DIRECT_ALL_TO_ALL:
        return RONDO_OP_ALL_TO_ALL;
    case RONDO_WORK_DIRECT_GATHER:
        return RONDO_OP_GATHER;
    case RONDO_WORK_DIRECT_SCATTER:
        return RONDO_OP_SCATTER;
    default:
        return RONDO_OP_ALL_REDUCE;
    }
}

bool Operation::IsReduction() const
{
    return Pattern() == RONDO_OP_ALL_REDUCE || Pattern() == RONDO_OP_REDUCE_SCATTER ||
           Pattern() == RONDO_OP_REDUCE;
}

bool Operation::IsChain() const
{
    return kind == RONDO_WORK_CHAIN_ALL_REDUCE || kind == RONDO_WORK_CHAIN_REDUCE ||
           kind == RONDO_WORK_CHAIN_REDUCE_SCATTER;
}

bool Operation::IsDirect() const
{
    return kind >= RONDO_WORK_DIRECT_ALL_REDUCE && kind <= RONDO_WORK_DIRECT_SCATTER;
}

bool Operation::IsTree() const
{
    return kind == RONDO_WORK_TREE_UP;
}

std::string Operation::Name() const
{
    static const char *const kinds[] = {
#define RONDO_WORK(id, ...) #id,
#include "device/works.def"
#undef RONDO_WORK
    };
    return std::string(kinds[kind]) + ' ' + TypeOf(dtype).name + ' ' + OpName(redop) + " count " +
           std::to_string(count) + " chunk " + std::to_string(chunk) + " root " + std::to_string(root) +
           (in_place ? " in place" : "") + (precise ? " precise" : "") + " offset " + std::to_string(offset) +
           " channels " + std::to_string(channels) + " bounced " + std::to_string(bounced) +
           (is_apart ? " apart" : "") + (IsTree() ? " hosts " + std::to_string(hosts) : "");
}

OperationRun::OperationRun(World &world, const Operation &operation, unsigned seed)
    : world_(world), operation_(operation), type_(TypeOf(operation.dtype)), buffers_(world.Ranks())
{
    uint64_t state = seed + 1;

    for (unsigned rank = 0; rank < world_.Ranks(); rank++)
        MakeBuffers(rank, state);
    for (uint64_t i = 0; operation_.IsReduction() && i < SendCount(); i++)
        folded_.push_back(Folded(i));
}

uint64_t OperationRun::SendCount() const
{
    rondo_operation pattern = operation_.Pattern();
    bool has_blocks =
        pattern == RONDO_OP_REDUCE_SCATTER || pattern == RONDO_OP_ALL_TO_ALL || pattern == RONDO_OP_SCATTER;
    return operation_.count * (has_blocks ? world_.Ranks() : 1);
}

uint64_t OperationRun::RecvCount() const
{
    rondo_operation pattern = operation_.Pattern();
    bool has_blocks =
        pattern == RONDO_OP_ALL_GATHER || pattern == RONDO_OP_ALL_TO_ALL || pattern == RONDO_OP_GATHER;
    return operation_.count * (has_blocks ? world_.Ranks() : 1);
}

// Each rank has its own, unless sums of them would not be exact whatever the order.
uint64_t OperationRun::ScalarOf(unsigned rank) const
{
    return operation_.redop == RONDO_REDOP_SUMDIV ? world_.Ranks()
                                                  : Scalar(type_, operation_.IsDirect() ? 2 + rank % 3 : 2);
}

// The interface lets other ranks than these pass NULL.
bool OperationRun::UsesSend(unsigned rank) const
{
    rondo_operation pattern = operation_.Pattern();
    bool is_roots = pattern == RONDO_OP_SCATTER || (pattern == RONDO_OP_BROADCAST && operation_.IsDirect());
    return !is_roots || static_cast<int32_t>(rank) == operation_.root;
}

bool OperationRun::UsesRecv(unsigned rank) const
{
    rondo_operation pattern = operation_.Pattern();
    bool is_roots = pattern == RONDO_OP_GATHER || (pattern == RONDO_OP_REDUCE && !operation_.in_place);
    return !is_roots || static_cast<int32_t>(rank) == operation_.root;
}

uint64_t OperationRun::RandomInput(uint64_t &state) const
{
    uint64_t random = NextRandom(state);
    Value value;

    if (operation_.inputs == Inputs::ANY && !type_.is_float)
        return StoreWide(type_, LoadWide(type_, random * 0x9e3779b97f4a7c15ull));
    if (operation_.inputs == Inputs::ANY)
        value.number =
            (static_cast<double>(random % 2000) + 0.5) / 7 - 100; /* never 0: no NaN can come of it */
    else if (operation_.inputs == Inputs::SIXTEENTHS)
        value.number = (static_cast<double>(random % 255) - 127) / 16;
    else
        value.number = operation_.redop == RONDO_REDOP_PROD ? 1 + random % 2 : random % 2;
    value.whole = static_cast<__int128>(value.number);
    return Store(type_, value);
}

// In place: send and recv share memory at the offsets that the interface defines.
void OperationRun::MakeBuffers(unsigned rank, uint64_t &state)
{
    Buffers &b = buffers_[rank];
    uint64_t send_bytes = SendCount() * type_.bytes, recv_bytes = RecvCount() * type_.bytes;
    uint64_t block = static_cast<uint64_t>(rank) * operation_.count * type_.bytes;

    b.recv.assign(2 * kMargin + std::max(send_bytes, recv_bytes) + operation_.offset, kCanary);
    b.recv_at = b.recv.data() + kMargin + operation_.offset;
    if (operation_.in_place) {
        b.send_at = b.recv_at;
        bool is_rooted = operation_.Pattern() == RONDO_OP_GATHER || operation_.Pattern() == RONDO_OP_SCATTER;
        if (is_rooted && static_cast<int32_t>(rank) != operation_.root)
            block = 0;
        if (RecvCount() > operation_.count)
            b.send_at = b.recv_at + block;
        if (SendCount() > operation_.count)
            b.recv_at = b.send_at + block;
    } else {
        unsigned other = operation_.offset * 3 % 16;
        b.send.assign(2 * kMargin + send_bytes + other, kCanary);
        b.send_at = b.send.data() + kMargin + other;
    }
    for (uint64_t i = 0; i < SendCount(); i++) {
        b.input.push_back(RandomInput(state));
        PutRaw(b.send_at + i * type_.bytes, type_.bytes, b.input.back());
    }
}

// All of a rank's memory that others may read.
rondo_window OperationRun::Window(unsigned rank, const Direct &direct) const
{
    const Buffers &b = buffers_[rank];
    uintptr_t low = UINTPTR_MAX, high = 0;

    if (!operation_.is_apart)
        return {0, UINT64_MAX, nullptr};
    for (const std::vector<unsigned char> *memory : {&b.send, &b.recv, &direct.bounce}) {
        if (memory->empty())
            continue;
        uintptr_t begin = reinterpret_cast<uintptr_t>(memory->data());
        low = std::min(low, begin);
        high = std::max(high, begin + memory->size());
    }
    return {low, high - low, reinterpret_cast<unsigned char *>(low)};
}

// Once the works of all ranks on the channel are there.
void OperationRun::ConnectDirect(unsigned channel, uint64_t first_direct)
{
    for (unsigned rank = 0; rank < world_.Ranks(); rank++)
        for (unsigned peer = 0; peer < world_.Ranks(); peer++)
            if (peer != rank)
                directs_[first_direct + rank].peers[peer] = {world_.DirectFrom(rank, peer, channel),
                                                             world_.DirectTo(rank, peer, channel),
                                                             Window(peer, directs_[first_direct + peer]),
                                                             nullptr,
                                                             0,
                                                             0};
}

rondo_work OperationRun::MakeWork(unsigned rank, unsigned channel, uint64_t first, uint64_t count)
{
    const Buffers &b = buffers_[rank];
    rondo_work work{};

    work.kind = static_cast<uint8_t>(operation_.kind);
    work.operation = RONDO_OP_ALL_REDUCE;
    work.dtype = static_cast<uint8_t>(operation_.dtype);
    work.redop = static_cast<uint8_t>(operation_.redop);
    work.flags = operation_.precise ? RONDO_WORK_PRECISE : 0;
    work.send = UsesSend(rank) ? b.send_at + first * type_.bytes : nullptr;
    work.recv = UsesRecv(rank) ? b.recv_at + first * type_.bytes : nullptr;
    work.count = count;
    work.stride = operation_.count;
    work.chunk = operation_.chunk;
    work.scalar = ScalarOf(rank);
    work.number = 7;
    work.protocol = static_cast<uint8_t>(world_.protocol);
    work.root = operation_.root;
    work.channel = channel;
    if (operation_.IsTree())
        return work;
    if (!operation_.IsDirect()) {
        work.from = world_.RingFrom(rank, channel);
        work.to = world_.RingTo(rank, channel);
        return work;
    }
    directs_.emplace_back();
    Direct &direct = directs_.back();
    direct.peers.resize(world_.Ranks());
    work.peers = direct.peers.data();
    if (world_.protocol != RONDO_PROTOCOL_SIMPLE)
        return work;
    if (operation_.bounced >> rank & 1)
        work.flags |= RONDO_WORK_BOUNCE_SEND | RONDO_WORK_BOUNCE_RECV;
    rondo_pull pull = rondo_pull_of(&work, world_.Ranks());
    direct.sources.resize(world_.Ranks());
    direct.bounce.assign(rondo_pull_bounce(&pull) * type_.bytes, kCanary);
    work.sources = direct.sources.data();
    work.bounce = direct.bounce.data();
    work.bounce_bytes = direct.bounce.size();
    return work;
}

uint64_t OperationRun::Share() const
{
    return (operation_.count + operation_.channels - 1) / operation_.channels;
}

rondo_tree_node OperationRun::NodeOf(unsigned rank, unsigned channel) const
{
    std::vector<rondo_place> places(world_.Ranks());
    rondo_tree_node node;

    for (unsigned r = 0; r < world_.Ranks(); r++)
        places[r].host = r % (1 + operation_.hosts % world_.Ranks());
    rondo_tree_build(places.data(), static_cast<int>(world_.Ranks()), static_cast<int>(rank),
                     static_cast<int>(channel % RONDO_TREES), &node);
    return node;
}

// Up in one list, and down in the other.
void OperationRun::AddTree(rondo_work work, unsigned rank)
{
    rondo_tree_node node = NodeOf(rank, work.channel);
    directs_.emplace_back();
    std::vector<rondo_peer_ends> &peers = directs_.back().peers;

    peers.resize(RONDO_TREE_PORTS);
    for (unsigned port = 0; port < RONDO_TREE_PORTS; port++) {
        int32_t peer = port == RONDO_TREE_PARENT ? node.parent : node.child[port - RONDO_TREE_CHILD];
        if (peer < 0)
            continue;
        peers[port].from = world_.TreeFrom(rank, static_cast<unsigned>(peer), work.channel);
        peers[port].to = world_.TreeTo(rank, static_cast<unsigned>(peer), work.channel);
    }
    work.peers = peers.data();
    world_.Add(rank, work.channel, 0, work);
    work.kind = RONDO_WORK_TREE_DOWN;
    work.redop = RONDO_REDOP_SUM;
    work.send = nullptr;
    if (node.parent >= 0)
        world_.Add(rank, work.channel, 1, work);
}

void OperationRun::AddWorks(uint64_t fingerprint)
{
    uint64_t share = Share();

    for (unsigned channel = 0; channel < operation_.channels; channel++) {
        uint64_t first = std::min(operation_.count, channel * share);
        uint64_t count = std::min(share, operation_.count - first), first_direct = directs_.size();
        for (unsigned rank = 0; count > 0 && rank < world_.Ranks(); rank++) {
            rondo_work work = MakeWork(rank, channel, first, count);
            work.fingerprint = fingerprint;
            if (operation_.IsTree())
                AddTree(work, rank);
            else
                world_.Add(rank, channel, 0, work);
        }
        if (operation_.IsDirect() && count > 0)
            ConnectDirect(channel, first_direct);
    }
}

// What a rank sends to its parent: the first child's, its own, the others', rounded once.
Value OperationRun::FoldedByTree(unsigned rank, unsigned channel, uint64_t index) const
{
    rondo_tree_node node = NodeOf(rank, channel);
    int op = operation_.redop;
    Value sum = Enter(type_, op, ScalarOf(rank), Load(type_, buffers_[rank].input[index]));

    for (int c = 0; c < RONDO_TREE_CHILDREN && node.child[c] >= 0; c++) {
        Value child = FoldedByTree(static_cast<unsigned>(node.child[c]), channel, index);
        sum = c == 0 ? Apply(type_, op, child, sum) : Apply(type_, op, sum, child);
    }
    return operation_.precise || node.parent < 0 ? sum : Load(type_, Store(type_, sum));
}

// Ranks folded in order; narrow types are rounded between steps unless precise or direct, which the inputs
// make irrelevant for rings.
uint64_t OperationRun::Folded(uint64_t index) const
{
    int op = operation_.redop;
    Value sum;

    if (operation_.IsTree()) {
        unsigned channel = static_cast<unsigned>(index / Share()), root = 0;
        while (NodeOf(root, channel).parent >= 0)
            root++;
        return Store(type_, Leave(type_, op, ScalarOf(0), FoldedByTree(root, channel, index)));
    }
    for (unsigned rank = 0; rank < world_.Ranks(); rank++) {
        Value own = Enter(type_, op, ScalarOf(rank), Load(type_, buffers_[rank].input[index]));
        sum = rank == 0 ? own : Apply(type_, op, sum, own);
        if (!operation_.precise && !operation_.IsDirect() && rank + 1 < world_.Ranks())
            sum = Load(type_, Store(type_, sum));
    }
    return Store(type_, Leave(type_, op, ScalarOf(0), sum));
}

// What element `index` of a rank's recv must be; false: what it was before.
bool OperationRun::Expected(unsigned rank, uint64_t index, uint64_t &raw_out) const
{
    bool is_root = static_cast<int32_t>(rank) == operation_.root;
    uint64_t block = index / operation_.count, inside = index % operation_.count;
    const std::vector<uint64_t> &roots = buffers_[static_cast<unsigned>(operation_.root)].input;

    switch (operation_.Pattern()) {
    case RONDO_OP_ALL_GATHER:
    case RONDO_OP_GATHER:
        raw_out = buffers_[block].input[inside];
        return is_root || operation_.Pattern() == RONDO_OP_ALL_GATHER;
    case RONDO_OP_ALL_TO_ALL:
        raw_out = buffers_[block].input[rank * operation_.count + inside];
        return true;
    case RONDO_OP_BROADCAST:
        raw_out = roots[index];
        return true;
    case RONDO_OP_SCATTER:
        raw_out = roots[rank * operation_.count + index];
        return true;
    case RONDO_OP_REDUCE_SCATTER:
        raw_out = folded_[rank * operation_.count + index];
        return true;
    case RONDO_OP_REDUCE:
        raw_out = folded_[index];
        return is_root;
    default:
        raw_out = folded_[index];
        return true;
    }
}

void OperationRun::Verify() const
{
    for (unsigned rank = 0; rank < world_.Ranks(); rank++) {
        std::vector<unsigned char> recv(buffers_[rank].recv.size(), kCanary),
            send(buffers_[rank].send.size(), kCanary);
        const Buffers &b = buffers_[rank];
        unsigned char *send_at = operation_.in_place ? recv.data() + (b.send_at - b.recv.data())
                                                     : send.data() + (b.send_at - b.send.data());
        unsigned char *recv_at = recv.data() + (b.recv_at - b.recv.data());

        for (uint64_t i = 0; i < SendCount(); i++)
            PutRaw(send_at + i * type_.bytes, type_.bytes, b.input[i]);
        for (uint64_t i = 0; i < RecvCount(); i++) {
            uint64_t raw;
            if (Expected(rank, i, raw))
                PutRaw(recv_at + i * type_.bytes, type_.bytes, raw);
        }
        ASSERT_EQ(b.send, send) << operation_.Name() << ": the input of rank " << rank << " changed";
        size_t i =
            static_cast<size_t>(std::mismatch(recv.begin(), recv.end(), b.recv.begin()).first - recv.begin());
        if (i < recv.size())
            FAIL() << operation_.Name() << ": rank " << rank << " of " << world_.Ranks() << ", byte "
                   << static_cast<long>(i) - (recv_at - recv.data()) << " of its result";
    }
}

std::vector<unsigned char> OperationRun::Result(unsigned rank) const
{
    const Buffers &b = buffers_[rank];
    return std::vector<unsigned char>(b.recv_at, b.recv_at + RecvCount() * type_.bytes);
}
