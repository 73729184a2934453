// One-shot works: every rank plans the same cut, pieces fit slots, and what all give is exactly the
// collective.
#include "direct_places.h"

#include "device/push.h"

namespace
{

class PlanOneShot : public testing::TestWithParam<rondo_protocol>
{
  protected:
    World Force(int ranks, int channels)
    {
        World world(ranks, channels, 1024);
        world.has_windows = true;
        world.algorithms = "Direct";
        world.protocols = GetParam() == RONDO_PROTOCOL_LL ? "LL" : "LL128";
        return world;
    }

    void Plan(World &world, rondo_task task)
    {
        launch_.clear();
        launch_.resize((size_t)world.ranks());
        for (int rank = 0; rank < world.ranks(); rank++) {
            task.send = (const void *)World::SendBase(rank);
            task.recv = (void *)World::RecvBase(rank);
            ASSERT_EQ(world.Build(rank, {task}, &launch_[(size_t)rank]), ncclSuccess) << rondo_error_last();
        }
    }

    const rondo_work &Work(int rank, uint32_t i) const
    {
        return launch_[(size_t)rank]->works[i];
    }

    // What every rank must have in common, and room in the slots for what travels.
    void ExpectAlike(const World &world, const rondo_task &task, uint64_t wire)
    {
        uint64_t next = 0, element = rondo_dtype_bytes(task.dtype);
        uint64_t slot = rondo_layout_slot_bytes(&world.layout, RONDO_CONNECTION_DIRECT, GetParam());
        for (uint32_t i = 0; i < launch_[0]->args.works; i++) {
            const rondo_work &first = Work(0, i);
            for (int rank = 0; rank < world.ranks(); rank++) {
                const rondo_work &work = Work(rank, i);
                ASSERT_EQ(launch_[(size_t)rank]->args.works, launch_[0]->args.works);
                ASSERT_TRUE(IsDirect(work));
                ASSERT_EQ(work.protocol, GetParam());
                ASSERT_NE(work.peers, nullptr);
                ASSERT_EQ(work.kind, first.kind);
                ASSERT_EQ(work.count, first.count);
                ASSERT_EQ(work.chunk, first.chunk);
                ASSERT_EQ(work.fingerprint, first.fingerprint);
                ASSERT_EQ(work.root, first.root);
                ASSERT_EQ(work.channel, i);
                ASSERT_EQ(work.stride, task.count);
                ASSERT_EQ((uint64_t)work.send, World::SendBase(rank) + next * element);
                ASSERT_EQ((uint64_t)work.recv, World::RecvBase(rank) + next * element);
                ASSERT_GT(work.chunk, 0u);
                ASSERT_LE(work.chunk * wire, rondo_protocol_capacity(GetParam(), slot));
            }
            next += first.count;
        }
        ASSERT_EQ(next, task.count);
    }

    // What rank `to` gets of rank `from` over all works, piece by piece.
    void ExpectReads(const World &world, const rondo_task &task, int to, int from)
    {
        Place place = PlaceOf(task.operation, to, from, task.root, task.count, (uint64_t)world.ranks());
        std::vector<std::pair<uint64_t, uint64_t>> sources, targets;
        uint64_t base = 0;
        if (task.operation == RONDO_OP_REDUCE)
            place.moves = to == task.root;
        for (uint32_t w = 0; w < launch_[0]->args.works; w++) {
            rondo_pull pull = rondo_push_of(&Work(to, w), (uint32_t)world.ranks());
            ASSERT_NE(pull.shape, RONDO_PULL_PARTS);
            ASSERT_EQ(rondo_push_reads(&pull, (uint32_t)to, (uint32_t)from), place.moves);
            for (uint64_t i = 0; i < pull.pieces; i++) {
                rondo_part part = rondo_pull_source(&pull, i, (uint32_t)to);
                ASSERT_LE(part.count, pull.chunk);
                sources.emplace_back(base + part.first, part.count);
                targets.emplace_back(base + rondo_pull_target(&pull, i, (uint32_t)from), part.count);
            }
            base += Work(to, w).count;
        }
        if (!place.moves)
            return;
        ASSERT_NO_FATAL_FAILURE(ExpectCovers(sources, place.source, place.count));
        ASSERT_NO_FATAL_FAILURE(ExpectCovers(targets, place.target, place.count));
    }

