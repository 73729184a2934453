// What goes into a communicator's buffers, and what must come out.
#include "emulated_world.h"

#include "../kernels/reference.h"

#include <algorithm>
#include <cstring>

using namespace reference;

namespace emulator
{

namespace
{

// Blocks of count elements that a buffer has, one for each rank or one.
uint64_t SendBlocks(const Call &call, unsigned ranks)
{
    return rondo_operation_facts(call.operation)->send_blocks ? ranks : 1;
}

uint64_t RecvBlocks(const Call &call, unsigned ranks)
{
    return rondo_operation_facts(call.operation)->recv_blocks ? ranks : 1;
}

} // namespace

std::string Call::Name() const
{
    return std::string(rondo_operation_name(operation)) + ' ' + TypeOf(dtype).name + ' ' + OpName(redop) +
           " count " + std::to_string(count) + " root " + std::to_string(root) + " offset " +
           std::to_string(offset);
}

uint64_t ScalarFor(const Call &call, unsigned ranks, unsigned rank)
{
    if (call.redop == RONDO_REDOP_SUMDIV)
        return ranks;
    return call.redop == RONDO_REDOP_PREMULSUM ? Scalar(TypeOf(call.dtype), 1 + rank % 2) : 0;
}

void Communicator::FillInput(const Call &call, Buffers &b, unsigned rank)
{
    const Type &type = TypeOf(call.dtype);
    Random random(rank * 1000 + call.count);

    for (uint64_t i = 0; i < call.count * SendBlocks(call, shape_.ranks); i++) {
        uint64_t chance = random.Next() >> 20;
        Value value;
        value.number = call.is_exact ? static_cast<double>(chance % 2 + (call.redop == RONDO_REDOP_PROD))
                                     : (static_cast<double>(chance % 2000) + 0.5) / 7 - 100;
        value.whole = static_cast<__int128>(value.number);
        b.input.push_back(Store(type, value));
        PutRaw(&b.send.initial[i * type.bytes], type.bytes, b.input.back());
    }
}

void Communicator::MakeBuffers()
{
    for (size_t launch = 0; launch < launches_.size(); launch++) {
        buffers_.emplace_back(launches_[launch].size());
        for (size_t i = 0; i < launches_[launch].size(); i++) {
            const Call &call = launches_[launch][i];
            uint64_t bytes = rondo_dtype_bytes(call.dtype) * call.count;
            for (unsigned rank = 0; rank < shape_.ranks; rank++) {
                Buffers b;
                b.send.bytes = bytes * SendBlocks(call, shape_.ranks);
                b.recv.bytes = bytes * RecvBlocks(call, shape_.ranks);
                for (Buffer *buffer : {&b.send, &b.recv}) {
                    bool sends = buffer == &b.send;
                    buffer->initial.assign(buffer->bytes, 0xc3);
                    if (!call.is_chained)
                        buffer->emulated = machine_.memory().Allocate(
                            std::string(sends ? "send" : "recv") + " buffer of rank " + std::to_string(rank),
                            buffer->bytes, false, (sends ? call.offset : call.offset * 3) % 16);
                }
                FillInput(call, b, rank);
                if (call.is_chained) { /* the memory is the other call's, and looked at as such */
                    const Buffers &before = buffers_.back()[i - 1][rank];
                    b.send = {before.recv.emulated, 0, {}, {}};
                    b.recv = {before.send.emulated, 0, {}, {}};
                }
                b.send.cpu = b.send.initial;
                b.recv.cpu = b.recv.initial;
                b.send.cpu.reserve(1); /* an address even where there is nothing */
                b.recv.cpu.reserve(1);
                buffers_.back()[i].push_back(std::move(b));
            }
        }
    }
}

// Element `index` of a rank's recv; false: nobody writes it.
bool Communicator::Expected(const Call &call, const std::vector<Buffers> &all, unsigned rank, uint64_t index,
                            uint64_t *raw_out)
{
    const Type &type = TypeOf(call.dtype);
    unsigned n = shape_.ranks, root = static_cast<unsigned>(call.root);
    uint64_t block = index / call.count, at = index % call.count, folded = index;

    switch (call.operation) {
    case RONDO_OP_ALL_GATHER:
    case RONDO_OP_GATHER:
        *raw_out = all[block].input[at];
        return call.operation == RONDO_OP_ALL_GATHER || rank == root;
    case RONDO_OP_ALL_TO_ALL:
        *raw_out = all[block].input[rank * call.count + at];
        return true;
    case RONDO_OP_SCATTER:
        *raw_out = all[root].input[rank * call.count + at];
        return true;
    case RONDO_OP_BROADCAST:
        *raw_out = all[root].input[at];
        return true;
    case RONDO_OP_SEND:
        *raw_out = all[(rank + n - root % n) % n].input[at];
        return true;
    case RONDO_OP_REDUCE_SCATTER:
        folded = rank * call.count + at;
        break;
    case RONDO_OP_REDUCE:
        if (rank != root)
            return false;
        break;
    default:
        break;
    }
    Value sum;
    for (unsigned r = 0; r < n; r++) {
        Value own = Enter(type, call.redop, ScalarFor(call, n, r), Load(type, all[r].input[folded]));
        sum = r == 0 ? own : Apply(type, call.redop, sum, own);
    }
    *raw_out = Store(type, Leave(type, call.redop, ScalarFor(call, n, rank), sum));
    return true;
}

// Between what lanes left, what the CPU device left, and what the reference says; empty: none.
std::string Communicator::Difference()
{
    for (size_t launch = 0; launch < launches_.size(); launch++)
        for (size_t i = 0; i < launches_[launch].size(); i++)
            for (unsigned rank = 0; rank < shape_.ranks; rank++) {
                const Call &call = launches_[launch][i];
                const Buffers &b = buffers_[launch][i][rank];
                std::string where = call.Name() + ", rank " + std::to_string(rank);
                for (const Buffer *buffer : {&b.send, &b.recv}) {
                    auto *bytes =
                        static_cast<const unsigned char *>(machine_.memory().Host(buffer->emulated));
                    size_t same = static_cast<size_t>(
                        std::mismatch(buffer->cpu.begin(), buffer->cpu.end(), bytes).first -
                        buffer->cpu.begin());
                    if (same < buffer->bytes)
                        return where + ": byte " + std::to_string(same) + " of " +
                               (buffer == &b.send ? "send" : "recv") + " is not what the CPU device makes";
                }
                unsigned element = TypeOf(call.dtype).bytes;
                for (uint64_t at = 0; call.is_exact && !call.is_chained && at * element < b.recv.bytes;
                     at++) {
                    uint64_t raw = 0, found = GetRaw(&b.recv.cpu[at * element], element);
                    if (Expected(call, buffers_[launch][i], rank, at, &raw) && raw != found)
                        return where + ": element " + std::to_string(at) + " is not what the reference says";
                }
            }
    return "";
}

} // namespace emulator
