// The planner and schedule.h together, slot by slot: both ends of every ring and chain connection count the
// same slots of the same bytes, nothing gets stuck, and every rank writes each element of its result exactly
// once.
#include "simulation.h"

#include "device/schedule.h"

namespace
{

struct Part {
    rondo_action action;
    uint64_t keep, count; // where it lies in the result, elements
};

// What one rank does with one work, as the kernels do it.
class Course
{
  public:
    Course(const World &world, int rank, const rondo_work &work)
        : work_(work), n_((uint32_t)world.ranks()), rank_((uint32_t)rank)
    {
        order_ = world.order.data() + work.channel * n_;
        for (uint32_t i = 0; i < n_; i++) {
            if (order_[i] == rank)
                position_ = i;
            if (order_[i] == work.root)
                root_ = i;
        }
        pieces_ = rondo_pieces(work.count, work.chunk);
        element_bytes_ = rondo_dtype_bytes((ncclDataType_t)work.dtype);
        wire_bytes_ = work.flags & RONDO_WORK_PRECISE ? rondo_dtype_wide_bytes((ncclDataType_t)work.dtype)
                                                      : element_bytes_;
    }

    uint64_t Parts() const
    {
        switch (work_.kind) {
        case RONDO_WORK_RING_ALL_REDUCE:
            return rondo_ring_loops(work_.count, n_, work_.chunk) * RONDO_ALL_REDUCE_STEPS(n_);
        case RONDO_WORK_RING_ALL_GATHER:
        case RONDO_WORK_RING_REDUCE_SCATTER:
            return pieces_ * n_;
        case RONDO_WORK_CHAIN_ALL_REDUCE:
        case RONDO_WORK_CHAIN_REDUCE:
            return 2 * (pieces_ + Lag());
        case RONDO_WORK_CHAIN_REDUCE_SCATTER:
            return 2 * (pieces_ * n_ + Lag());
        default:
            return pieces_;
        }
    }

    Part At(uint64_t i) const
    {
        switch (work_.kind) {
        case RONDO_WORK_RING_ALL_REDUCE: {
            rondo_step step =
                rondo_all_reduce_step(position_, n_, (uint32_t)(i % RONDO_ALL_REDUCE_STEPS(n_)));
            rondo_part part =
                rondo_ring_chunk(work_.count, n_, work_.chunk, i / RONDO_ALL_REDUCE_STEPS(n_), step.part);
            return {step.action, part.first, part.count};
        }
        case RONDO_WORK_RING_ALL_GATHER: {
            rondo_step step = rondo_all_gather_step(position_, n_, (uint32_t)(i % n_));
            rondo_part piece = rondo_piece(work_.count, work_.chunk, i / n_);
            return {step.action, (uint64_t)order_[step.part] * work_.stride + piece.first, piece.count};
        }
        case RONDO_WORK_RING_REDUCE_SCATTER: {
            rondo_step step = rondo_reduce_scatter_step(position_, n_, (uint32_t)(i % n_));
            rondo_part piece = rondo_piece(work_.count, work_.chunk, i / n_);
            return {step.action, piece.first, piece.count};
        }
        case RONDO_WORK_RING_BROADCAST:
        case RONDO_WORK_RING_REDUCE: {
            rondo_part piece = rondo_piece(work_.count, work_.chunk, i);
            return {work_.kind == RONDO_WORK_RING_REDUCE ? rondo_reduce_action(position_, n_, root_)
                                                         : rondo_broadcast_action(position_, n_, root_),
                    piece.first, piece.count};
        }
        default:
            return ChainAt(i);
        }
    }

    bool Keeps(const Part &part) const
    {
        bool may = part.action == RONDO_ACTION_FINISH || part.action == RONDO_ACTION_FINISH_SEND ||
                   part.action == RONDO_ACTION_PASS || part.action == RONDO_ACTION_TAKE ||
                   (part.action == RONDO_ACTION_ENTER &&
                    (work_.kind == RONDO_WORK_RING_ALL_GATHER || work_.kind == RONDO_WORK_RING_BROADCAST));
        if (work_.kind == RONDO_WORK_CHAIN_REDUCE)
            return may && (int32_t)rank_ == work_.root;
        if (work_.kind == RONDO_WORK_CHAIN_REDUCE_SCATTER)
            return may && part.keep != UINT64_MAX;
        return may;
    }