    void ExpectOne(World &world, const rondo_task &task, uint64_t wire)
    {
        ASSERT_NO_FATAL_FAILURE(Plan(world, task));
        ASSERT_NO_FATAL_FAILURE(ExpectAlike(world, task, wire));
        for (int to = 0; to < world.ranks(); to++)
            for (int from = 0; from < world.ranks(); from++)
                ASSERT_NO_FATAL_FAILURE(ExpectReads(world, task, to, from));
    }

    std::vector<::Plan> launch_;
};

TEST_P(PlanOneShot, EveryOperationRanksChannelsAndCounts)
{
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int channels = 1; channels <= 3; channels++) {
            World world = Force(ranks, channels);
            uint64_t capacity = rondo_protocol_capacity(
                GetParam(), rondo_layout_slot_bytes(&world.layout, RONDO_CONNECTION_DIRECT, GetParam()));
            for (ncclDataType_t dtype : {ncclInt8, ncclFloat16, ncclFloat64}) {
                uint64_t bytes = rondo_dtype_bytes(dtype), edge = capacity / bytes;
                for (uint64_t count : {(uint64_t)1, (uint64_t)17, edge - 1, edge, edge + 1, 9 * edge + 5,
                                       ((uint64_t)3 << 20) / bytes})
                    for (rondo_operation operation : kOperations) {
                        rondo_task task =
                            MakeTask(operation, 0, count, dtype, (int)(count % (unsigned)ranks));
                        SCOPED_TRACE(testing::Message()
                                     << rondo_operation_name(operation) << " ranks " << ranks << " channels "
                                     << channels << " count " << count);
                        ASSERT_NO_FATAL_FAILURE(ExpectOne(world, task, bytes));
                    }
            }
        }
}

// Ranks scale by their own scalars before they give, and do not round.
TEST_P(PlanOneShot, ScaledInputsTravelWide)
{
    World world = Force(3, 1);
    for (ncclDataType_t dtype : {ncclFloat8e4m3, ncclBfloat16, ncclFloat32, ncclInt8})
        for (rondo_operation operation : {RONDO_OP_ALL_REDUCE, RONDO_OP_REDUCE_SCATTER, RONDO_OP_REDUCE}) {
            rondo_task task = MakeTask(operation, 0, 5000, dtype);
            task.redop = RONDO_REDOP_PREMULSUM;
            ASSERT_NO_FATAL_FAILURE(ExpectOne(world, task, rondo_dtype_wide_bytes(dtype)));
        }
}

// What others would have to read goes through no bounce area: nobody reads it.
TEST_P(PlanOneShot, UnmappedBuffersMakeNoDifference)
{
    World world = Force(2, 1);
    world.unmapped = ~0u;
    for (rondo_operation operation : kOperations) {
        ASSERT_NO_FATAL_FAILURE(Plan(world, MakeTask(operation, 0, 100)));
        for (int rank = 0; rank < 2; rank++)
            EXPECT_EQ(Work(rank, 0).flags, 0u);
    }
}

std::string NameOf(const testing::TestParamInfo<rondo_protocol> &info)
{
    return info.param == RONDO_PROTOCOL_LL ? "LL" : "LL128";
}

INSTANTIATE_TEST_SUITE_P(Protocols, PlanOneShot, testing::Values(RONDO_PROTOCOL_LL, RONDO_PROTOCOL_LL128),
                         NameOf);

// The way an operation takes, or the error.
std::string WayOf(World &world, const rondo_task &task)
{
    ::Plan plan;
    if (world.Build(0, {task}, &plan) != ncclSuccess)
        return rondo_error_last();
    return std::string(IsDirect(plan->works[0]) ? "direct " : "other ") +
           rondo_protocol_name((rondo_protocol)plan->works[0].protocol);
}

