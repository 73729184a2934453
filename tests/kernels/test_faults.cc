// What cannot go well ends on every rank, says why, and writes nothing where it must not.
#include "operation_run.h"
#include "runnable_isas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace
{

constexpr uint64_t kSlotBytes = 256;

// Each protocol, its slots large enough for chunks of kSlotBytes.
class Fault : public testing::TestWithParam<rondo_protocol>
{
};

class Stop : public testing::TestWithParam<rondo_protocol>
{
};

class Doorbell : public testing::TestWithParam<rondo_protocol>
{
};

std::string NameOf(const testing::TestParamInfo<rondo_protocol> &info)
{
    return rondo_protocol_name(info.param);
}

INSTANTIATE_TEST_SUITE_P(Protocols, Fault, testing::ValuesIn(kProtocols), NameOf);
INSTANTIATE_TEST_SUITE_P(Protocols, Stop, testing::ValuesIn(kProtocols), NameOf);
INSTANTIATE_TEST_SUITE_P(Protocols, Doorbell, testing::ValuesIn(kProtocols), NameOf);

rondo_cpu_kernel Kernel()
{
    return Isas().back().kernel;
}

Operation SomeOperation(rondo_work_kind kind)
{
    Operation operation{kind};

    operation.count = 500;
    return operation;
}

// A rank's first and only fault.
const rondo_fault *FaultOf(World &world, unsigned *rank_out)
{
    for (unsigned rank = 0; rank < world.Ranks(); rank++)
        if (world.Fault(rank).code != 0) {
            *rank_out = rank;
            return &world.Fault(rank);
        }
    return nullptr;
}

TEST_P(Fault, OtherOperationIsNamed)
{
    for (rondo_work_kind kind :
         {RONDO_WORK_RING_ALL_REDUCE, RONDO_WORK_RING_ALL_GATHER, RONDO_WORK_RING_REDUCE_SCATTER,
          RONDO_WORK_RING_BROADCAST, RONDO_WORK_RING_REDUCE, RONDO_WORK_CHAIN_ALL_REDUCE, RONDO_WORK_TREE_UP,
          RONDO_WORK_DIRECT_ALL_REDUCE, RONDO_WORK_DIRECT_ALL_GATHER, RONDO_WORK_DIRECT_REDUCE_SCATTER,
          RONDO_WORK_DIRECT_BROADCAST, RONDO_WORK_DIRECT_REDUCE, RONDO_WORK_DIRECT_ALL_TO_ALL,
          RONDO_WORK_DIRECT_GATHER, RONDO_WORK_DIRECT_SCATTER})
        for (unsigned odd = 0; odd < 4; odd++) {
            World world(4, 1, SlotBytes(GetParam()), GetParam());
            Operation operation = SomeOperation(kind);
            operation.hosts = 3;
            OperationRun run(world, operation, 1);
            run.AddWorks(111);
            world.Amend(odd, [](rondo_work &work) { work.fingerprint = 222; });
            EXPECT_FALSE(world.Run(Kernel()));
            EXPECT_FALSE(world.Deadlocked());
            unsigned rank = 0;
            const rondo_fault *fault = FaultOf(world, &rank);
            ASSERT_NE(fault, nullptr);
            EXPECT_EQ(fault->code, static_cast<uint32_t>(ncclInvalidUsage));
            EXPECT_EQ(fault->expected + fault->found, 333u);
            EXPECT_EQ(fault->found == 222, static_cast<unsigned>(fault->peer) == odd);
            EXPECT_EQ(fault->expected == 222, rank == odd);
            std::set<uint64_t> raised; /* several ranks may find out at once; the first stop stays */
            for (unsigned other = 0; other < 4; other++)
                raised.insert(RONDO_STOP_VALUE(world.Fault(other).code, world.Fault(other).peer));
            EXPECT_EQ(raised.count(world.Page(rank).stop.value), 1u);
        }
}

TEST_P(Fault, OtherBytesOfTheSameOperation)
{
    for (rondo_work_kind kind : {RONDO_WORK_RING_ALL_REDUCE, RONDO_WORK_DIRECT_ALL_REDUCE,
                                 RONDO_WORK_DIRECT_ALL_TO_ALL, RONDO_WORK_DIRECT_BROADCAST}) {
        if (Operation{kind}.IsDirect() && GetParam() == RONDO_PROTOCOL_SIMPLE)
            continue; /* an offer counts the whole input */
        World world(3, 1, SlotBytes(GetParam()), GetParam());
        OperationRun run(world, SomeOperation(kind), 1);
        unsigned rank = 0;

        run.AddWorks(111);
        world.Amend(1, [](rondo_work &work) { work.chunk = 15; });
        EXPECT_FALSE(world.Run(Kernel()));
        const rondo_fault *fault = FaultOf(world, &rank);
        ASSERT_NE(fault, nullptr);
        EXPECT_EQ(fault->code, static_cast<uint32_t>(ncclInternalError));
        EXPECT_EQ(fault->expected, fault->found);
        EXPECT_NE(fault->expected_bytes, fault->found_bytes);
    }
}

TEST_P(Fault, LongerMessageNeverWritesBeyondTheReceiver)
{
    World world(2, 1, SlotBytes(GetParam()), GetParam());
    std::vector<unsigned char> sent(1000, 1), received(100, 0);
    rondo_work send{}, recv{};

    send.kind = RONDO_WORK_SEND;
    send.send = sent.data();
    send.count = sent.size();
    send.chunk = recv.chunk = kSlotBytes;
    send.protocol = recv.protocol = static_cast<uint8_t>(GetParam());
    send.fingerprint = recv.fingerprint = 5; /* as if the hashes collided */
    send.to = world.PairTo(0, 1);
    recv.kind = RONDO_WORK_RECV;
    recv.recv = received.data();
    recv.count = received.size();
    recv.from = world.PairFrom(1, 0);
    world.Add(0, 0, 0, send);
    world.Add(1, 0, 1, recv);
    EXPECT_FALSE(world.Run(Kernel()));
    EXPECT_EQ(world.Fault(1).expected_bytes, 100u);
    EXPECT_EQ(world.Fault(1).found_bytes, 256u);
    EXPECT_EQ(world.Fault(1).peer, 0);
    EXPECT_EQ(received, std::vector<unsigned char>(100, 0));
}

// Raised at every possible moment, a stop ends all kinds of works on all ranks.
TEST_P(Stop, EndsEveryWorkAtAnyMoment)
{
    for (int kind = 0; kind < RONDO_WORK_NUM; kind++)
        for (unsigned at = 0; at < 200; at++) {
            if (kind >= RONDO_WORK_TREE_DOWN && kind <= RONDO_WORK_COPY)
                continue; /* no collectives by themselves */
            World world(3, 1, SlotBytes(GetParam()), GetParam());
            Operation operation = SomeOperation(static_cast<rondo_work_kind>(kind));
            operation.bounced = at % 8;
            operation.hosts = at;
            OperationRun run(world, operation, at);
            bool raised = false;

            run.AddWorks(1);
            world.between_turns = [&](World &self, unsigned turn) {
                if (turn != at)
                    return;
                self.RaiseStop(at % 3, RONDO_STOP_VALUE(RONDO_STOP_ABORT, 2));
                raised = true;
            };
            bool ended_well = world.Run(Kernel());
            ASSERT_FALSE(world.Deadlocked());
            unsigned rank;
            ASSERT_EQ(FaultOf(world, &rank), nullptr) << "a stop is not a fault";
            if (!raised) {
                ASSERT_TRUE(ended_well);
                run.Verify();
                break;
            }
        }
}

TEST_P(Stop, RaisedBeforehandMovesNothing)
{
    World world(2, 1, SlotBytes(GetParam()), GetParam());
    OperationRun run(world, SomeOperation(RONDO_WORK_RING_ALL_REDUCE), 1);
    std::vector<unsigned char> before = run.Result(0);

    world.RaiseStop(0, RONDO_STOP_ABORT);
    world.RaiseStop(1, RONDO_STOP_ABORT);
    run.AddWorks(1);
    EXPECT_FALSE(world.Run(Kernel()));
    EXPECT_EQ(run.Result(0), before);
    const rondo_end *from = world.RingFrom(1, 0);
    EXPECT_EQ(from->posted->value, 0u);
    EXPECT_EQ(std::count(from->slots, from->slots + RONDO_SLOTS * from->slot_bytes, 0),
              static_cast<long>(RONDO_SLOTS * from->slot_bytes));
}

// Also where nothing has to wait: all is there, and there is nothing to send.
TEST_P(Stop, RaisedBeforehandTakesNothing)
{
    World world(2, 1, SlotBytes(GetParam()), GetParam());
    std::vector<unsigned char> sent(3 * kSlotBytes, 1), received(3 * kSlotBytes, 0);
    rondo_work send{}, recv{};

    send.kind = RONDO_WORK_SEND;
    send.protocol = recv.protocol = static_cast<uint8_t>(GetParam());
    send.count = recv.count = sent.size();
    send.chunk = recv.chunk = kSlotBytes;
    send.send = sent.data();
    send.to = world.PairTo(0, 1);
    recv.kind = RONDO_WORK_RECV;
    recv.recv = received.data();
    recv.from = world.PairFrom(1, 0);
    world.Add(0, 0, 0, send);
    ASSERT_TRUE(world.Run(Kernel()));
    world.RaiseStop(1, RONDO_STOP_ABORT);
    world.Add(1, 0, 1, recv);
    EXPECT_FALSE(world.Run(Kernel()));
    EXPECT_EQ(received, std::vector<unsigned char>(3 * kSlotBytes, 0));
}

TEST(StopAlone, EndsALongCopy)
{
    World world(1, 1, kSlotBytes);
    std::vector<unsigned char> from(4 << 20, 1), to(4 << 20, 0);
    rondo_work work{};

    work.kind = RONDO_WORK_COPY;
    work.send = from.data();
    work.recv = to.data();
    work.count = from.size();
    world.Add(0, 0, 0, work);
    world.between_turns = [](World &self, unsigned) { self.RaiseStop(0, RONDO_STOP_ABORT); };
    EXPECT_FALSE(world.Run(Kernel()));
    EXPECT_EQ(to.back(), 0);
}

using Spoil = std::function<void(rondo_work &)>;

// The kernel of a rank ends the launch for a work that is spoiled, and nobody waits for it.
void ExpectRefused(World &world, const Operation &operation, unsigned rank, const Spoil &spoil, size_t which)
{
    OperationRun run(world, operation, 1);
    run.AddWorks(1);
    world.Amend(rank, spoil);
    EXPECT_FALSE(world.Run(Kernel()));
    EXPECT_FALSE(world.Deadlocked());
    EXPECT_EQ(world.Fault(rank).code, static_cast<uint32_t>(ncclInternalError)) << "spoiled work " << which;
}

TEST(Unsound, WorksAreRefused)
{
    const std::vector<Spoil> spoil = {
        [](rondo_work &work) { work.kind = 200; },
        [](rondo_work &work) { work.kind = RONDO_WORK_NUM; },
        [](rondo_work &work) { work.dtype = RONDO_DTYPE_NUM; },
        [](rondo_work &work) { work.redop = RONDO_REDOP_NUM; },
        [](rondo_work &work) { work.chunk = 0; },
        [](rondo_work &work) { work.chunk = kSlotBytes / 4 + 1; },
        [](rondo_work &work) { work.protocol = RONDO_PROTOCOL_NUM; },
        [](rondo_work &work) { work.protocol = 255; },
        [](rondo_work &work) { work.from = nullptr; },
        [](rondo_work &work) { work.to = nullptr; },
    };

    for (size_t i = 0; i < spoil.size(); i++) {
        World world(2, 1, kSlotBytes);
        ExpectRefused(world, SomeOperation(RONDO_WORK_RING_ALL_REDUCE), 1, spoil[i], i);
        EXPECT_EQ(world.Fault(1).peer, -1);
        EXPECT_EQ(world.Page(1).stop.value, RONDO_STOP_VALUE(ncclInternalError, -1));
    }
}

// What fits a slot is not what fits it beside flags and head.
TEST(Unsound, ChunkBeyondTheDataOfASlot)
{
    for (auto [protocol, data] : {std::pair(RONDO_PROTOCOL_SIMPLE, 256u), std::pair(RONDO_PROTOCOL_LL, 112u),
                                  std::pair(RONDO_PROTOCOL_LL128, 224u)})
        for (unsigned over : {0u, 1u}) {
            World world(2, 1, kSlotBytes, protocol);
            Operation operation = SomeOperation(RONDO_WORK_RING_ALL_GATHER);
            operation.dtype = ncclUint8;
            operation.chunk = data + over;
            OperationRun run(world, operation, 1);
            run.AddWorks(1);
            EXPECT_EQ(world.Run(Kernel()), over == 0) << rondo_protocol_name(protocol);
        }
}

TEST(Unsound, DirectWorksAreRefused)
{
    const std::vector<Spoil> spoil = {
        [](rondo_work &work) { work.protocol = RONDO_PROTOCOL_LL; },
        [](rondo_work &work) { work.peers = nullptr; },
        [](rondo_work &work) { work.sources = nullptr; },
        [](rondo_work &work) { work.bounce = nullptr; },
        [](rondo_work &work) { work.bounce_bytes -= 4; },
        [](rondo_work &work) { work.chunk = 0; },
        [](rondo_work &work) { work.chunk++; },
        [](rondo_work &work) { work.chunk = UINT64_MAX; },
        [](rondo_work &work) { work.root = 2; },
        [](rondo_work &work) { work.root = -1; },
        [](rondo_work &work) { work.peers[0].from = nullptr; },
        [](rondo_work &work) { work.peers[0].to = nullptr; },
        [](rondo_work &work) { work.peers[0].from->slot_bytes = 127; },
        [](rondo_work &work) { work.peers[0].to->slot_bytes = 127; },
    };

    for (size_t i = 0; i < spoil.size(); i++) {
        World world(2, 1, kSlotBytes);
        ExpectRefused(world, SomeOperation(RONDO_WORK_DIRECT_REDUCE), 1, spoil[i], i);
    }
}

TEST(Unsound, OneShotWorksAreRefused)
{
    const std::vector<Spoil> spoil = {
        [](rondo_work &work) { work.protocol = RONDO_PROTOCOL_NUM; },
        [](rondo_work &work) { work.peers = nullptr; },
        [](rondo_work &work) { work.chunk = 0; },
        [](rondo_work &work) { work.chunk = UINT64_MAX; },
        [](rondo_work &work) { work.root = 2; },
        [](rondo_work &work) { work.root = -1; },
        [](rondo_work &work) { work.peers[0].from = nullptr; },
        [](rondo_work &work) { work.peers[0].to = nullptr; },
    };

    for (rondo_protocol protocol : {RONDO_PROTOCOL_LL, RONDO_PROTOCOL_LL128})
        for (size_t i = 0; i < spoil.size(); i++) {
            World world(2, 1, SlotBytes(protocol), protocol);
            ExpectRefused(world, SomeOperation(RONDO_WORK_DIRECT_REDUCE), 1, spoil[i], i);
        }
}

// What scales its inputs gives them as wide as accumulators.
TEST(Unsound, OneShotChunkBeyondTheDataOfASlot)
{
    for (auto [protocol, data] : {std::pair(RONDO_PROTOCOL_LL, 112u), std::pair(RONDO_PROTOCOL_LL128, 224u)})
        for (int redop : {RONDO_REDOP_SUM, RONDO_REDOP_PREMULSUM})
            for (unsigned over : {0u, 1u}) {
                World world(2, 1, kSlotBytes, protocol);
                Operation operation = SomeOperation(RONDO_WORK_DIRECT_ALL_REDUCE);
                operation.dtype = ncclFloat8e5m2;
                operation.redop = redop;
                operation.chunk = data / (redop == RONDO_REDOP_PREMULSUM ? 4 : 1) + over;
                OperationRun run(world, operation, 1);
                run.AddWorks(1);
                EXPECT_EQ(world.Run(Kernel()), over == 0) << rondo_protocol_name(protocol);
            }
}

// Of four ranks on four hosts the third has a parent and two children.
TEST(Unsound, TreeWorksAreRefused)
{
    const std::vector<Spoil> spoil = {
        [](rondo_work &work) { work.protocol = RONDO_PROTOCOL_NUM; },
        [](rondo_work &work) { work.peers = nullptr; },
        [](rondo_work &work) { work.chunk = 0; },
        [](rondo_work &work) { work.chunk = kSlotBytes / 4 + 1; },
        [](rondo_work &work) { work.peers[0].from = nullptr; },
        [](rondo_work &work) { work.peers[0].to = nullptr; },
        [](rondo_work &work) { work.peers[1].from = nullptr; },
        [](rondo_work &work) { work.peers[2].to = nullptr; },
        [](rondo_work &work) {
            for (unsigned port = 0; port < RONDO_TREE_PORTS; port++)
                work.peers[port].from = work.peers[port].to = nullptr;
        },
    };

    for (rondo_work_kind kind : {RONDO_WORK_TREE_UP, RONDO_WORK_TREE_DOWN})
        for (size_t i = 0; i < spoil.size(); i++) {
            World world(4, 1, kSlotBytes);
            Operation operation = SomeOperation(RONDO_WORK_TREE_UP);
            operation.hosts = 3;
            auto spoil_kind = [&](rondo_work &work) {
                if (work.kind == kind)
                    spoil[i](work);
            };
            ExpectRefused(world, operation, 2, spoil_kind, i);
        }
}

// What comes down may need more room than it has bytes: it takes the places of partial sums.
TEST(Unsound, TreeChunkThatFitsOnlyNarrow)
{
    for (rondo_work_kind kind : {RONDO_WORK_TREE_UP, RONDO_WORK_TREE_DOWN}) {
        World world(2, 1, kSlotBytes, RONDO_PROTOCOL_LL);
        Operation operation = SomeOperation(RONDO_WORK_TREE_UP);
        operation.dtype = ncclFloat8e4m3;
        operation.chunk = 112;
        OperationRun run(world, operation, 1);
        run.AddWorks(1);
        world.Amend(1, [&](rondo_work &work) { work.flags |= work.kind == kind ? RONDO_WORK_PRECISE : 0; });
        EXPECT_FALSE(world.Run(Kernel()));
        EXPECT_EQ(world.Fault(1).code, static_cast<uint32_t>(ncclInternalError));
    }
}

const rondo_work_kind kDirect[] = {RONDO_WORK_DIRECT_ALL_REDUCE,     RONDO_WORK_DIRECT_ALL_GATHER,
                                   RONDO_WORK_DIRECT_REDUCE_SCATTER, RONDO_WORK_DIRECT_BROADCAST,
                                   RONDO_WORK_DIRECT_REDUCE,         RONDO_WORK_DIRECT_ALL_TO_ALL,
                                   RONDO_WORK_DIRECT_GATHER,         RONDO_WORK_DIRECT_SCATTER};

// An address that is not the peer's is a fault and never an access: one byte too few at either end of the
// window, or none at all, whether what is offered is an input, a piece of one, or a result.
TEST(Direct, OffersOutsideTheWindowAreFaults)
{
    for (rondo_work_kind kind : kDirect)
        for (unsigned bounced : {0, 1})
            for (int way = 0; way < 3; way++) {
                World world(2, 1, kSlotBytes);
                Operation operation = SomeOperation(kind);
                operation.is_apart = true;
                operation.bounced = bounced;
                operation.root = kind == RONDO_WORK_DIRECT_REDUCE || kind == RONDO_WORK_DIRECT_GATHER;
                OperationRun run(world, operation, 1);
                run.AddWorks(1);
                world.Amend(1, [&](rondo_work &work) {
                    rondo_window &window = work.peers[0].window;
                    uint64_t cut = way == 0 ? window.bytes : way == 1 ? window.bytes - 1 : 0;
                    if (way == 2)
                        window.base += window.bytes; /* what lies below wraps */
                    window.bytes -= way == 1 ? cut : 0;
                    window.bytes = way == 0 ? 0 : window.bytes;
                });
                EXPECT_FALSE(world.Run(Kernel()));
                EXPECT_FALSE(world.Deadlocked());
                EXPECT_EQ(world.Fault(1).code, static_cast<uint32_t>(ncclInternalError)) << operation.Name();
                EXPECT_EQ(world.Fault(1).peer, 0);
            }
}

rondo_gate *Gate(World &world, unsigned owner, unsigned reader)
{
    return reinterpret_cast<rondo_gate *>(world.DirectTo(owner, reader, 0)->slots + RONDO_GATE_OFFSET);
}

// A rank that has ended early has taken its memory back: who comes later does not touch it.
TEST(Direct, RevokedMemoryIsNotRead)
{
    for (rondo_work_kind kind : kDirect) {
        World world(3, 1, kSlotBytes);
        Operation operation = SomeOperation(kind);
        operation.root = kind == RONDO_WORK_DIRECT_REDUCE || kind == RONDO_WORK_DIRECT_GATHER;
        OperationRun run(world, operation, 1);
        run.AddWorks(1);
        *Gate(world, 0, 1) = {1, 1};
        world.Amend(1, [](rondo_work &work) { /* any access would crash */
                                              work.peers[0].window.here =
                                                  reinterpret_cast<unsigned char *>(UINT64_C(1) << 62);
        });
        EXPECT_FALSE(world.Run(Kernel()));
        EXPECT_TRUE(world.Deadlocked()) << "only a stop ends that wait";
        unsigned rank;
        EXPECT_EQ(FaultOf(world, &rank), nullptr);
    }
}

// A rank that is stopped while a peer of its own process reads from it ends when that has ended.
TEST(Direct, StopWaitsForTheReader)
{
    for (rondo_work_kind kind : kDirect)
        for (bool is_apart : {false, true}) {
            World world(2, 1, kSlotBytes);
            Operation operation = SomeOperation(kind);
            operation.is_apart = is_apart;
            OperationRun run(world, operation, 1);
            run.AddWorks(1);
            Gate(world, 0, 1)->is_taken = 1;
            world.RaiseStop(0, RONDO_STOP_ABORT);
            unsigned last = 0;
            world.between_turns = [&last](World &self, unsigned turn) {
                last = turn;
                if (turn == 5)
                    Gate(self, 0, 1)->is_taken = 0;
            };
            EXPECT_FALSE(world.Run(Kernel()));
            EXPECT_EQ(Gate(world, 0, 1)->is_revoked, 1u);
            EXPECT_EQ(last >= 5, !is_apart) << "of a process that may be gone nobody waits";
            EXPECT_EQ(Gate(world, 0, 1)->is_taken, 1u);
            EXPECT_EQ(Gate(world, 1, 0)->is_taken, 1u);
        }
}

// In precise mode a narrow type needs a slot for accumulators.
TEST(Unsound, PreciseChunkThatFitsOnlyNarrow)
{
    World world(2, 1, kSlotBytes);
    Operation operation = SomeOperation(RONDO_WORK_RING_ALL_REDUCE);

    operation.dtype = ncclFloat8e4m3;
    operation.chunk = kSlotBytes;
    OperationRun narrow(world, operation, 1);
    narrow.AddWorks(1);
    EXPECT_TRUE(world.Run(Kernel()));
    operation.precise = true;
    OperationRun wide(world, operation, 1);
    wide.AddWorks(1);
    EXPECT_FALSE(world.Run(Kernel()));
}

TEST_P(Doorbell, SleepersAreRungAndNobodyElse)
{
    for (rondo_work_kind kind : {RONDO_WORK_RING_BROADCAST, RONDO_WORK_DIRECT_BROADCAST}) {
        World world(2, 1, SlotBytes(GetParam()), GetParam());
        OperationRun run(world, SomeOperation(kind), 1);
        auto *board = reinterpret_cast<rondo_switchboard *>(&run); /* never looked into */
        rondo_end *to = Operation{kind}.IsDirect() ? world.DirectTo(0, 1, 0) : world.RingTo(0, 0);

        World::Rings().clear();
        run.AddWorks(1);
        to->peer = board;
        to->posted->waiter = 3;
        EXPECT_TRUE(world.Run(Kernel()));
        EXPECT_GT(to->step, 0u);
        EXPECT_EQ(World::Rings().size(), to->step) << "once a post; nobody sleeps for credit";
        for (const auto &ring : World::Rings())
            EXPECT_EQ(ring, (std::pair<rondo_switchboard *, uint32_t>(board, 3)));
    }
}

TEST_P(Doorbell, AFaultWakesItsOwnProcess)
{
    World world(2, 1, SlotBytes(GetParam()), GetParam());
    OperationRun run(world, SomeOperation(RONDO_WORK_RING_BROADCAST), 1);

    World::Rings().clear();
    run.AddWorks(1);
    world.Amend(1, [](rondo_work &work) { work.kind = 200; });
    world.Page(1).stop.waiter = 9;
    EXPECT_FALSE(world.Run(Kernel()));
    ASSERT_EQ(World::Rings().size(), 1u);
    EXPECT_EQ(World::Rings()[0].second, 9u);
}

} // namespace
