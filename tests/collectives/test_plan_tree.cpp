// All-reduces by tree: every rank plans the same cut, nothing gets stuck, and what cannot go by tree is
// refused.
#include "simulation.h"

#include "device/schedule.h"

#include <string>

namespace
{

uint64_t WireBytes(const rondo_work &work)
{
    auto dtype = (ncclDataType_t)work.dtype;
    return work.flags & RONDO_WORK_PRECISE ? rondo_dtype_wide_bytes(dtype) : rondo_dtype_bytes(dtype);
}

bool IsTree(const rondo_work &work)
{
    return work.kind == RONDO_WORK_TREE_UP || work.kind == RONDO_WORK_TREE_DOWN;
}

// Piece by piece, as the kernels go.
Script TreeScript(const rondo_work &work)
{
    uint64_t narrow = rondo_dtype_bytes((ncclDataType_t)work.dtype), wide = WireBytes(work);
    bool is_up = work.kind == RONDO_WORK_TREE_UP, is_root = !work.peers[RONDO_TREE_PARENT].to;
    return {rondo_pieces(work.count, work.chunk), [=, &work](uint64_t i) {
                uint64_t count = rondo_piece(work.count, work.chunk, i).count;
                return Action{true, true, count * (is_up ? wide : narrow),
                              count * (is_up && !is_root ? wide : narrow)};
            }};
}

Script ScriptOf(int, const rondo_work &work)
{
    return IsTree(work) ? TreeScript(work) : MessageScript(work);
}

// One all-reduce in the plans of all ranks: by channel the same cut everywhere, up in the first list and down
// in the second, and ranges that are all of it, once.
void ExpectOneTree(const World &world, const std::vector<Plan> &launch, ncclDataType_t dtype, uint64_t count)
{
    uint64_t bytes = rondo_dtype_bytes(dtype);
    for (int rank = 0; rank < world.ranks(); rank++) {
        const rondo_plan &plan = *launch[(size_t)rank];
        uint64_t next = 0;
        ASSERT_EQ(plan.args.blocks, launch[0]->args.blocks);
        for (uint32_t channel = 0; channel < plan.args.blocks; channel++) {
            const rondo_block &block = plan.blocks[channel];
            rondo_tree_node node = world.NodeOf(rank, channel);
            ASSERT_EQ(block.works[0], 1u);
            ASSERT_EQ(block.works[1], node.parent >= 0 ? 1u : 0u) << "the root has nothing to take";
            const rondo_work &up = plan.works[block.first[0]];
            const rondo_work &first = launch[0]->works[launch[0]->blocks[channel].first[0]];
            ASSERT_EQ(up.kind, RONDO_WORK_TREE_UP);
            ASSERT_EQ((uint64_t)up.send, World::SendBase(rank) + next * bytes);
            ASSERT_EQ((uint64_t)up.recv, World::RecvBase(rank) + next * bytes);
            ASSERT_EQ(up.chunk, first.chunk);
            ASSERT_EQ(up.count, first.count);
            ASSERT_LE(up.chunk * WireBytes(up), world.Capacity(up));
            ASSERT_GT(up.chunk, 0u);
            next += up.count;
            if (node.parent < 0)
                continue;
            const rondo_work &down = plan.works[block.first[1]];
            ASSERT_EQ(down.kind, RONDO_WORK_TREE_DOWN);
            ASSERT_EQ(down.recv, up.recv);
            ASSERT_EQ(down.send, nullptr);
            ASSERT_EQ(down.chunk, up.chunk);
            ASSERT_EQ(down.count, up.count);
            ASSERT_EQ(down.fingerprint, up.fingerprint);
            ASSERT_EQ(down.flags, up.flags & RONDO_WORK_PRECISE);
            ASSERT_EQ(down.redop, RONDO_REDOP_SUM);
        }
        ASSERT_EQ(next, count) << "rank " << rank;
    }
}

const char *const kProtocols[] = {nullptr, "Simple", "LL", "LL128"};

TEST(PlanTree, EveryShapeRuns)
{
    std::mt19937 random(1);
    const ncclDataType_t types[] = {ncclFloat16, ncclFloat8e4m3, ncclFloat64, ncclInt8};
    for (int ranks = 2; ranks <= 10; ranks++)
        for (int hosts = 1; hosts <= ranks; hosts += 1 + hosts / 4)
            for (int channels = 1; channels <= 3; channels++) {
                World world(ranks, channels, 16384);
                world.hosts = hosts;
                world.algorithms = "Tree";
                world.protocols = kProtocols[(ranks + hosts + channels) % 4];
                world.is_precise = (ranks + hosts) % 2;
                ncclDataType_t dtype = types[(hosts + channels) % 4];
                uint64_t slot = 16384 / rondo_dtype_bytes(dtype);
                for (uint64_t count : {(uint64_t)1, (uint64_t)17, slot - 1, slot + 1, 40 * slot + 5,
                                       ((uint64_t)5 << 20) / 2 / rondo_dtype_bytes(dtype) + 3}) {
                    SCOPED_TRACE(testing::Message() << ranks << " ranks " << hosts << " hosts " << channels
                                                    << " channels count " << count);
                    std::vector<Plan> launch((size_t)ranks);
                    for (int rank = 0; rank < ranks; rank++) {
                        rondo_task task = MakeTask(RONDO_OP_ALL_REDUCE, rank, count, dtype);
                        task.redop = RONDO_REDOP_PREMULSUM;
                        task.flags = rank % 2 ? RONDO_WORK_SCALAR_POINTER : 0;
                        ASSERT_EQ(world.Build(rank, {task}, &launch[(size_t)rank]), ncclSuccess);
                    }
                    ASSERT_NO_FATAL_FAILURE(ExpectOneTree(world, launch, dtype, count));
                    Simulation simulation(world, launch, ScriptOf);
                    ASSERT_TRUE(simulation.Run(random)) << "stuck or wrong";
                }
            }
}

// Trees between messages and copies in one launch: two lists each, whatever order they come in.
TEST(PlanTree, GroupsWithMessagesRun)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        std::mt19937 random(seed);
        int ranks = 2 + (int)(random() % 7);
        World world(ranks, 1 + (int)(random() % 3), 4096);
        world.hosts = 1 + (int)(random() % (unsigned)ranks);
        world.algorithms = "AllReduce:Tree";
        world.protocols = kProtocols[random() % 4];
        world.max_pair_blocks = {1 + (uint32_t)(random() % 4)};
        std::vector<std::vector<rondo_task>> tasks((size_t)ranks);
        for (uint64_t number = 1; number <= 12; number++) {
            uint64_t count = random() % 3 ? random() % 5000 : 300000 + random() % 300000;
            bool is_tree = random() % 2;
            for (int rank = 0; rank < ranks; rank++)
                tasks[(size_t)rank].push_back(MakeTask(is_tree ? RONDO_OP_ALL_REDUCE : RONDO_OP_ALL_TO_ALL,
                                                       rank, count, ncclFloat32, 0, number));
        }
        std::vector<Plan> launch((size_t)ranks);
        for (int rank = 0; rank < ranks; rank++)
            ASSERT_EQ(world.Build(rank, tasks[(size_t)rank], &launch[(size_t)rank]), ncclSuccess)
                << rondo_error_last();
        Simulation simulation(world, launch, ScriptOf);
        ASSERT_TRUE(simulation.Run(random)) << "seed " << seed;
    }
}