TEST(PlanOneShotWay, SmallMessagesOfMappedRanks)
{
    World world(4);
    for (rondo_operation operation : kOperations) {
        rondo_task small = MakeTask(operation, 0, 2), large = MakeTask(operation, 0, 64 << 10);
        world.has_windows = false;
        EXPECT_EQ(WayOf(world, small).substr(0, 5), "other");
        world.has_windows = true;
        EXPECT_EQ(WayOf(world, small), "direct LL");
        EXPECT_NE(WayOf(world, large), "direct LL");
        world.direct_bytes = 0;
        EXPECT_EQ(WayOf(world, small), "direct Simple") << "as RONDO_DIRECT_BYTES asks";
        world.direct_bytes = UINT64_MAX;
        World many(100);
        many.has_windows = true;
        EXPECT_NE(WayOf(many, small), "direct LL") << "slots for each pair of very many ranks";
    }
    EXPECT_EQ(WayOf(world, MakeTask(RONDO_OP_SEND, 0, 2, ncclFloat32, 1)), "other Simple");
}

// The larger never takes what is for the small, by bytes for one peer whatever the operation.
TEST(PlanOneShotWay, ThresholdIsOfBytesForAPeer)
{
    World world(4);
    world.has_windows = true;
    for (rondo_operation operation : kOperations) {
        uint64_t last = 0, first_other = 0;
        for (uint64_t count = 1; count < 40000; count += 13) {
            bool is_small = WayOf(world, MakeTask(operation, 0, count, ncclInt8)) == "direct LL";
            last = is_small ? count : last;
            first_other = !is_small && first_other == 0 ? count : first_other;
        }
        EXPECT_LT(last, first_other) << rondo_operation_name(operation);
        EXPECT_GE(last, 512u);
    }
}

TEST(PlanOneShotWay, DeterministicSumsDoNotDependOnTheWay)
{
    World world(4);
    world.has_windows = true;
    world.is_deterministic = true;
    EXPECT_EQ(WayOf(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 8, ncclFloat32)), "direct LL");
    EXPECT_EQ(WayOf(world, MakeTask(RONDO_OP_ALL_GATHER, 0, 8, ncclBfloat16)), "direct LL");
    EXPECT_EQ(WayOf(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 8, ncclBfloat16)).substr(0, 5), "other");
    rondo_task greatest = MakeTask(RONDO_OP_ALL_REDUCE, 0, 8, ncclBfloat16);
    greatest.redop = RONDO_REDOP_MAX;
    EXPECT_EQ(WayOf(world, greatest), "direct LL") << "never rounded";
    world.algorithms = "Direct";
    std::string text = WayOf(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 8, ncclBfloat16));
    EXPECT_NE(text.find("NCCL_ALGO=Direct allows none of what is possible here: Ring (Direct: "
                        "RONDO_DETERMINISTIC is set"),
              std::string::npos)
        << text;
    world.is_precise = true;
    EXPECT_EQ(WayOf(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 8, ncclBfloat16)), "direct LL");
}

TEST(PlanOneShotWay, ManyRanksHaveNoPiecesToReadButSlots)
{
    World many(1024, 1, 1024);
    many.has_windows = true;
    many.algorithms = "Direct";
    EXPECT_EQ(WayOf(many, MakeTask(RONDO_OP_ALL_REDUCE, 0, 64 << 10)), "direct LL");
    many.protocols = "Simple";
    std::string text = WayOf(many, MakeTask(RONDO_OP_ALL_REDUCE, 0, 64 << 10));
    EXPECT_NE(
        text.find(
            "NCCL_PROTO=Simple allows none of what is possible here: LL, LL128 (Simple: NCCL_BUFFSIZE is"),
        std::string::npos)
        << text;
}

TEST(PlanOneShotWay, FailureToConnectIsPassedOn)
{
    World world(2);
    world.has_windows = true;
    world.fails_direct = true;
    ::Plan plan;
    EXPECT_EQ(world.Build(0, {MakeTask(RONDO_OP_ALL_REDUCE, 0, 2)}, &plan), ncclSystemError);
    EXPECT_EQ(plan, nullptr);
}

} // namespace
