// The emulator itself: each wrong kernel is reported as what is wrong with it, and its correct twin never is.
#include "tiny.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace rondo_tiny;
using emulator::Failure;
using emulator::Fault;
using emulator::FaultName;
using emulator::Machine;

namespace tiny
{

Failure RunTiny(Machine &machine, const Tiny &tiny, uint64_t seed)
{
    Shared s;

    machine.memory().Clear();
    s.data = static_cast<uint64_t *>(machine.memory().Allocate("data", 256 * 8));
    s.words = static_cast<uint64_t *>(machine.memory().Allocate("words", 16 * 8));
    s.line = static_cast<rondo_line *>(machine.memory().Allocate("lines", 4 * sizeof(rondo_line)));
    s.page = static_cast<rondo_rank_page *>(machine.memory().Allocate("page", sizeof(rondo_rank_page)));
    s.pair = static_cast<ll_pair *>(machine.memory().Allocate("pairs", 4 * sizeof(ll_pair)));
    s.flagged = static_cast<unsigned char *>(machine.memory().Allocate("flagged lines", 4 * 128));
    for (unsigned rank = 0; rank < tiny.ranks; rank++)
        for (unsigned i = 0; i < tiny.launches; i++) {
            emulator::Launch launch;
            launch.rank = static_cast<int>(rank);
            launch.lanes = tiny.lanes;
            for (unsigned block = 0; block < tiny.blocks; block++)
                launch.teams.push_back({block, 0});
            launch.body = [s, &tiny](emulator::Lane &lane) {
                tiny.body(s, static_cast<unsigned>(lane.rank), lane.of->block);
            };
            machine.Enqueue(launch);
        }
    machine.AddStop(&s.page->stop);
    machine.max_operations = 200000;
    return machine.Run(seed);
}

namespace
{

class Tinies : public testing::TestWithParam<Tiny>
{
};

// A correct kernel passes on every seed. A wrong one is found by the first few, and never called something
// else.
TEST_P(Tinies, AreJudgedRightly)
{
    const Tiny &tiny = GetParam();
    Machine machine(0);
    unsigned found = 0, seeds = tiny.expected == Fault::NONE ? 1000 : 200;

    for (unsigned seed = 0; seed < seeds; seed++) {
        Failure failure = RunTiny(machine, tiny, seed);
        if (failure) {
            ASSERT_STREQ(FaultName(failure.kind), FaultName(tiny.expected)) << "seed " << seed << "\n"
                                                                            << failure.text;
        }
        found += failure.kind != Fault::NONE;
    }
    if (tiny.expected != Fault::NONE) {
        EXPECT_GE(found, 5u) << "of " << seeds << " seeds";
    }
    RecordProperty("found", static_cast<int>(found));
}

std::string NameOf(const testing::TestParamInfo<Tiny> &info)
{
    return std::string(info.param.name) + (info.param.expected == Fault::NONE ? "_right" : "_wrong");
}

INSTANTIATE_TEST_SUITE_P(Blocks, Tinies, testing::ValuesIn(BlockCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Messages, Tinies, testing::ValuesIn(MessageCases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Warps, Tinies, testing::ValuesIn(WarpCases()), NameOf);

TEST(Machine, SameSeedSameRun)
{
    Machine one(0), other(99);
    std::set<uint64_t> digests;

    for (const Tiny &tiny : MessageCases())
        for (unsigned seed = 0; seed < 8; seed++) {
            Failure a = RunTiny(one, tiny, seed);
            uint64_t digest = one.Digest(), operations = one.operations();
            Failure b = RunTiny(other, tiny, seed);
            ASSERT_EQ(digest, other.Digest());
            ASSERT_EQ(operations, other.operations());
            ASSERT_EQ(a.text, b.text);
            digests.insert(digest);
        }
    EXPECT_GT(digests.size(), MessageCases().size() * 4) << "seeds make no difference";
}

TEST(Machine, ReportsSayWhereLanesStand)
{
    Machine machine(0);

    for (const Tiny &tiny : MessageCases())
        if (std::string(tiny.name) == "WaitForEachOther" && tiny.expected == Fault::DEADLOCK) {
            std::string text = RunTiny(machine, tiny, 1).text;
            EXPECT_NE(text.find("rank 0 block 0 role 0"), std::string::npos) << text;
            EXPECT_NE(text.find("waits for a line 'lines' + 128"), std::string::npos) << text;
            EXPECT_NE(text.find("to reach 1, it is 0"), std::string::npos) << text;
            EXPECT_NE(text.find("lanes 1..31: waits at the barrier"), std::string::npos) << text;
        }
}

// Bytes between allocations belong to none of them.
TEST(Memory, GuardZonesAreOutOfBounds)
{
    emulator::Memory memory;
    unsigned char *a = static_cast<unsigned char *>(memory.Allocate("a", 100, false, 4));

    for (long i = -256; i < 356; i++)
        EXPECT_EQ(memory.Find(a + i, 1) != nullptr, i >= 0 && i < 100) << i;
    EXPECT_EQ(memory.Find(a + 97, 4), nullptr);
    EXPECT_NE(memory.Find(a + 96, 4), nullptr);
    EXPECT_EQ(memory.Find(nullptr, 1), nullptr);
    EXPECT_EQ(memory.Describe(a - 8), "'a' - 8 (of 100 bytes)");
    EXPECT_EQ(memory.Describe(a + 100), "'a' + 100 (of 100 bytes)");
}

TEST(MemoryDeathTest, KernelsCannotGoAroundThePort)
{
    emulator::Memory memory;
    volatile char *a = static_cast<volatile char *>(memory.Allocate("a", 100));
    volatile char *ends = static_cast<volatile char *>(memory.Allocate("ends", 100, true));

    EXPECT_DEATH(*a = 1, "");
    EXPECT_DEATH((void)*a, "");
    EXPECT_DEATH(*ends = 1, "");
    EXPECT_EQ(*ends, 0);
}

} // namespace
} // namespace tiny
