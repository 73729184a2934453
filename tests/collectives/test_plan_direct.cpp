// Direct works: every rank plans the same cut, and what all of them read is exactly the collective.
#include "direct_places.h"

#include "device/pull.h"

namespace
{

class PlanDirect : public testing::Test
{
  protected:
    // All ranks' plans of one operation.
    void Plan(World &world, rondo_operation operation, uint64_t count, ncclDataType_t dtype, int root)
    {
        launch_.clear();
        launch_.resize((size_t)world.ranks());
        for (int rank = 0; rank < world.ranks(); rank++)
            ASSERT_EQ(
                world.Build(rank, {MakeTask(operation, rank, count, dtype, root)}, &launch_[(size_t)rank]),
                ncclSuccess)
                << rondo_error_last();
    }

    const rondo_work &Work(int rank, uint32_t i) const
    {
        return launch_[(size_t)rank]->works[i];
    }

    // What every rank must have in common, and room for what goes through bounce areas.
    void ExpectAlike(const World &world, uint64_t count, uint64_t element)
    {
        uint32_t works = launch_[0]->args.works;
        uint64_t next = 0;
        for (uint32_t i = 0; i < works; i++) {
            const rondo_work &first = Work(0, i);
            for (int rank = 0; rank < world.ranks(); rank++) {
                const rondo_work &work = Work(rank, i);
                ASSERT_EQ(launch_[(size_t)rank]->args.works, works);
                ASSERT_TRUE(IsDirect(work));
                ASSERT_EQ(work.kind, first.kind);
                ASSERT_EQ(work.count, first.count);
                ASSERT_EQ(work.chunk, first.chunk);
                ASSERT_EQ(work.fingerprint, first.fingerprint);
                ASSERT_EQ(work.root, first.root);
                ASSERT_EQ(work.channel, i);
                ASSERT_EQ(work.stride, count);
                ASSERT_EQ((uint64_t)work.send, World::SendBase(rank) + next * element);
                ASSERT_EQ((uint64_t)work.recv, World::RecvBase(rank) + next * element);
                rondo_pull pull = rondo_pull_of(&work, (uint32_t)world.ranks());
                ASSERT_LE(rondo_pull_bounce(&pull) * element, work.bounce_bytes);
            }
            next += first.count;
        }
        ASSERT_EQ(next, count);
    }

