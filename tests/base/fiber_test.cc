// Fibers: order of control, many of them, moving between threads, deep stacks, the guard page.
#include "base/fiber.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace
{

rondo_fiber *Create(size_t stack_bytes = 16384)
{
    rondo_fiber *fiber = nullptr;
    EXPECT_EQ(rondo_fiber_create(stack_bytes, &fiber), ncclSuccess);
    return fiber;
}

struct Trace {
    std::string text;
};

TEST(Fiber, ControlAlternates)
{
    Trace trace;
    rondo_fiber *fiber = Create();
    rondo_fiber_prepare(
        fiber,
        [](rondo_fiber *self, void *argument) {
            auto *seen = static_cast<Trace *>(argument);
            seen->text += "a";
            rondo_fiber_yield(self);
            seen->text += "b";
            rondo_fiber_yield(self);
            seen->text += "c";
        },
        &trace);
    EXPECT_EQ(trace.text, "") << "prepare must not run the function";
    EXPECT_FALSE(rondo_fiber_resume(fiber));
    trace.text += "1";
    EXPECT_FALSE(rondo_fiber_resume(fiber));
    trace.text += "2";
    EXPECT_TRUE(rondo_fiber_resume(fiber));
    EXPECT_EQ(trace.text, "a1b2c");
    rondo_fiber_destroy(fiber);
}

TEST(Fiber, RunsOneFunctionAfterAnother)
{
    rondo_fiber *fiber = Create();
    long sum = 0;
    for (int i = 0; i < 100000; i++) {
        rondo_fiber_prepare(
            fiber, [](rondo_fiber *, void *argument) { ++*static_cast<long *>(argument); }, &sum);
        ASSERT_TRUE(rondo_fiber_resume(fiber));
    }
    EXPECT_EQ(sum, 100000);
    rondo_fiber_destroy(fiber);
}

struct Pair {
    rondo_fiber *inner;
    std::string text;
};

TEST(Fiber, ResumesAnotherFromInside)
{
    Pair pair{Create(), ""};
    rondo_fiber *outer = Create();
    rondo_fiber_prepare(
        pair.inner,
        [](rondo_fiber *self, void *argument) {
            static_cast<Pair *>(argument)->text += "i";
            rondo_fiber_yield(self);
            static_cast<Pair *>(argument)->text += "I";
        },
        &pair);
    rondo_fiber_prepare(
        outer,
        [](rondo_fiber *self, void *argument) {
            auto *shared = static_cast<Pair *>(argument);
            shared->text += "o";
            EXPECT_FALSE(rondo_fiber_resume(shared->inner));
            shared->text += "O";
            rondo_fiber_yield(self);
            shared->text += "!";
        },
        &pair);
    EXPECT_FALSE(rondo_fiber_resume(outer));
    EXPECT_TRUE(rondo_fiber_resume(pair.inner)) << "begun inside outer, ended outside";
    EXPECT_TRUE(rondo_fiber_resume(outer));
    EXPECT_EQ(pair.text, "oiOI!");
    rondo_fiber_destroy(outer);
    rondo_fiber_destroy(pair.inner);
}

TEST(Fiber, ThousandsTakeTurns)
{
    constexpr int kFibers = 3000, kRounds = 5;
    std::vector<rondo_fiber *> fibers;
    std::vector<int> counts(kFibers, 0);
    for (int i = 0; i < kFibers; i++) {
        fibers.push_back(Create(4096));
        rondo_fiber_prepare(
            fibers[i],
            [](rondo_fiber *self, void *argument) {
                for (int round = 0; round < kRounds; round++) {
                    ++*static_cast<int *>(argument);
                    rondo_fiber_yield(self);
                }
            },
            &counts[i]);
    }
    for (int round = 0; round <= kRounds; round++)
        for (int i = 0; i < kFibers; i++)
            ASSERT_EQ(rondo_fiber_resume(fibers[i]), round == kRounds);
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int count) { return count == kRounds; }));
    for (rondo_fiber *fiber : fibers)
        rondo_fiber_destroy(fiber);
}

