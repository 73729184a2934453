// The works of all ranks together are exactly the collective: no gap, no overlap, both ends of every wire
// alike.
#include "plan_world.h"

#include "chunking.h"

#include <functional>
#include <set>

namespace
{

struct Shape {
    rondo_operation operation;
    bool has_blocks; // count is of one rank's block
    bool reduces;
    bool is_rooted;
};

const Shape kShapes[] = {
    {RONDO_OP_ALL_REDUCE, false, true, false},    {RONDO_OP_ALL_GATHER, true, false, false},
    {RONDO_OP_REDUCE_SCATTER, true, true, false}, {RONDO_OP_BROADCAST, false, false, true},
    {RONDO_OP_REDUCE, false, true, true},
};

// NCCL_PROTO: unset, or one alone.
const char *const kProtocols[] = {nullptr, "Simple", "LL", "LL128"};

using Launch = std::vector<Plan>; // one plan a rank

Launch BuildAll(World &world, const std::function<rondo_task(int rank)> &task)
{
    Launch launch(world.ranks());
    for (int rank = 0; rank < world.ranks(); rank++)
        EXPECT_EQ(world.Build(rank, {task(rank)}, &launch[rank]), ncclSuccess) << rondo_error_last();
    return launch;
}

// Blocks, lists and the launch arguments hang together.
void ExpectWellFormed(const World &world, int rank, const rondo_plan &plan)
{
    const rondo_kernel_args &args = plan.args;
    uint32_t next = 0;

    ASSERT_EQ(args.rank, rank);
    ASSERT_EQ(args.ranks, world.ranks());
    ASSERT_EQ(args.order, world.order.data());
    ASSERT_EQ(args.fault, &plan.fault);
    ASSERT_GT(args.blocks, 0u);
    ASSERT_LE(args.blocks, RONDO_NOTES / 2u);
    for (uint32_t b = 0; b < args.blocks; b++) {
        for (int role = 0; role < 2; role++) {
            ASSERT_EQ(args.block[b].first[role], next);
            next += args.block[b].works[role];
        }
        ASSERT_GT(args.block[b].works[0] + args.block[b].works[1], 0u) << "an empty block";
    }
    ASSERT_EQ(next, args.works);
    for (uint32_t i = 0; i < args.works; i++)
        ASSERT_EQ(plan.works[i].chunk > 0, plan.works[i].kind != RONDO_WORK_COPY) << "work " << i;
}

void ExpectOneCollective(World &world, const Shape &shape, const Launch &launch, uint64_t count,
                         ncclDataType_t dtype, int root)
{
    uint64_t element = rondo_dtype_bytes(dtype);
    uint64_t wire = shape.reduces && world.is_precise ? rondo_dtype_wide_bytes(dtype) : element;
    const rondo_kernel_args &first = launch[0]->args;
    std::map<Wire, int> ends;

    for (int rank = 0; rank < world.ranks(); rank++) {
        const rondo_kernel_args &args = launch[rank]->args;
        uint64_t next = 0;

        ASSERT_NO_FATAL_FAILURE(ExpectWellFormed(world, rank, *launch[rank]));
        ASSERT_EQ(args.blocks, first.blocks);
        for (uint32_t b = 0; b < args.blocks; b++) {
            ASSERT_EQ(args.block[b].works[0], 1u);
            ASSERT_EQ(args.block[b].works[1], 0u);
            const rondo_work &work = args.work[args.block[b].first[0]],
                             &same = first.work[first.block[b].first[0]];
            // The ranges follow each other without gap, on every rank alike.
            ASSERT_EQ(work.channel, b);
            ASSERT_EQ((uint64_t)work.send, World::SendBase(rank) + next * element);
            ASSERT_EQ((uint64_t)work.recv, World::RecvBase(rank) + next * element);
            ASSERT_GT(work.count, 0u);
            next += work.count;
            ASSERT_EQ(work.kind, same.kind);
            ASSERT_EQ(work.count, same.count);
            ASSERT_EQ(work.chunk, same.chunk);
            ASSERT_EQ(work.fingerprint, same.fingerprint);
            ASSERT_EQ(work.flags, same.flags);
            ASSERT_EQ(work.protocol, same.protocol);
            ASSERT_EQ(work.stride, count);
            ASSERT_EQ(work.dtype, dtype);
            ASSERT_EQ(work.root, shape.is_rooted ? root : -1);
            ASSERT_GT(work.chunk, 0u);
            ASSERT_LE(work.chunk * wire, world.Capacity(work));
            ASSERT_EQ((work.flags & RONDO_WORK_PRECISE) != 0, wire != element);
            Wire in = world.WireOf(work.from), out = world.WireOf(work.to);
            ASSERT_EQ(std::get<1>(in), rank);
            ASSERT_EQ(std::get<0>(out), rank);
            ASSERT_EQ(std::get<2>(in), (int)b + work.protocol * kProtocolWires);
            ASSERT_EQ(std::get<2>(out), (int)b + work.protocol * kProtocolWires);
            ends[in]++;
            ends[out]++;
        }
        ASSERT_EQ(next, count);
    }
    // Every wire in use has both its ends in use.
    for (auto &[name, users] : ends)
        ASSERT_EQ(users, 2) << std::get<0>(name) << " to " << std::get<1>(name);
}

std::vector<uint64_t> Counts(const World &world, uint64_t element)
{
    uint64_t chunk = world.layout.ring_slot_bytes / element, n = (uint64_t)world.ranks();
    std::vector<uint64_t> counts = {1, 2, 3, 5, 17, 1001, (uint64_t)1 << 33, ((uint64_t)1 << 33) + 1};
    for (uint64_t edge :
         {chunk, chunk * n, 3 * chunk * n, RONDO_CHANNEL_BYTES / element, 2 * RONDO_CHANNEL_BYTES / element,
          RONDO_CHANNEL_BYTES / element / n, 2 * RONDO_CHANNEL_BYTES / element / n}) {
        for (uint64_t near : {edge - 1, edge, edge + 1})
            counts.push_back(near);
    }
    return counts;
}

TEST(PlanRing, EveryOperationRanksChannelsCountsRoots)
{
    for (int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 13, 16}) {
        for (int channels = 1; channels <= 3; channels++) {
            for (int mode = 0; mode < 4; mode++) {
                World world(ranks, channels, mode & 1 ? 1024 : 16384);
                world.protocols = kProtocols[(ranks + channels + mode / 2) % 4];
                world.is_precise = mode & 1;
                world.is_deterministic = mode & 2;
                ncclDataType_t dtype = std::vector<ncclDataType_t>{ncclFloat16, ncclFloat8e4m3, ncclFloat64,
                                                                   ncclInt8}[(ranks + mode) % 4];
                for (const Shape &shape : kShapes) {
                    for (uint64_t count : Counts(world, rondo_dtype_bytes(dtype))) {
                        for (int root : std::set<int>{0, ranks / 2, ranks - 1}) {
                            SCOPED_TRACE(testing::Message()
                                         << rondo_operation_name(shape.operation) << " ranks " << ranks
                                         << " channels " << channels << " mode " << mode << " count " << count
                                         << " root " << root);
                            Launch launch = BuildAll(world, [&](int rank) {
                                return MakeTask(shape.operation, rank, count, dtype, root);
                            });
                            ASSERT_NO_FATAL_FAILURE(
                                ExpectOneCollective(world, shape, launch, count, dtype, root));
                            if (!shape.is_rooted)
                                break;
                        }
                    }
                }
            }
        }
    }
}

