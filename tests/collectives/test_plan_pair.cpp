// Messages: what goes where for sends, receives and the collectives made of them; copies with oneself; their
// errors.
#include "plan_world.h"

#include <algorithm>
#include <set>
#include <string>

namespace
{

// Where bytes come from and where they arrive, addresses telling the rank.
struct Transfer {
    uint64_t from, to, bytes;
    bool operator<(const Transfer &other) const
    {
        return std::tie(from, to, bytes) < std::tie(other.from, other.to, other.bytes);
    }
    bool operator==(const Transfer &other) const
    {
        return std::tie(from, to, bytes) == std::tie(other.from, other.to, other.bytes);
    }
};

// Match the works of all ranks wire by wire, in their order, and list what moves. Copies are transfers too.
std::vector<Transfer> Match(const World &world, const std::vector<Plan> &launch)
{
    std::map<Wire, std::vector<const rondo_work *>> sends, receives;
    std::vector<Transfer> transfers;

    for (const Plan &plan : launch) {
        for (uint32_t i = 0; plan && i < plan->args.works; i++) {
            const rondo_work &work = plan->works[i];
            if (work.kind == RONDO_WORK_SEND)
                sends[world.WireOf(work.to)].push_back(&work);
            else if (work.kind == RONDO_WORK_RECV)
                receives[world.WireOf(work.from)].push_back(&work);
            else
                transfers.push_back({(uint64_t)work.send, (uint64_t)work.recv,
                                     work.count * rondo_dtype_bytes((ncclDataType_t)work.dtype)});
        }
    }
    EXPECT_EQ(sends.size(), receives.size());
    for (auto &[wire, sent] : sends) {
        auto &received = receives[wire];
        EXPECT_EQ(sent.size(), received.size());
        for (size_t i = 0; i < std::min(sent.size(), received.size()); i++) {
            EXPECT_EQ(sent[i]->count, received[i]->count);
            EXPECT_EQ(sent[i]->chunk, received[i]->chunk);
            EXPECT_EQ(sent[i]->fingerprint, received[i]->fingerprint);
            EXPECT_EQ(sent[i]->root, std::get<1>(wire));
            EXPECT_EQ(received[i]->root, std::get<0>(wire));
            EXPECT_GT(sent[i]->chunk, 0u);
            EXPECT_EQ(sent[i]->protocol, received[i]->protocol);
            EXPECT_LE(sent[i]->chunk, world.Capacity(*sent[i]));
            transfers.push_back({(uint64_t)sent[i]->send, (uint64_t)received[i]->recv, sent[i]->count});
        }
    }
    std::sort(transfers.begin(), transfers.end());
    return transfers;
}

std::vector<Transfer> Expected(rondo_operation operation, int ranks, int root, uint64_t bytes)
{
    std::vector<Transfer> transfers;
    for (int from = 0; from < ranks; from++) {
        for (int to = 0; to < ranks; to++) {
            uint64_t source = World::SendBase(from), target = World::RecvBase(to);
            if (operation == RONDO_OP_ALL_TO_ALL)
                transfers.push_back({source + to * bytes, target + from * bytes, bytes});
            else if (operation == RONDO_OP_GATHER && to == root)
                transfers.push_back({source, target + from * bytes, bytes});
            else if (operation == RONDO_OP_SCATTER && from == root)
                transfers.push_back({source + to * bytes, target, bytes});
        }
    }
    std::sort(transfers.begin(), transfers.end());
    return transfers;
}

TEST(PlanPair, CompositesMoveExactlyTheirBlocks)
{
    for (rondo_operation operation : {RONDO_OP_ALL_TO_ALL, RONDO_OP_GATHER, RONDO_OP_SCATTER}) {
        for (int ranks = 1; ranks <= 16; ranks++) {
            for (uint64_t count :
                 {(uint64_t)1, (uint64_t)3, (uint64_t)2047, (uint64_t)2049, ((uint64_t)1 << 33) + 1}) {
                for (int root : std::set<int>{0, ranks / 2, ranks - 1}) {
                    SCOPED_TRACE(testing::Message() << rondo_operation_name(operation) << " ranks " << ranks
                                                    << " count " << count << " root " << root);
                    World world(ranks);
                    world.protocols = ranks % 4 == 0   ? nullptr
                                      : ranks % 4 == 1 ? "Simple"
                                      : ranks % 4 == 2 ? "LL"
                                                       : "LL128";
                    std::vector<Plan> launch(ranks);
                    for (int rank = 0; rank < ranks; rank++)
                        ASSERT_EQ(world.Build(rank, {MakeTask(operation, rank, count, ncclFloat16, root)},
                                              &launch[rank]),
                                  ncclSuccess);
                    ASSERT_EQ(Match(world, launch), Expected(operation, ranks, root, 2 * count));
                }
            }
        }
    }
}

TEST(PlanPair, InPlaceOwnBlocksAreNotCopied)
{
    World world(4);
    Plan plan;
    uint64_t bytes = 4 * 100;
    rondo_task gather = MakeTask(RONDO_OP_GATHER, 2, 100, ncclFloat32, 2);
    gather.send = (char *)gather.recv + 2 * bytes;
    rondo_task scatter = MakeTask(RONDO_OP_SCATTER, 2, 100, ncclFloat32, 2);
    scatter.recv = (char *)scatter.send + 2 * bytes;
    rondo_task exchange = MakeTask(RONDO_OP_ALL_TO_ALL, 2, 100, ncclFloat32);
    exchange.recv = (void *)exchange.send;
    for (const rondo_task &task : {gather, scatter, exchange}) {
        ASSERT_EQ(world.Build(2, {task}, &plan), ncclSuccess);
        for (uint32_t i = 0; i < plan->args.works; i++)
            EXPECT_NE(plan->works[i].kind, RONDO_WORK_COPY);
    }
}

TEST(PlanPair, ZeroBytesStillSynchronise)
{
    World world(2);
    Plan plan;
    ASSERT_EQ(world.Build(0,
                          {MakeTask(RONDO_OP_SEND, 0, 0, ncclFloat32, 1),
                           MakeTask(RONDO_OP_RECV, 0, 0, ncclFloat32, 1)},
                          &plan),
              ncclSuccess);
    ASSERT_EQ(plan->args.works, 2u);
    ASSERT_EQ(plan->args.blocks, 1u);
    EXPECT_EQ(plan->works[plan->blocks[0].first[0]].kind, RONDO_WORK_SEND);
    EXPECT_EQ(plan->works[plan->blocks[0].first[1]].kind, RONDO_WORK_RECV);
    EXPECT_EQ(plan->works[0].count, 0u);
    EXPECT_GT(plan->works[0].chunk, 0u);
}

// The order of rounds within lists, and one list for all messages of a wire.
TEST(PlanPair, ListsAreInOrderOfRounds)
{
    for (uint32_t blocks : {1, 2, 3, 5, 64}) {
        World world(9);
        world.max_pair_blocks = {blocks};
        for (int rank = 0; rank < 9; rank++) {
            std::vector<rondo_task> tasks;
            for (uint64_t i = 0; i < 3; i++) {
                tasks.push_back(MakeTask(RONDO_OP_ALL_TO_ALL, rank, 10, ncclFloat32, 0, i + 1));
                for (int peer = 8; peer >= 0; peer -= 2) {
                    tasks.push_back(MakeTask(RONDO_OP_SEND, rank, i, ncclInt8, peer, i + 1));
                    tasks.push_back(MakeTask(RONDO_OP_RECV, rank, i, ncclInt8, peer, i + 1));
                }
            }
            Plan plan;
            ASSERT_EQ(world.Build(rank, tasks, &plan), ncclSuccess) << rondo_error_last();
            ASSERT_EQ(plan->args.blocks, std::min<uint32_t>(blocks, 9))
                << "self copies are a round of their own";
            std::map<Wire, uint32_t> home;
            for (uint32_t b = 0; b < plan->args.blocks; b++) {
                for (int role = 0; role < 2; role++) {
                    int last = 0;
                    for (uint32_t i = 0; i < plan->blocks[b].works[role]; i++) {
                        const rondo_work &work = plan->works[plan->blocks[b].first[role] + i];
                        int round = work.kind == RONDO_WORK_COPY ? 0
                                    : role == 0                  ? (work.root - rank + 9) % 9
                                                                 : (rank - work.root + 9) % 9;
                        ASSERT_GE(round, last);
                        last = round;
                        if (work.kind == RONDO_WORK_COPY)
                            continue;
                        ASSERT_EQ(work.kind, role == 0 ? RONDO_WORK_SEND : RONDO_WORK_RECV);
                        Wire wire = world.WireOf(role == 0 ? work.to : work.from);
                        ASSERT_EQ(home.emplace(wire, b).first->second, b);
                    }
                }
            }
        }
    }
}

TEST(PlanPair, CollectivesAndMessagesUseBlocksOfTheirOwn)
{
    World world(3, 2);
    world.max_pair_blocks = {1000};
    Plan plan;
    ASSERT_EQ(
        world.Build(0,
                    {MakeTask(RONDO_OP_SEND, 0, 5, ncclInt8, 1), MakeTask(RONDO_OP_ALL_REDUCE, 0, 1 << 20),
                     MakeTask(RONDO_OP_RECV, 0, 5, ncclInt8, 1), MakeTask(RONDO_OP_ALL_TO_ALL, 0, 3)},
                    &plan),
        ncclSuccess);
    ASSERT_EQ(plan->args.blocks, 2u + 3u);
    for (uint32_t b = 0; b < 5; b++) {
        EXPECT_EQ(plan->works[plan->blocks[b].first[0]].kind == RONDO_WORK_RING_ALL_REDUCE, b < 2);
        if (b < 2) {
            EXPECT_EQ(plan->blocks[b].works[1], 0u);
        }
    }
}

TEST(PlanPair, BlocksNeverExceedTheNotes)
{
    World world(200, RONDO_CHANNELS_MAX);
    world.max_pair_blocks = {UINT32_MAX};
    Plan plan;
    ASSERT_EQ(world.Build(
                  0,
                  {MakeTask(RONDO_OP_ALL_TO_ALL, 0, 3), MakeTask(RONDO_OP_ALL_REDUCE, 0, (uint64_t)1 << 40)},
                  &plan),
              ncclSuccess);
    EXPECT_EQ(plan->args.blocks, RONDO_NOTES / 2u);
}

TEST(PlanSelf, MatchedInOrder)
{
    World world(3);
    std::vector<rondo_task> sends, receives;
    std::vector<Transfer> expected;
    for (uint64_t i = 0; i < 100; i++) {
        sends.push_back(MakeTask(RONDO_OP_SEND, 1, 2 * i, ncclFloat16, 1, i + 1));
        sends.back().send = (char *)sends.back().send + i * 4096;
        receives.push_back(MakeTask(RONDO_OP_RECV, 1, i, ncclFloat32, 1, i + 1));
        receives.back().recv = (char *)receives.back().recv + i * 8192;
    }
    // However the two are mixed, the k-th send meets the k-th receive.
    std::vector<rondo_task> tasks(sends.begin(), sends.begin() + 30);
    for (uint64_t i = 0; i < 100; i++) {
        tasks.push_back(receives[i]);
        if (i + 30 < 100)
            tasks.push_back(sends[i + 30]);
    }
    for (uint64_t i = 1; i < 100; i++)
        expected.push_back({World::SendBase(1) + i * 4096, World::RecvBase(1) + i * 8192, 4 * i});
    std::vector<Plan> launch(1);
    ASSERT_EQ(world.Build(1, tasks, &launch[0]), ncclSuccess) << rondo_error_last();
    EXPECT_EQ(Match(world, launch), expected) << "the pair of no bytes needs no work";
}

TEST(PlanSelf, InPlaceIsNothing)
{
    World world(2);
    rondo_task send = MakeTask(RONDO_OP_SEND, 0, 9, ncclInt8, 0),
               receive = MakeTask(RONDO_OP_RECV, 0, 9, ncclInt8, 0);
    receive.recv = (void *)send.send;
    Plan plan;
    ASSERT_EQ(world.Build(0, {receive, send}, &plan), ncclSuccess);
    EXPECT_EQ(plan, nullptr);
}

TEST(PlanSelf, UnequalSizesNameBoth)
{
    World world(2);
    Plan plan;
    EXPECT_EQ(world.Build(1,
                          {MakeTask(RONDO_OP_SEND, 1, 3, ncclFloat32, 1),
                           MakeTask(RONDO_OP_RECV, 1, 13, ncclInt8, 1)},
                          &plan),
              ncclInvalidUsage);
    std::string text = rondo_error_last();
    EXPECT_NE(text.find("12 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("of 13"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    EXPECT_EQ(plan, nullptr);
}

TEST(PlanSelf, UnmatchedNamesRankAndCounts)
{
    World world(4);
    Plan plan;
    rondo_task send = MakeTask(RONDO_OP_SEND, 3, 3, ncclFloat32, 3),
               receive = MakeTask(RONDO_OP_RECV, 3, 3, ncclFloat32, 3);
    for (const std::vector<rondo_task> &tasks :
         {std::vector<rondo_task>{send}, {receive}, {send, send, receive}, {receive, send, receive}}) {
        EXPECT_EQ(world.Build(3, tasks, &plan), ncclInvalidUsage);
        std::string text = rondo_error_last();
        EXPECT_NE(text.find("rank 3 sends to itself " +
                            std::to_string(std::count_if(
                                tasks.begin(), tasks.end(),
                                [](const rondo_task &t) { return t.operation == RONDO_OP_SEND; }))),
                  std::string::npos)
            << text;
    }
    EXPECT_EQ(world.Build(2, {MakeTask(RONDO_OP_SEND, 2, 3, ncclFloat32, 3)}, &plan), ncclSuccess)
        << "to another rank";
}

TEST(PlanPair, EveryFailingConnectionIsReported)
{
    for (int nth = 0;; nth++) {
        World world(4);
        world.fail_end_after = nth;
        Plan plan;
        ncclResult_t rc = world.Build(0, {MakeTask(RONDO_OP_ALL_TO_ALL, 0, 100)}, &plan);
        if (world.fail_end_after >= 0) {
            EXPECT_EQ(rc, ncclSuccess);
            break;
        }
        EXPECT_NE(rc, ncclSuccess);
        EXPECT_EQ(plan, nullptr);
    }
}

} // namespace