// A frame whose address is known to differ from any other thread's: the fiber keeps its own stack wherever it
// runs.
void CountOnStack(rondo_fiber *self, void *argument)
{
    volatile int local = 0;
    for (int i = 0; i < 50; i++) {
        local = local + 1;
        rondo_fiber_yield(self);
    }
    *static_cast<int *>(argument) = local;
}

TEST(Fiber, MovesBetweenThreads)
{
    int result = 0;
    bool is_done = false;
    rondo_fiber *fiber = Create();
    rondo_fiber_prepare(fiber, CountOnStack, &result);
    while (!is_done)
        std::thread([&] { is_done = rondo_fiber_resume(fiber); }).join();
    EXPECT_EQ(result, 50);
    rondo_fiber_destroy(fiber);
}

TEST(Fiber, NeverResumedCanBeDestroyed)
{
    rondo_fiber_destroy(nullptr);
    rondo_fiber *idle = Create();
    rondo_fiber_destroy(idle);
    rondo_fiber *prepared = Create();
    rondo_fiber_prepare(
        prepared, [](rondo_fiber *, void *) { FAIL(); }, nullptr);
    rondo_fiber_destroy(prepared);
}

int Descend(int depth)
{
    volatile char frame[1024];
    std::memset(const_cast<char *>(frame), depth & 0x7f, sizeof(frame));
    int below = depth > 0 ? Descend(depth - 1) : 0;
    return below + (frame[1023] == (depth & 0x7f));
}

TEST(Fiber, UsesAllOfADeepStack)
{
    constexpr int kDepth = 700; // about 3/4 MiB of a MiB
    int result = 0;
    rondo_fiber *fiber = Create(1 << 20);
    rondo_fiber_prepare(
        fiber, [](rondo_fiber *, void *argument) { *static_cast<int *>(argument) = Descend(kDepth); },
        &result);
    EXPECT_TRUE(rondo_fiber_resume(fiber));
    EXPECT_EQ(result, kDepth + 1);
    rondo_fiber_destroy(fiber);
}

// Access rights of the mapping that ends where the one around address begins, "" when there is a gap.
std::string RightsBelow(const void *address)
{
    FILE *maps = std::fopen("/proc/self/maps", "re");
    char line[512], rights[8];
    unsigned long low, high, last_high = 0, wanted = reinterpret_cast<unsigned long>(address);
    std::string last_rights, answer;
    while (std::fgets(line, sizeof(line), maps) &&
           std::sscanf(line, "%lx-%lx %7s", &low, &high, rights) == 3) {
        if (low <= wanted && wanted < high)
            answer = last_high == low ? last_rights : "";
        last_high = high;
        last_rights = rights;
    }
    std::fclose(maps);
    return answer;
}

TEST(Fiber, GuardPageLiesBelowTheStack)
{
    std::string rights;
    rondo_fiber *fiber = Create(1 << 18); // stdio runs on it
    rondo_fiber_prepare(
        fiber,
        [](rondo_fiber *, void *argument) {
            *static_cast<std::string *>(argument) = RightsBelow(__builtin_frame_address(0));
        },
        &rights);
    EXPECT_TRUE(rondo_fiber_resume(fiber));
    EXPECT_EQ(rights, "---p");
    rondo_fiber_destroy(fiber);
}

TEST(Fiber, RefusesAnImpossibleStack)
{
    rondo_fiber *fiber = nullptr;
    EXPECT_NE(rondo_fiber_create(SIZE_MAX - 5, &fiber), ncclSuccess);
    EXPECT_NE(rondo_fiber_create(SIZE_MAX / 16, &fiber), ncclSuccess);
    EXPECT_EQ(fiber, nullptr);
}

} // namespace