TEST(PlanRing, RingsInAnyOrder)
{
    World world(5, 2);
    world.order = {0, 2, 4, 1, 3, 0, 3, 1, 4, 2};
    for (const Shape &shape : kShapes) {
        for (int root = 0; root < 5; root++) {
            uint64_t count = 3 * RONDO_CHANNEL_BYTES;
            Launch launch = BuildAll(
                world, [&](int rank) { return MakeTask(shape.operation, rank, count, ncclFloat32, root); });
            ASSERT_EQ(launch[0]->args.blocks, 2u);
            ASSERT_NO_FATAL_FAILURE(ExpectOneCollective(world, shape, launch, count, ncclFloat32, root));
            for (int rank = 0; rank < 5; rank++) {
                for (uint32_t b = 0; b < 2; b++) {
                    const rondo_work &work = launch[rank]->works[b];
                    for (int i = 0; i < 5; i++) {
                        if (world.order[b * 5 + i] == rank) {
                            EXPECT_EQ(work.to->peer_rank, world.order[b * 5 + (i + 1) % 5]);
                        }
                    }
                }
            }
        }
    }
}

TEST(PlanRing, ChainsNeedAnAscendingRing)
{
    World world(4);
    world.order = {0, 2, 1, 3};
    world.is_deterministic = true;
    Plan plan;
    EXPECT_EQ(world.Build(0, {MakeTask(RONDO_OP_ALL_REDUCE, 0, 10)}, &plan), ncclInternalError);
    EXPECT_EQ(world.Build(0, {MakeTask(RONDO_OP_ALL_REDUCE, 0, 10, ncclInt32)}, &plan), ncclSuccess)
        << "integers need no chain";
    EXPECT_EQ(plan->works[0].kind, RONDO_WORK_RING_ALL_REDUCE);
    EXPECT_EQ(world.Build(0, {MakeTask(RONDO_OP_BROADCAST, 0, 10)}, &plan), ncclSuccess)
        << "nor does data that only moves";
}