    // What reader `to` takes of rank `from` over all works, piece by piece.
    void ExpectReads(const World &world, rondo_operation operation, int to, int from, int root,
                     uint64_t count)
    {
        Place place = PlaceOf(operation, to, from, root, count, (uint64_t)world.ranks());
        std::vector<std::pair<uint64_t, uint64_t>> sources, targets;
        uint64_t base = 0;
        for (uint32_t w = 0; w < launch_[0]->args.works; w++) {
            rondo_pull pull = rondo_pull_of(&Work(to, w), (uint32_t)world.ranks());
            ASSERT_EQ(rondo_pull_reads(&pull, (uint32_t)to, (uint32_t)from), place.moves);
            for (uint64_t i = 0; i < pull.pieces; i++) {
                rondo_part part = rondo_pull_source(&pull, i, (uint32_t)to);
                ASSERT_LE(part.first + part.count, rondo_pull_whole(&pull));
                ASSERT_LE(rondo_pull_offset(&pull, i, (uint32_t)to) + part.count, rondo_pull_piece(&pull, i));
                ASSERT_LE(rondo_pull_piece(&pull, i), rondo_pull_chunks(&pull) * pull.chunk);
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

    // All-reduce and reduce: the parts of all ranks together are the whole, and a piece holds them as it
    // says.
    void ExpectParts(const World &world, uint64_t count)
    {
        std::vector<std::pair<uint64_t, uint64_t>> parts;
        uint64_t base = 0;
        for (uint32_t w = 0; w < launch_[0]->args.works; w++) {
            rondo_pull pull = rondo_pull_of(&Work(0, w), (uint32_t)world.ranks());
            for (uint64_t i = 0; i < pull.pieces; i++) {
                std::vector<std::pair<uint64_t, uint64_t>> inside;
                for (uint32_t r = 0; r < pull.ranks; r++) {
                    rondo_part part = rondo_pull_source(&pull, i, r);
                    parts.emplace_back(base + part.first, part.count);
                    inside.emplace_back(rondo_pull_offset(&pull, i, r), part.count);
                    ASSERT_LE(part.count, pull.chunk);
                }
                ASSERT_NO_FATAL_FAILURE(ExpectCovers(inside, 0, rondo_pull_piece(&pull, i)));
            }
            base += Work(0, w).count;
        }
        ASSERT_NO_FATAL_FAILURE(ExpectCovers(parts, 0, count));
    }

    void ExpectOne(World &world, rondo_operation operation, uint64_t count, ncclDataType_t dtype, int root)
    {
        ASSERT_NO_FATAL_FAILURE(Plan(world, operation, count, dtype, root));
        ASSERT_NO_FATAL_FAILURE(ExpectAlike(world, count, rondo_dtype_bytes(dtype)));
        if (operation == RONDO_OP_ALL_REDUCE || operation == RONDO_OP_REDUCE) {
            ASSERT_NO_FATAL_FAILURE(ExpectParts(world, count));
            return;
        }
        for (int to = 0; to < world.ranks(); to++)
            for (int from = 0; from < world.ranks(); from++)
                ASSERT_NO_FATAL_FAILURE(ExpectReads(world, operation, to, from, root, count));
    }

    std::vector<::Plan> launch_;
};

TEST_F(PlanDirect, EveryOperationRanksChannelsAndCounts)
{
    for (int ranks = 2; ranks <= 8; ranks++)
        for (int channels = 1; channels <= 3; channels++) {
            World world(ranks, channels, 1024);
            world.has_windows = true;
            world.direct_bytes = 0;
            uint64_t piece = rondo_layout_piece_bytes(&world.layout), n = (uint64_t)ranks;
            for (ncclDataType_t dtype : {ncclInt8, ncclFloat16, ncclFloat64}) {
                uint64_t elements = piece / rondo_dtype_bytes(dtype);
                for (uint64_t edge : {elements / n, elements, n * elements, ((uint64_t)3 << 20) / n})
                    for (uint64_t count : {(uint64_t)1, (uint64_t)17, edge - 1, edge, edge + 1})
                        for (rondo_operation operation : kOperations) {
                            int root = (int)(count % n);
                            SCOPED_TRACE(testing::Message()
                                         << rondo_operation_name(operation) << " ranks " << ranks
                                         << " channels " << channels << " count " << count);
                            ASSERT_NO_FATAL_FAILURE(ExpectOne(world, operation, count, dtype, root));
                        }
            }
        }
}

TEST_F(PlanDirect, BeyondTwoToTheThirtyTwo)
{
    World world(3, 2);
    world.has_windows = true;
    for (rondo_operation operation : kOperations)
        ASSERT_NO_FATAL_FAILURE(ExpectOne(world, operation, ((uint64_t)1 << 32) + 7, ncclInt8, 1));
}

// Whose buffers go through bounce areas is each rank's own affair; everything else stays as it is.
TEST_F(PlanDirect, UnmappedBuffersAreBounced)
{
    World world(3);
    world.has_windows = true;
    world.direct_bytes = 0;
    for (rondo_operation operation : kOperations)
        for (unsigned unmapped = 0; unmapped < 64; unmapped++) {
            world.unmapped = unmapped;
            ASSERT_NO_FATAL_FAILURE(Plan(world, operation, 1000, ncclFloat32, 1));
            ASSERT_NO_FATAL_FAILURE(ExpectAlike(world, 1000, 4));
            bool is_roots = operation == RONDO_OP_BROADCAST || operation == RONDO_OP_SCATTER;
            for (int rank = 0; rank < 3; rank++) {
                bool send = unmapped >> (2 * rank) & 1, recv = unmapped >> (2 * rank + 1) & 1;
                EXPECT_EQ((Work(rank, 0).flags & RONDO_WORK_BOUNCE_SEND) != 0,
                          send && (!is_roots || rank == 1));
                EXPECT_EQ((Work(rank, 0).flags & RONDO_WORK_BOUNCE_RECV) != 0,
                          recv && operation == RONDO_OP_ALL_REDUCE);
            }
        }
}

// Nobody may read in a rank's memory what the rank overwrites, though such a call has no result to speak of.
TEST_F(PlanDirect, AllToAllInPlaceIsBounced)
{
    World world(4);
    world.has_windows = true;
    for (bool in_place : {false, true}) {
        rondo_task task = MakeTask(RONDO_OP_ALL_TO_ALL, 0, 1 << 20);
        ::Plan plan;
        if (in_place)
            task.send = task.recv;
        ASSERT_EQ(world.Build(0, {task}, &plan), ncclSuccess) << rondo_error_last();
        ASSERT_TRUE(IsDirect(plan->works[0]));
        EXPECT_EQ((plan->works[0].flags & RONDO_WORK_BOUNCE_SEND) != 0, in_place);
    }
}

bool IsPulled(World &world, const rondo_task &task)
{
    ::Plan plan;
    EXPECT_EQ(world.Build(0, {task}, &plan), ncclSuccess) << rondo_error_last();
    return plan && IsDirect(plan->works[0]) && plan->works[0].protocol == RONDO_PROTOCOL_SIMPLE;
}

TEST_F(PlanDirect, OnlyWhereAllMemoryIsMapped)
{
    World world(4);
    rondo_task task = MakeTask(RONDO_OP_ALL_REDUCE, 0, 64 << 20);
    EXPECT_FALSE(IsPulled(world, task));
    world.has_windows = true;
    EXPECT_TRUE(IsPulled(world, task));
    World many(1024, 1, 1024);
    many.has_windows = true;
    many.direct_bytes = 0;
    EXPECT_FALSE(IsPulled(many, task)) << "a piece has no room for so many ranks";
}

TEST_F(PlanDirect, FromTheBytesAgreedOn)
{
    World world(4);
    world.has_windows = true;
    world.direct_bytes = 4096;
    EXPECT_FALSE(IsPulled(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 1023)));
    EXPECT_TRUE(IsPulled(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 1024)));
    EXPECT_FALSE(IsPulled(world, MakeTask(RONDO_OP_ALL_GATHER, 0, 255))) << "four blocks";
    EXPECT_TRUE(IsPulled(world, MakeTask(RONDO_OP_ALL_GATHER, 0, 256)));
    EXPECT_FALSE(IsPulled(world, MakeTask(RONDO_OP_SEND, 0, 1 << 20, ncclFloat32, 1)));
}

// Direct sums of narrow types are rounded once, chains' at every rank: one or the other, for all sizes.
TEST_F(PlanDirect, DeterministicSumsDoNotDependOnTheWay)
{
    World world(4);
    world.has_windows = true;
    world.is_deterministic = true;
    EXPECT_TRUE(IsPulled(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 64 << 20, ncclFloat32)));
    EXPECT_FALSE(IsPulled(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 64 << 20, ncclBfloat16)));
    EXPECT_TRUE(IsPulled(world, MakeTask(RONDO_OP_ALL_GATHER, 0, 64 << 20, ncclBfloat16)));
    world.is_precise = true;
    EXPECT_TRUE(IsPulled(world, MakeTask(RONDO_OP_ALL_REDUCE, 0, 64 << 20, ncclBfloat16)));
}

TEST_F(PlanDirect, FailureToConnectIsPassedOn)
{
    World world(2);
    world.has_windows = true;
    world.fails_direct = true;
    ::Plan plan;
    EXPECT_EQ(world.Build(0, {MakeTask(RONDO_OP_ALL_REDUCE, 0, 64 << 20)}, &plan), ncclSystemError);
    EXPECT_EQ(plan, nullptr);
}

} // namespace