    Action ActionOf(const Part &part) const
    {
        uint64_t wide = part.count * wire_bytes_, narrow = part.count * element_bytes_;
        if (part.count == 0)
            return {false, false, 0, 0};
        switch (part.action) {
        case RONDO_ACTION_ENTER:
            return {false, true, 0,
                    work_.kind == RONDO_WORK_RING_ALL_GATHER || work_.kind == RONDO_WORK_RING_BROADCAST
                        ? narrow
                        : wide};
        case RONDO_ACTION_FOLD:
            return {true, true, wide, wide};
        case RONDO_ACTION_FINISH:
            return {true, false, wide, 0};
        case RONDO_ACTION_FINISH_SEND:
            return {true, true, wide, narrow};
        case RONDO_ACTION_PASS:
            return {true, true, narrow, narrow};
        case RONDO_ACTION_TAKE:
            return {true, false, narrow, 0};
        default:
            return {false, false, 0, 0};
        }
    }

  private:
    uint64_t Lag() const
    {
        return rondo_chain_lag(n_, rondo_protocol_window((rondo_protocol)work_.protocol));
    }

    // Turn t: the partial sum of item t, then the result of item t - lag.
    Part ChainAt(uint64_t i) const
    {
        bool scatters = work_.kind == RONDO_WORK_CHAIN_REDUCE_SCATTER, is_result = i % 2;
        uint64_t items = pieces_ * (scatters ? n_ : 1), t = i / 2;
        if (is_result && t < Lag())
            return {RONDO_ACTION_NONE, 0, 0};
        t -= is_result ? Lag() : 0;
        if (t >= items)
            return {RONDO_ACTION_NONE, 0, 0};
        rondo_part piece = rondo_piece(work_.count, work_.chunk, scatters ? t / n_ : t);
        uint32_t last = work_.kind == RONDO_WORK_CHAIN_ALL_REDUCE ? n_ - 2
                        : scatters                                ? (uint32_t)(t % n_)
                                                                  : (uint32_t)work_.root;
        rondo_action action =
            is_result ? rondo_chain_result(rank_, n_, last) : rondo_chain_partial(rank_, n_, last);
        return {action, scatters && last != rank_ ? UINT64_MAX : piece.first, piece.count};
    }