TEST(PlanRing, DeterministicMeansChains)
{
    World world(4);
    world.is_deterministic = true;
    Plan plan;
    ASSERT_EQ(world.Build(0,
                          {MakeTask(RONDO_OP_ALL_REDUCE, 0, 10), MakeTask(RONDO_OP_REDUCE_SCATTER, 0, 10),
                           MakeTask(RONDO_OP_REDUCE, 0, 10)},
                          &plan),
              ncclSuccess);
    EXPECT_EQ(plan->works[0].kind, RONDO_WORK_CHAIN_ALL_REDUCE);
    EXPECT_EQ(plan->works[1].kind, RONDO_WORK_CHAIN_REDUCE_SCATTER);
    EXPECT_EQ(plan->works[2].kind, RONDO_WORK_CHAIN_REDUCE);
}

TEST(PlanRing, SeveralCollectivesKeepTheirOrderOnEachChannel)
{
    World world(3, 3);
    Plan plan;
    std::vector<rondo_task> tasks;
    for (uint64_t i = 0; i < 30; i++)
        tasks.push_back(MakeTask(i % 2 ? RONDO_OP_ALL_REDUCE : RONDO_OP_ALL_GATHER, 1,
                                 (i % 5) * RONDO_CHANNEL_BYTES / 4 + 1, ncclFloat32, 0, i + 1));
    ASSERT_EQ(world.Build(1, tasks, &plan), ncclSuccess);
    ASSERT_NO_FATAL_FAILURE(ExpectWellFormed(world, 1, *plan));
    for (uint32_t b = 0; b < plan->args.blocks; b++) {
        for (uint32_t i = 1; i < plan->blocks[b].works[0]; i++)
            EXPECT_GT(plan->works[plan->blocks[b].first[0] + i].number,
                      plan->works[plan->blocks[b].first[0] + i - 1].number);
    }
    EXPECT_EQ(plan->blocks[0].works[0], 30u) << "all of them use channel 0";
}

TEST(PlanRing, NothingToDoIsNoPlan)
{
    for (int ranks : {1, 2, 5}) {
        World world(ranks);
        for (rondo_operation operation :
             {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER, RONDO_OP_BROADCAST,
              RONDO_OP_REDUCE, RONDO_OP_ALL_TO_ALL, RONDO_OP_GATHER, RONDO_OP_SCATTER}) {
            Plan plan;
            rondo_task task = MakeTask(operation, 0, 0);
            task.send = task.recv = nullptr;
            EXPECT_EQ(world.Build(0, {task}, &plan), ncclSuccess);
            EXPECT_EQ(plan, nullptr);
        }
        Plan plan;
        EXPECT_EQ(world.Build(0, {}, &plan), ncclSuccess);
        EXPECT_EQ(plan, nullptr);
    }
}