// The whole of a small message goes through a rank at once.
TEST(PlanTree, ChunksFillTheWay)
{
    World world(8, 1, 131072);
    world.algorithms = "Tree";
    world.protocols = "Simple";
    for (int hosts : {1, 8}) {
        world.hosts = hosts;
        Plan small, large;
        ASSERT_EQ(world.Build(0, {MakeTask(RONDO_OP_ALL_REDUCE, 0, 100)}, &small), ncclSuccess);
        ASSERT_EQ(world.Build(0, {MakeTask(RONDO_OP_ALL_REDUCE, 0, 1 << 18)}, &large), ncclSuccess);
        EXPECT_EQ(small->works[0].chunk, 100u);
        EXPECT_EQ(large->works[0].chunk * 4, hosts == 1 ? 65536u : 131072u) << "two a level";
    }
}

ncclResult_t PlanOne(World &world, rondo_operation operation, ncclDataType_t dtype)
{
    Plan plan;
    return world.Build(1, {MakeTask(operation, 1, 1000, dtype)}, &plan);
}

TEST(PlanTree, WhatCannotGoByTreeIsRefused)
{
    World world(4);
    world.algorithms = "Tree";
    EXPECT_EQ(PlanOne(world, RONDO_OP_ALL_REDUCE, ncclFloat32), ncclSuccess);
    for (rondo_operation operation :
         {RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER, RONDO_OP_BROADCAST, RONDO_OP_REDUCE}) {
        EXPECT_EQ(PlanOne(world, operation, ncclFloat32), ncclInvalidUsage);
        std::string text = rondo_error_last();
        for (const char *needle : {rondo_operation_name(operation), "NCCL_ALGO=Tree",
                                   "possible here: Ring (Tree: it does AllReduce alone);"})
            EXPECT_NE(text.find(needle), std::string::npos) << text;
    }
    EXPECT_EQ(PlanOne(world, RONDO_OP_ALL_TO_ALL, ncclFloat32), ncclSuccess) << "messages have no algorithm";
}

// Its sums depend on who shares a host with whom.
TEST(PlanTree, DeterministicSumsOfFloatsAreRefused)
{
    World world(4);
    world.algorithms = "Tree";
    world.is_deterministic = true;
    EXPECT_EQ(PlanOne(world, RONDO_OP_ALL_REDUCE, ncclInt32), ncclSuccess) << "whose sums depend on nothing";
    for (ncclDataType_t dtype : {ncclFloat16, ncclFloat32, ncclFloat64, ncclFloat8e5m2}) {
        EXPECT_EQ(PlanOne(world, RONDO_OP_ALL_REDUCE, dtype), ncclInvalidUsage);
        EXPECT_NE(std::string(rondo_error_last()).find("NCCL_ALGO=Tree"), std::string::npos);
    }
}

TEST(PlanTree, AFailedConnectionIsPassedOn)
{
    World world(4, 2);
    world.algorithms = "Tree";
    for (int after = 0; after < 4; after++) {
        world.fail_end_after = after;
        EXPECT_EQ(PlanOne(world, RONDO_OP_ALL_REDUCE, ncclFloat32), ncclSystemError);
        EXPECT_NE(std::string(rondo_error_last()).find("no way to rank"), std::string::npos);
    }
}

} // namespace