    const rondo_work &work_;
    const int32_t *order_;
    uint32_t n_, rank_, position_ = 0, root_ = 0;
    uint64_t pieces_, element_bytes_, wire_bytes_;
};

// The elements of recv that a rank's plan writes, checked to be written once.
void ExpectWrittenOnce(const World &world, int rank, const rondo_plan &plan, uint64_t expected)
{
    std::vector<std::pair<uint64_t, uint64_t>> written;
    for (uint32_t i = 0; i < plan.args.works; i++) {
        const rondo_work &work = plan.works[i];
        Course course(world, rank, work);
        uint64_t base =
            ((uint64_t)work.recv - World::RecvBase(rank)) / rondo_dtype_bytes((ncclDataType_t)work.dtype);
        for (uint64_t p = 0; p < course.Parts(); p++) {
            Part part = course.At(p);
            if (part.count > 0 && course.Keeps(part))
                written.emplace_back(base + part.keep, part.count);
        }
    }
    std::sort(written.begin(), written.end());
    uint64_t next = 0;
    for (auto [first, count] : written) {
        ASSERT_EQ(first, next) << "rank " << rank;
        next = first + count;
    }
    ASSERT_EQ(next, expected) << "rank " << rank;
}

void ExpectRuns(World &world, rondo_operation operation, ncclDataType_t dtype, uint64_t count, int root,
                std::mt19937 &random)
{
    uint64_t n = (uint64_t)world.ranks();
    std::vector<Plan> launch(n);
    for (int rank = 0; rank < world.ranks(); rank++)
        ASSERT_EQ(world.Build(rank, {MakeTask(operation, rank, count, dtype, root)}, &launch[rank]),
                  ncclSuccess);
    Simulation simulation(world, launch, [&](int rank, const rondo_work &work) {
        auto course = std::make_shared<Course>(world, rank, work);
        return Script{course->Parts(), [course](uint64_t i) { return course->ActionOf(course->At(i)); }};
    });
    ASSERT_TRUE(simulation.Run(random)) << "stuck or wrong";
    for (int rank = 0; rank < world.ranks(); rank++) {
        uint64_t expected = operation == RONDO_OP_ALL_GATHER               ? n * count
                            : operation == RONDO_OP_REDUCE && rank != root ? 0
                                                                           : count;
        ASSERT_NO_FATAL_FAILURE(ExpectWrittenOnce(world, rank, *launch[rank], expected));
    }
}

// NCCL_PROTO: unset, or one alone.
const char *const kProtocols[] = {nullptr, "Simple", "LL", "LL128"};

const rondo_operation kOperations[] = {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER,
                                       RONDO_OP_BROADCAST, RONDO_OP_REDUCE};

TEST(PlanWire, EveryOperationRanksChannelsAndCounts)
{
    std::mt19937 random(1);
    for (int ranks = 2; ranks <= 10; ranks++) {
        for (int channels = 1; channels <= 3; channels++) {
            for (int mode = 0; mode < 4; mode++) {
                World world(ranks, channels, mode & 1 ? 131072 : 16384);
                world.protocols = kProtocols[(ranks + channels) % 4];
                world.is_precise = mode & 1;
                world.is_deterministic = mode & 2;
                ncclDataType_t dtype = std::vector<ncclDataType_t>{ncclFloat16, ncclFloat8e4m3, ncclFloat64,
                                                                   ncclBfloat16}[(ranks + mode) % 4];
                uint64_t slot = world.layout.ring_slot_bytes / rondo_dtype_bytes(dtype), n = (uint64_t)ranks;
                for (rondo_operation operation : kOperations) {
                    for (uint64_t count :
                         {(uint64_t)1, (uint64_t)2, (uint64_t)3, n - 1, n + 1, (uint64_t)1001, slot - 1, slot,
                          slot + 1, n * slot - 1, n * slot, n * slot + 1, 3 * n * slot + 5,
                          ((uint64_t)5 << 20) / 2 / rondo_dtype_bytes(dtype) + 3}) {
                        int root = (int)(random() % n);
                        SCOPED_TRACE(testing::Message() << rondo_operation_name(operation) << " ranks "
                                                        << ranks << " channels " << channels << " mode "
                                                        << mode << " count " << count << " root " << root);
                        ASSERT_NO_FATAL_FAILURE(ExpectRuns(world, operation, dtype, count, root, random));
                    }
                }
            }
        }
    }
}

TEST(PlanWire, EveryRootOnRingsInAnyOrder)
{
    std::mt19937 random(2);
    for (int round = 0; round < 6; round++) {
        World world(2 + (int)(random() % 7), 2, 4096);
        world.protocols = kProtocols[round % 4];
        for (int c = 0; c < 2; c++)
            std::shuffle(world.order.begin() + c * world.ranks(),
                         world.order.begin() + (c + 1) * world.ranks(), random);
        for (rondo_operation operation : kOperations) {
            for (int root = 0; root < world.ranks(); root++)
                ASSERT_NO_FATAL_FAILURE(ExpectRuns(world, operation, ncclFloat32, 600001, root, random));
        }
    }
}

TEST(PlanWire, EveryRootOfAChain)
{
    std::mt19937 random(3);
    for (const char *protocols : kProtocols) {
        for (int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 16}) {
            World world(ranks, 1, 1024);
            world.is_deterministic = true;
            world.protocols = protocols;
            for (int root = 0; root < ranks; root++)
                ASSERT_NO_FATAL_FAILURE(ExpectRuns(world, RONDO_OP_REDUCE, ncclFloat32, 20000, root, random));
        }
    }
}

TEST(PlanWire, BeyondTwoToTheThirtyTwo)
{
    std::mt19937 random(4);
    for (bool is_deterministic : {false, true}) {
        World world(3, 2, RONDO_SLOT_BYTES_MAX);
        world.is_deterministic = is_deterministic;
        for (rondo_operation operation : kOperations)
            ASSERT_NO_FATAL_FAILURE(
                ExpectRuns(world, operation, ncclFloat16, ((uint64_t)1 << 33) + 7, 1, random));
    }
}

TEST(PlanWire, OperationsOfOneGroupFollowEachOther)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        std::mt19937 random(seed);
        int ranks = 2 + (int)(random() % 6);
        World world(ranks, 1 + (int)(random() % 3), 16384);
        world.is_deterministic = random() % 2;
        world.protocols = kProtocols[random() % 4];
        std::vector<std::vector<rondo_task>> tasks(ranks);
        for (uint64_t number = 1; number <= 12; number++) {
            uint64_t count = random() % 3 ? random() % 5000 : 300000 + random() % 300000;
            rondo_operation operation = kOperations[random() % 5];
            int root = (int)(random() % ranks);
            for (int rank = 0; rank < ranks; rank++)
                tasks[rank].push_back(MakeTask(operation, rank, count, ncclFloat32, root, number));
        }
        std::vector<Plan> launch(ranks);
        for (int rank = 0; rank < ranks; rank++)
            ASSERT_EQ(world.Build(rank, tasks[rank], &launch[rank]), ncclSuccess);
        Simulation simulation(world, launch, [&](int rank, const rondo_work &work) {
            auto course = std::make_shared<Course>(world, rank, work);
            return Script{course->Parts(), [course](uint64_t i) { return course->ActionOf(course->At(i)); }};
        });
        ASSERT_TRUE(simulation.Run(random)) << "seed " << seed;
    }
}

} // namespace
