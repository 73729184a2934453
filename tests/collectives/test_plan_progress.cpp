// Whatever ranks send each other in one launch each, it ends: a simulation with bounded slots in random
// order.
//
// A program is a sequence of messages and collectives; each rank plans its own part of it, with its own
// number of blocks, and all lists of all ranks then run, one slot at a time, in an order that a seeded
// generator picks. Nothing moving while something is unfinished is a deadlock. Every slot must be the one
// that the receiver expects.
#include "simulation.h"

#include <algorithm>
#include <random>

namespace
{

// The parts of a program that each rank sees, numbered as a communicator would.
class Program
{
  public:
    explicit Program(int ranks) : tasks(ranks), ranks_(ranks)
    {
    }

    void Message(int from, int to, uint64_t bytes)
    {
        uint64_t number = ++numbers_[{from, to}];
        tasks[from].push_back(MakeTask(RONDO_OP_SEND, from, bytes, ncclUint8, to, number));
        tasks[to].push_back(MakeTask(RONDO_OP_RECV, to, bytes, ncclUint8, from, number));
    }

    void Collective(rondo_operation operation, uint64_t count, int root)
    {
        collectives_++;
        for (int rank = 0; rank < ranks_; rank++)
            tasks[rank].push_back(MakeTask(operation, rank, count, ncclFloat32, root, collectives_));
    }

    std::vector<std::vector<rondo_task>> tasks;

  private:
    int ranks_;
    uint64_t collectives_ = 0;
    std::map<std::pair<int, int>, uint64_t> numbers_;
};

void ExpectEnds(World &world, const Program &program, std::mt19937 &random)
{
    std::vector<Plan> launch(world.ranks());
    for (int rank = 0; rank < world.ranks(); rank++)
        ASSERT_EQ(world.Build(rank, program.tasks[rank], &launch[rank]), ncclSuccess) << rondo_error_last();
    for (int order = 0; order < 3; order++) {
        Simulation simulation(world, launch, [](int, const rondo_work &work) { return MessageScript(work); });
        ASSERT_TRUE(simulation.Run(random)) << "stuck";
    }
}

World RandomWorld(std::mt19937 &random)
{
    int ranks = 2 + (int)(random() % 8);
    World world(ranks, 1, 1024, 1024);
    static const char *const protocols[] = {nullptr, "Simple", "LL", "LL128"};
    world.protocols = protocols[random() % 4];
    for (int rank = 0; rank < ranks; rank++)
        world.max_pair_blocks.push_back(random() % 3 == 0 ? 1 : (uint32_t)(random() % 12));
    return world;
}

uint64_t RandomBytes(std::mt19937 &random)
{
    switch (random() % 4) {
    case 0:
        return 0;
    case 1:
        return random() % 100;
    case 2:
        return random() % 3000;
    default:
        return random() % 40000; // more than the slots hold
    }
}

TEST(PlanProgress, SparseAndDensePatterns)
{
    for (unsigned seed = 0; seed < 400; seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        World world = RandomWorld(random);
        Program program(world.ranks());
        unsigned messages = seed % 2 ? random() % 200 : random() % 12;
        for (unsigned i = 0; i < messages; i++)
            program.Message((int)(random() % world.ranks()), (int)(random() % world.ranks()),
                            RandomBytes(random));
        ASSERT_NO_FATAL_FAILURE(ExpectEnds(world, program, random));
    }
}

TEST(PlanProgress, EveryPairInRandomOrder)
{
    for (unsigned seed = 0; seed < 100; seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        World world = RandomWorld(random);
        Program program(world.ranks());
        std::vector<std::pair<int, int>> pairs;
        for (int from = 0; from < world.ranks(); from++) {
            for (int to = 0; to < world.ranks(); to++)
                pairs.emplace_back(from, to);
        }
        std::shuffle(pairs.begin(), pairs.end(), random);
        for (auto &[from, to] : pairs)
            program.Message(from, to, 20000 + random() % 20000);
        ASSERT_NO_FATAL_FAILURE(ExpectEnds(world, program, random));
    }
}

TEST(PlanProgress, EachRankInAnOrderOfItsOwn)
{
    // Between two ranks the order is shared; how a rank mixes its peers is its own affair.
    for (unsigned seed = 0; seed < 200; seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        World world = RandomWorld(random);
        Program program(world.ranks());
        for (unsigned i = 0; i < 100; i++)
            program.Message((int)(random() % world.ranks()), (int)(random() % world.ranks()),
                            RandomBytes(random));
        for (auto &tasks : program.tasks) {
            // Sort by a random key of (peer, direction): keeps the order within each.
            std::map<std::pair<int, int>, unsigned> key;
            for (const rondo_task &task : tasks)
                key.emplace(std::make_pair(task.operation, task.root), random());
            std::stable_sort(tasks.begin(), tasks.end(), [&](const rondo_task &a, const rondo_task &b) {
                return key[{a.operation, a.root}] < key[{b.operation, b.root}];
            });
        }
        ASSERT_NO_FATAL_FAILURE(ExpectEnds(world, program, random));
    }
}

TEST(PlanProgress, ThousandsToOnePeer)
{
    std::mt19937 random(3);
    World world(3, 1, 1024, 1024);
    Program program(3);
    for (unsigned i = 0; i < 5000; i++)
        program.Message(0, 1, i % 1001);
    for (unsigned i = 0; i < 5000; i++)
        program.Message(1, 0, i % 1001);
    program.Message(2, 1, 100000);
    ASSERT_NO_FATAL_FAILURE(ExpectEnds(world, program, random));
}

TEST(PlanProgress, CompositesMixedWithMessages)
{
    for (unsigned seed = 0; seed < 200; seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        World world = RandomWorld(random);
        Program program(world.ranks());
        for (unsigned i = 0; i < 40; i++) {
            int a = (int)(random() % world.ranks()), b = (int)(random() % world.ranks());
            switch (random() % 5) {
            case 0:
                program.Collective(RONDO_OP_ALL_TO_ALL, random() % 3000, 0);
                break;
            case 1:
                program.Collective(RONDO_OP_GATHER, random() % 3000, a);
                break;
            case 2:
                program.Collective(RONDO_OP_SCATTER, random() % 3000, a);
                break;
            default:
                program.Message(a, b, RandomBytes(random));
            }
        }
        ASSERT_NO_FATAL_FAILURE(ExpectEnds(world, program, random));
    }
}

TEST(PlanProgress, NeighboursAndDirections)
{
    // Ring shifts both ways, with one block and with many: the classic way to block.
    for (int ranks = 2; ranks <= 9; ranks++) {
        for (uint32_t blocks : {1, 2, 9}) {
            std::mt19937 random((unsigned)ranks);
            World world(ranks, 1, 1024, 1024);
            world.max_pair_blocks = {blocks};
            Program program(ranks);
            for (int round = 0; round < 3; round++) {
                for (int rank = 0; rank < ranks; rank++) {
                    program.Message(rank, (rank + 1) % ranks, 30000);
                    program.Message(rank, (rank + ranks - 1) % ranks, 30000);
                }
            }
            ASSERT_NO_FATAL_FAILURE(ExpectEnds(world, program, random));
        }
    }
}

} // namespace
