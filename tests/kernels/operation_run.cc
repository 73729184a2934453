#include "operation_run.h"

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

bool Operation::IsReduction() const
{
    return kind != RONDO_WORK_RING_ALL_GATHER && kind != RONDO_WORK_RING_BROADCAST;
}

bool Operation::IsChain() const
{
    return kind == RONDO_WORK_CHAIN_ALL_REDUCE || kind == RONDO_WORK_CHAIN_REDUCE ||
           kind == RONDO_WORK_CHAIN_REDUCE_SCATTER;
}

std::string Operation::Name() const
{
    static const char *const kinds[] = {
        "ring all-reduce", "ring all-gather",  "ring reduce-scatter",  "ring broadcast",
        "ring reduce",     "chain all-reduce", "chain reduce-scatter", "chain reduce",
    };
    return std::string(kinds[kind]) + ' ' + TypeOf(dtype).name + ' ' + OpName(redop) + " count " +
           std::to_string(count) + " chunk " + std::to_string(chunk) + " root " + std::to_string(root) +
           (in_place ? " in place" : "") + (precise ? " precise" : "") + " offset " + std::to_string(offset) +
           " channels " + std::to_string(channels);
}

OperationRun::OperationRun(World &world, const Operation &operation, unsigned seed)
    : world_(world), operation_(operation), type_(TypeOf(operation.dtype)),
      scalar_(operation.redop == RONDO_REDOP_SUMDIV ? world.Ranks() : Scalar(type_, 2)),
      buffers_(world.Ranks())
{
    uint64_t state = seed + 1;

    for (unsigned rank = 0; rank < world_.Ranks(); rank++)
        MakeBuffers(rank, state);
    for (uint64_t i = 0; operation_.IsReduction() && i < SendCount(); i++)
        folded_.push_back(Folded(i));
}

uint64_t OperationRun::SendCount() const
{
    bool scatters = operation_.kind == RONDO_WORK_RING_REDUCE_SCATTER ||
                    operation_.kind == RONDO_WORK_CHAIN_REDUCE_SCATTER;
    return operation_.count * (scatters ? world_.Ranks() : 1);
}

uint64_t OperationRun::RecvCount() const
{
    return operation_.count * (operation_.kind == RONDO_WORK_RING_ALL_GATHER ? world_.Ranks() : 1);
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
        if (operation_.kind == RONDO_WORK_RING_ALL_GATHER)
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

rondo_work OperationRun::MakeWork(unsigned rank, unsigned channel, uint64_t first, uint64_t count) const
{
    const Buffers &b = buffers_[rank];
    rondo_work work{};

    work.kind = static_cast<uint8_t>(operation_.kind);
    work.operation = RONDO_OP_ALL_REDUCE;
    work.dtype = static_cast<uint8_t>(operation_.dtype);
    work.redop = static_cast<uint8_t>(operation_.redop);
    work.flags = operation_.precise ? RONDO_WORK_PRECISE : 0;
    work.send = b.send_at + first * type_.bytes;
    work.recv = b.recv_at + first * type_.bytes;
    bool is_rooted = operation_.kind == RONDO_WORK_RING_REDUCE || operation_.kind == RONDO_WORK_CHAIN_REDUCE;
    if (is_rooted && static_cast<int32_t>(rank) != operation_.root && !operation_.in_place)
        work.recv = nullptr; /* the interface lets who is not root pass NULL */
    work.count = count;
    work.stride = operation_.count;
    work.chunk = operation_.chunk;
    work.scalar = scalar_;
    work.number = 7;
    work.protocol = static_cast<uint8_t>(world_.protocol);
    work.root = operation_.root;
    work.channel = channel;
    work.from = world_.RingFrom(rank, channel);
    work.to = world_.RingTo(rank, channel);
    return work;
}

void OperationRun::AddWorks(uint64_t fingerprint)
{
    uint64_t share = (operation_.count + operation_.channels - 1) / operation_.channels;

    for (unsigned channel = 0; channel < operation_.channels; channel++) {
        uint64_t first = std::min(operation_.count, channel * share);
        uint64_t count = std::min(share, operation_.count - first);
        for (unsigned rank = 0; count > 0 && rank < world_.Ranks(); rank++) {
            rondo_work work = MakeWork(rank, channel, first, count);
            work.fingerprint = fingerprint;
            world_.Add(rank, channel, 0, work);
        }
    }
}

// Ranks folded in order; narrow types are rounded between steps unless precise, which the inputs make
// irrelevant for rings.
uint64_t OperationRun::Folded(uint64_t index) const
{
    int op = operation_.redop;
    Value sum;

    for (unsigned rank = 0; rank < world_.Ranks(); rank++) {
        Value own = Enter(type_, op, scalar_, Load(type_, buffers_[rank].input[index]));
        sum = rank == 0 ? own : Apply(type_, op, sum, own);
        if (!operation_.precise && rank + 1 < world_.Ranks())
            sum = Load(type_, Store(type_, sum));
    }
    return Store(type_, Leave(type_, op, scalar_, sum));
}

// What element `index` of a rank's recv must be; false: what it was before.
bool OperationRun::Expected(unsigned rank, uint64_t index, uint64_t &raw_out) const
{
    switch (operation_.kind) {
    case RONDO_WORK_RING_ALL_GATHER:
        raw_out = buffers_[index / operation_.count].input[index % operation_.count];
        return true;
    case RONDO_WORK_RING_BROADCAST:
        raw_out = buffers_[static_cast<unsigned>(operation_.root)].input[index];
        return true;
    case RONDO_WORK_RING_REDUCE_SCATTER:
    case RONDO_WORK_CHAIN_REDUCE_SCATTER:
        raw_out = folded_[rank * operation_.count + index];
        return true;
    case RONDO_WORK_RING_REDUCE:
    case RONDO_WORK_CHAIN_REDUCE:
        if (static_cast<int32_t>(rank) != operation_.root) {
            raw_out = buffers_[rank].input[index];
            return operation_.in_place;
        }
        [[fallthrough]];
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
