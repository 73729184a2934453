// Whole works, every kind, over connections made by hand.
#include "operation_run.h"
#include "runnable_isas.h"

#include <gtest/gtest.h>

using namespace reference;

namespace
{

constexpr uint64_t kChunkBytes = 256;
constexpr uint64_t kFingerprint = 0x1234567890abcdefull;

// Every kind that all ranks take part in.
std::vector<rondo_work_kind> FindCollectives()
{
    std::vector<rondo_work_kind> kinds;
#define RONDO_WORK(id, receives, sends, reduces, in_bytes, peers)              \
    if ((receives && sends) || peers || RONDO_WORK_##id == RONDO_WORK_TREE_UP) \
        kinds.push_back(RONDO_WORK_##id);
#include "device/works.def"
#undef RONDO_WORK
    return kinds;
}

const std::vector<rondo_work_kind> kCollectives = FindCollectives();

// What direct works may do in several ways: no bounce, all, or some ranks; in one process or in several.
// Trees: on any number of hosts.
void AddWays(Operation &operation, unsigned turn)
{
    operation.bounced = turn % 4 == 0 ? 0 : turn % 4 == 1 ? ~0u : turn * 2654435761u >> 16;
    operation.is_apart = turn / 4 % 2;
    operation.hosts = turn / 3;
    if (operation.Pattern() == RONDO_OP_ALL_TO_ALL)
        operation.in_place = false; // it has no such thing
}

void RunOne(World &world, const Operation &operation, rondo_cpu_kernel kernel, unsigned seed)
{
    for (unsigned channel = 0; operation.IsChain() && channel < operation.channels; channel++)
        world.OrderByRank(channel);
    OperationRun run(world, operation, seed);
    run.AddWorks(kFingerprint + seed);
    ASSERT_TRUE(world.Run(kernel)) << operation.Name() << " of " << world.Ranks() << " ranks"
                                   << (world.Deadlocked() ? " deadlocked" : " was stopped");
    run.Verify();
}

// Counts around every boundary of chunks, loops and channels.
std::vector<uint64_t> Counts(unsigned ranks, unsigned channels, uint64_t chunk)
{
    std::vector<uint64_t> counts = {1, 2, 15, 16, 17};
    for (uint64_t edge : {chunk, chunk * ranks, chunk * ranks * channels, 3 * chunk * ranks * channels}) {
        counts.push_back(edge - 1);
        counts.push_back(edge);
        counts.push_back(edge + 1);
    }
    counts.push_back(5 * chunk * ranks * channels + chunk / 2 + 3);
    return counts;
}

class Collective : public testing::TestWithParam<std::tuple<rondo_work_kind, rondo_protocol>>
{
  protected:
    rondo_work_kind Kind() const
    {
        return std::get<0>(GetParam());
    }

    rondo_protocol Protocol() const
    {
        return std::get<1>(GetParam());
    }
};

// Ranks, channels, counts, roots, offsets, in and out of place; types and operations take turns.
TEST_P(Collective, CountsAroundEveryBoundary)
{
    unsigned turn = 0;

    for (unsigned ranks = 2; ranks <= 8; ranks++)
        for (unsigned channels = 1; channels <= 3; channels++) {
            World world(ranks, channels, SlotBytes(Protocol()), Protocol());
            for (uint64_t chunk : {1, 16, 32}) {
                if (chunk == 1 && channels == 3)
                    continue;
                for (uint64_t count : Counts(ranks, channels, chunk)) {
                    Operation operation{Kind()};
                    operation.dtype = Types()[turn % RONDO_DTYPE_NUM].id;
                    operation.redop = static_cast<int>(turn / 5 % RONDO_REDOP_NUM);
                    operation.count = count;
                    operation.chunk = chunk;
                    operation.root = static_cast<int32_t>(turn % ranks);
                    operation.in_place = turn / 3 % 2;
                    operation.precise = turn / 2 % 2;
                    operation.offset = turn % 16;
                    operation.channels = channels;
                    AddWays(operation, turn);
                    RunOne(world, operation, Isas()[turn % Isas().size()].kernel, turn);
                    if (HasFatalFailure())
                        return;
                    turn++;
                }
            }
        }
}

TEST_P(Collective, EveryTypeAndOperation)
{
    World world(5, 2, SlotBytes(Protocol()), Protocol());
    unsigned turn = 0;

    for (const Type &type : Types())
        for (int redop = 0; redop < RONDO_REDOP_NUM; redop++)
            for (const Isa &isa : Isas())
                for (bool precise : {false, true}) {
                    Operation operation{Kind()};
                    operation.dtype = type.id;
                    operation.redop = redop;
                    operation.count = 333;
                    operation.chunk = 31;
                    operation.root = 3;
                    operation.precise = precise;
                    operation.in_place = turn % 2;
                    operation.offset = turn % 16;
                    operation.channels = 2;
                    AddWays(operation, turn);
                    RunOne(world, operation, isa.kernel, turn++);
                    if (HasFatalFailure())
                        return;
                }
}

// Slots of many lines and lanes' shares, full to the last byte and nearly so.
TEST_P(Collective, PartsThatFillASlot)
{
    constexpr uint64_t slot_bytes = 2560;
    World world(3, 1, slot_bytes, Protocol());
    unsigned turn = 0;

    for (const Type &type : Types())
        for (bool precise : {false, true}) {
            Operation operation{Kind()};
            operation.dtype = type.id;
            operation.precise = precise;
            if (operation.IsDirect() && Protocol() != RONDO_PROTOCOL_SIMPLE)
                operation.redop = precise ? RONDO_REDOP_PREMULSUM : RONDO_REDOP_SUM;
            uint64_t wire = precise && operation.IsReduction() ? rondo_dtype_wide_bytes(type.id) : type.bytes;
            operation.chunk = rondo_protocol_capacity(Protocol(), slot_bytes) / wire;
            for (uint64_t count : {operation.chunk - 1, operation.chunk, operation.chunk + 1,
                                   3 * operation.chunk - 1, 3 * operation.chunk}) {
                operation.count = count;
                operation.root = static_cast<int32_t>(turn % 3);
                operation.in_place = turn / 2 % 2;
                operation.offset = turn % 16;
                AddWays(operation, turn);
                RunOne(world, operation, Isas()[turn % Isas().size()].kernel, turn);
                if (HasFatalFailure())
                    return;
                turn++;
            }
        }
}

// Long after the start: steps pass 2^31 and 2^32, where flags of 32 bits begin again. Every kind meets slots
// as that many steps leave them, and leaves no word that a later step could take for its own.
TEST_P(Collective, StepsPassTheWrapOfFlags)
{
    for (uint64_t wrap : {uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{3} << 31, uint64_t{1} << 63}) {
        World world(3, 1, SlotBytes(Protocol()), Protocol());
        world.first_step = wrap - 21;
        world.OrderByRank(0);
        for (unsigned turn = 0; turn < 40; turn++) {
            Operation operation{Kind()};
            operation.count = 1 + turn * 17 % 90;
            RunOne(world, operation, Isas()[turn % Isas().size()].kernel, turn);
            if (HasFatalFailure())
                return;
        }
        world.ForEachConnection([&](const rondo_end &to) {
            if (to.step < wrap + RONDO_SLOTS) /* a root sends nothing, or its predecessor */
                return;
            auto *flags = reinterpret_cast<const uint32_t *>(to.slots);
            uint64_t words = RONDO_SLOTS * to.slot_bytes / 8;
            for (uint64_t i = 0; Protocol() == RONDO_PROTOCOL_LL && i < words; i++)
                ASSERT_LE(static_cast<uint32_t>(to.step) - flags[2 * i + 1], to.step - wrap + RONDO_SLOTS)
                    << "word " << i << " of " << words << " was not refreshed";
        });
    }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<rondo_work_kind, rondo_protocol>> &info)
{
    return "Kind" + std::to_string(std::get<0>(info.param)) + rondo_protocol_name(std::get<1>(info.param));
}

// Every kind over every protocol.
std::vector<std::tuple<rondo_work_kind, rondo_protocol>> FindWays()
{
    std::vector<std::tuple<rondo_work_kind, rondo_protocol>> ways;

    for (rondo_work_kind kind : kCollectives)
        for (rondo_protocol protocol : kProtocols)
            ways.emplace_back(kind, protocol);
    return ways;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Collective, testing::ValuesIn(FindWays()), NameOf);

// Sums that are exact in the accumulator are rounded once.
TEST(Precise, NarrowSumsAreRoundedOnce)
{
    for (rondo_work_kind kind : {RONDO_WORK_RING_ALL_REDUCE, RONDO_WORK_RING_REDUCE_SCATTER,
                                 RONDO_WORK_RING_REDUCE, RONDO_WORK_TREE_UP, RONDO_WORK_DIRECT_ALL_REDUCE,
                                 RONDO_WORK_DIRECT_REDUCE_SCATTER, RONDO_WORK_DIRECT_REDUCE})
        for (const Type &type : Types())
            for (unsigned ranks = 2; IsNarrow(type.id) && ranks <= 8; ranks++) {
                rondo_protocol protocol = kProtocols[ranks % std::size(kProtocols)];
                World world(ranks, 2, SlotBytes(protocol), protocol);
                Operation operation{kind};
                operation.dtype = type.id;
                operation.count = 777;
                operation.chunk = kChunkBytes / 4; /* of float */
                operation.precise = true;
                operation.channels = 2;
                operation.hosts = ranks / 2;
                operation.inputs = Inputs::SIXTEENTHS;
                RunOne(world, operation, Isas().back().kernel, ranks);
                if (HasFatalFailure())
                    return;
            }
}

// Bit by bit the fold in rank order, whatever the chunking, the channels and the instruction set.
TEST(Deterministic, ChainsAndDirectWorksFoldInRankOrder)
{
    unsigned turn = 0;

    for (rondo_work_kind kind :
         {RONDO_WORK_CHAIN_ALL_REDUCE, RONDO_WORK_CHAIN_REDUCE_SCATTER, RONDO_WORK_CHAIN_REDUCE,
          RONDO_WORK_DIRECT_ALL_REDUCE, RONDO_WORK_DIRECT_REDUCE_SCATTER, RONDO_WORK_DIRECT_REDUCE})
        for (const Type &type : Types())
            for (int redop = 0; redop < RONDO_REDOP_NUM; redop++)
                for (const Isa &isa : Isas()) {
                    unsigned ranks = 2 + turn % 7, channels = 1 + turn % 3;
                    rondo_protocol protocol = kProtocols[turn / 2 % std::size(kProtocols)];
                    World world(ranks, channels, SlotBytes(protocol), protocol);
                    Operation operation{kind};
                    operation.dtype = type.id;
                    operation.redop = redop;
                    operation.count = 250 + turn % 13;
                    operation.chunk = 1 + turn % 32;
                    operation.root = static_cast<int32_t>(turn % ranks);
                    operation.precise = turn % 2;
                    operation.channels = channels;
                    operation.inputs = Inputs::ANY;
                    AddWays(operation, turn);
                    RunOne(world, operation, isa.kernel, turn++);
                    if (HasFatalFailure())
                        return;
                }
}

// Bit by bit: at every node the first child, the own input, the other children, rounded once for all of them.
TEST(Tree, NodesFoldInTheOrderOfChildren)
{
    unsigned turn = 0;

    for (const Type &type : Types())
        for (int redop = 0; redop < RONDO_REDOP_NUM; redop++)
            for (const Isa &isa : Isas())
                for (rondo_protocol protocol : kProtocols) {
                    unsigned ranks = 8 + turn % 3, channels = 1 + turn % 2;
                    World world(ranks, channels, SlotBytes(protocol), protocol);
                    Operation operation{RONDO_WORK_TREE_UP};
                    operation.dtype = type.id;
                    operation.redop = redop;
                    operation.count = 60 + turn % 13;
                    operation.chunk = 1 + turn % 32;
                    operation.precise = turn / 3 % 2;
                    operation.channels = channels;
                    operation.hosts = turn;
                    operation.inputs = Inputs::ANY;
                    RunOne(world, operation, isa.kernel, turn++);
                    if (HasFatalFailure())
                        return;
                }
}

// Whoever comes first, the two lists of all ranks get on.
TEST(Tree, RanksInAnyOrder)
{
    for (unsigned seed = 1; seed <= 60; seed++) {
        rondo_protocol protocol = kProtocols[seed % std::size(kProtocols)];
        unsigned ranks = 2 + seed % 8, channels = 1 + seed % 2;
        World world(ranks, channels, SlotBytes(protocol), protocol);
        Operation operation{RONDO_WORK_TREE_UP};
        operation.count = 40 * ranks + seed;
        operation.chunk = 4;
        operation.channels = channels;
        operation.hosts = seed;
        operation.in_place = seed / 2 % 2;
        world.SetOrder(seed);
        for (unsigned i = 0; i < 3; i++) {
            RunOne(world, operation, Isas().back().kernel, seed * 3 + i);
            if (HasFatalFailure())
                return;
        }
    }
}

// Several works in one list, and several launches, over the same connections.
TEST(Lists, WorksFollowEachOtherOverOneConnection)
{
    World world(4, 1, 640);
    std::deque<OperationRun> runs;

    for (unsigned launch = 0; launch < 3; launch++) {
        runs.clear();
        for (unsigned i = 0; i < std::size(kCollectives); i++) {
            Operation operation{kCollectives[i]};
            operation.count = 1 + 37 * i;
            world.protocol = kProtocols[(launch + i) / 2 % std::size(kProtocols)];
            runs.emplace_back(world, operation, launch * 100 + i);
            runs.back().AddWorks(launch * 100 + i);
        }
        ASSERT_TRUE(world.Run(Isas().back().kernel));
        for (const OperationRun &run : runs)
            run.Verify();
    }
    EXPECT_GT(world.NotesSeen(), 0u) << "nobody ever said that it waits";
}

// Whoever comes first, nobody gets stuck and nobody reads what is not there yet.
TEST(Direct, RanksInAnyOrder)
{
    for (rondo_work_kind kind : kCollectives)
        for (unsigned seed = 1; seed <= 60; seed++) {
            unsigned ranks = 2 + seed % 7, channels = 1 + seed % 2;
            rondo_protocol protocol = kProtocols[seed / 2 % std::size(kProtocols)];
            World world(ranks, channels, SlotBytes(protocol), protocol);
            Operation operation{kind};
            if (!operation.IsDirect())
                continue;
            operation.count = 40 * ranks + seed;
            operation.chunk = 4;
            operation.channels = channels;
            operation.root = static_cast<int32_t>(seed % ranks);
            operation.in_place = seed / 2 % 2;
            AddWays(operation, seed);
            world.SetOrder(seed);
            for (unsigned i = 0; i < 3; i++) {
                RunOne(world, operation, Isas().back().kernel, seed * 3 + i);
                if (HasFatalFailure())
                    return;
            }
        }
}

// Real threads, for ThreadSanitizer.
TEST(Threads, RanksOnThreadsOfTheirOwn)
{
    World world(4, 2, 640);

    for (rondo_work_kind kind : kCollectives)
        for (rondo_protocol protocol : kProtocols) {
            Operation operation{kind};
            operation.count = 1000;
            operation.channels = 2;
            operation.bounced = 0b0101;
            world.protocol = protocol;
            world.OrderByRank(1);
            OperationRun run(world, operation, kind);
            run.AddWorks(kFingerprint);
            ASSERT_TRUE(world.RunThreads(Isas().back().kernel));
            run.Verify();
        }
}

rondo_work Message(rondo_protocol protocol, rondo_work_kind kind, void *memory, uint64_t bytes,
                   rondo_end *end, uint64_t fingerprint)
{
    rondo_work work{};

    work.kind = static_cast<uint8_t>(kind);
    work.operation = kind == RONDO_WORK_SEND ? RONDO_OP_SEND : RONDO_OP_RECV;
    work.protocol = static_cast<uint8_t>(protocol);
    work.count = bytes;
    work.chunk = kChunkBytes;
    work.fingerprint = fingerprint;
    if (kind == RONDO_WORK_SEND) {
        work.send = memory;
        work.to = end;
    } else {
        work.recv = memory;
        work.from = end;
    }
    return work;
}

// Every rank sends to every other, in rounds, all sizes at once.
TEST(PointToPoint, AllPairsInRounds)
{
    const uint64_t sizes[] = {0, 1, 255, 256, 257, 5000, 0, 511, 512, 513, 2048, 2049};

    for (unsigned turn = 0; turn < 21; turn++) {
        unsigned ranks = 2 + turn / 3;
        rondo_protocol protocol = kProtocols[turn % 3];
        World world(ranks, 1, SlotBytes(protocol), protocol);
        std::vector<std::vector<unsigned char>> sent(ranks * ranks), received(ranks * ranks);
        for (unsigned d = 1; d < ranks; d++)
            for (unsigned rank = 0; rank < ranks; rank++) {
                unsigned to = (rank + d) % ranks, from = (rank + ranks - d) % ranks;
                uint64_t out = sizes[(rank * ranks + to) % std::size(sizes)],
                         in = sizes[(from * ranks + rank) % std::size(sizes)];
                sent[rank * ranks + to].assign(out, static_cast<unsigned char>(rank * ranks + to));
                received[from * ranks + rank].assign(in, 0xee);
                world.Add(rank, 0, 0,
                          Message(protocol, RONDO_WORK_SEND, sent[rank * ranks + to].data(), out,
                                  world.PairTo(rank, to), 100 + out));
                world.Add(rank, 0, 1,
                          Message(protocol, RONDO_WORK_RECV, received[from * ranks + rank].data(), in,
                                  world.PairFrom(rank, from), 100 + in));
            }
        ASSERT_TRUE(world.Run(Isas()[ranks % Isas().size()].kernel));
        EXPECT_EQ(sent, received);
    }
}

TEST(Copy, OneRankAlone)
{
    World world(1, 1, kChunkBytes);

    for (const Type &type : Types())
        for (int redop = 0; redop < RONDO_REDOP_NUM; redop++)
            for (bool in_place : {false, true})
                for (uint64_t count : {0, 1, 17, 1000}) {
                    std::vector<unsigned char> send(count * type.bytes + 1), recv(send.size(), 0x5a),
                        expected(recv);
                    unsigned char *target = in_place ? send.data() : recv.data();
                    uint64_t scalar = redop == RONDO_REDOP_SUMDIV ? 1 : Scalar(type, 2);
                    for (uint64_t i = 0; i < count; i++) {
                        uint64_t raw = Store(type, LoadWide(type, Scalar(type, static_cast<double>(i % 4))));
                        PutRaw(&send[i * type.bytes], type.bytes, raw);
                        raw = Store(type, Enter(type, redop, scalar, Load(type, raw)));
                        PutRaw(&expected[i * type.bytes], type.bytes, raw);
                    }
                    if (in_place)
                        expected.back() = send.back();
                    rondo_work work{};
                    work.kind = RONDO_WORK_COPY;
                    work.dtype = static_cast<uint8_t>(type.id);
                    work.redop = static_cast<uint8_t>(redop);
                    work.send = send.data();
                    work.recv = target;
                    work.count = count;
                    work.scalar = scalar;
                    world.Add(0, 0, 0, work);
                    ASSERT_TRUE(world.Run(Isas().back().kernel));
                    ASSERT_EQ(in_place ? send : recv, expected)
                        << type.name << ' ' << OpName(redop) << " count " << count;
                }
}

// A scalar in device memory is one element of the user's type, read when the work runs.
TEST(Copy, ScalarInMemory)
{
    World world(1, 1, kChunkBytes);

    for (const Type &type : Types()) {
        unsigned char element[9], x[8], out[8] = {};
        PutRaw(element + 1, type.bytes, Store(type, LoadWide(type, Scalar(type, 3))));
        PutRaw(x, type.bytes, Store(type, LoadWide(type, Scalar(type, 2))));
        rondo_work work{};
        work.kind = RONDO_WORK_COPY;
        work.dtype = static_cast<uint8_t>(type.id);
        work.redop = RONDO_REDOP_PREMULSUM;
        work.flags = RONDO_WORK_SCALAR_POINTER;
        work.send = x;
        work.recv = out;
        work.count = 1;
        work.scalar = reinterpret_cast<uintptr_t>(element + 1);
        world.Add(0, 0, 0, work);
        ASSERT_TRUE(world.Run(Isas().back().kernel));
        EXPECT_EQ(GetRaw(out, type.bytes), Store(type, LoadWide(type, Scalar(type, 6)))) << type.name;
    }
}

} // namespace