TEST(PlanRing, NullBuffersThatAreNotUsedStayNull)
{
    World world(3, 2);
    rondo_task task = MakeTask(RONDO_OP_REDUCE, 1, 3 * RONDO_CHANNEL_BYTES);
    task.recv = nullptr;
    Plan plan;
    ASSERT_EQ(world.Build(1, {task}, &plan), ncclSuccess);
    for (uint32_t i = 0; i < plan->args.works; i++)
        EXPECT_EQ(plan->works[i].recv, nullptr);
}

TEST(PlanRing, AloneCopiesOnlyWhatIsNotThere)
{
    World world(1);
    for (rondo_operation operation :
         {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER, RONDO_OP_BROADCAST,
          RONDO_OP_REDUCE, RONDO_OP_ALL_TO_ALL, RONDO_OP_GATHER, RONDO_OP_SCATTER}) {
        SCOPED_TRACE(rondo_operation_name(operation));
        rondo_task task = MakeTask(operation, 0, 11, ncclFloat16);
        Plan plan;
        ASSERT_EQ(world.Build(0, {task}, &plan), ncclSuccess);
        ASSERT_NO_FATAL_FAILURE(ExpectWellFormed(world, 0, *plan));
        ASSERT_EQ(plan->args.works, 1u);
        const rondo_work &work = plan->works[0];
        EXPECT_EQ(work.kind, RONDO_WORK_COPY);
        EXPECT_EQ(work.count * rondo_dtype_bytes((ncclDataType_t)work.dtype), 22u);
        EXPECT_EQ(work.send, task.send);
        EXPECT_EQ(work.recv, task.recv);
        task.recv = (void *)task.send;
        ASSERT_EQ(world.Build(0, {task}, &plan), ncclSuccess);
        EXPECT_EQ(plan, nullptr) << "in place";
    }
}

TEST(PlanRing, AloneStillScales)
{
    World world(1);
    rondo_task task = MakeTask(RONDO_OP_ALL_REDUCE, 0, 11, ncclFloat16);
    task.recv = (void *)task.send;
    task.redop = RONDO_REDOP_PREMULSUM;
    task.flags = RONDO_WORK_SCALAR_POINTER;
    task.scalar = 0x1234;
    Plan plan;
    ASSERT_EQ(world.Build(0, {task}, &plan), ncclSuccess);
    ASSERT_NO_FATAL_FAILURE(ExpectWellFormed(world, 0, *plan));
    ASSERT_EQ(plan->args.works, 1u);
    EXPECT_EQ(plan->works[0].redop, RONDO_REDOP_PREMULSUM);
    EXPECT_EQ(plan->works[0].dtype, ncclFloat16);
    EXPECT_EQ(plan->works[0].count, 11u);
    EXPECT_EQ(plan->works[0].scalar, 0x1234u);
    EXPECT_EQ(plan->works[0].flags, (uint32_t)RONDO_WORK_SCALAR_POINTER);
    task.redop = RONDO_REDOP_SUMDIV;
    task.dtype = ncclInt32;
    task.flags = 0;
    task.scalar = 1;
    ASSERT_EQ(world.Build(0, {task}, &plan), ncclSuccess);
    EXPECT_EQ(plan, nullptr) << "an average of one";
}

TEST(PlanRing, EveryFailingConnectionIsReported)
{
    rondo_task task = MakeTask(RONDO_OP_ALL_REDUCE, 0, 3 * RONDO_CHANNEL_BYTES);
    for (int nth = 0;; nth++) {
        World world(3, 3);
        world.fail_end_after = nth;
        Plan plan;
        ncclResult_t rc = world.Build(0, {task}, &plan);
        if (world.fail_end_after >= 0) {
            EXPECT_EQ(rc, ncclSuccess);
            EXPECT_EQ(nth, 6) << "two ends a channel";
            break;
        }
        EXPECT_NE(rc, ncclSuccess);
        EXPECT_EQ(plan, nullptr);
        EXPECT_NE(std::string(rondo_error_last()).find("no way to rank"), std::string::npos)
            << "the text of who failed";
    }
}

} // namespace
