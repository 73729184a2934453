// The CPU's port by itself: words and lines that carry their flag, between threads.
#define RONDO_KERNELS rondo_port_calls
#include "port_calls.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

using namespace rondo_port_calls;

namespace
{

constexpr uint32_t kMessages = 2000;

// Compiled, and never run.
[[maybe_unused]] void (*const kCompiled)(uint32_t *, uint64_t *) = call_all;

TEST(Port, PairsArriveWordByWord)
{
    ll_pair pair{};
    uint32_t read = 0; // messages; gives the sender credit

    std::thread sender([&] {
        for (uint32_t i = 1; i <= kMessages; i++) {
            while (__atomic_load_n(&read, __ATOMIC_ACQUIRE) != i - 1)
                std::this_thread::yield();
            store_ll_pair(&pair, {{{i * 3, i}, {i * 5, i}}});
        }
    });
    for (uint32_t i = 1; i <= kMessages; i++) {
        ll_pair got;
        while (got = load_ll_pair(&pair), got.word[0].flag != i || got.word[1].flag != i)
            std::this_thread::yield();
        ASSERT_EQ(got.word[0].data, i * 3);
        ASSERT_EQ(got.word[1].data, i * 5);
        __atomic_store_n(&read, i, __ATOMIC_RELEASE);
    }
    sender.join();
}

TEST(Port, ALineIsThereWithItsFlag)
{
    alignas(128) uint64_t line[16] = {};
    uint32_t read = 0;

    std::thread sender([&] {
        for (uint32_t i = 1; i <= kMessages; i++) {
            line_part part;
            for (unsigned k = 0; k < LINE_WORDS; k++)
                part.word[k] = k == LINE_WORDS - 1 ? i : uint64_t{i} * 100 + k;
            while (__atomic_load_n(&read, __ATOMIC_ACQUIRE) != i - 1)
                std::this_thread::yield();
            store_line(line, part);
        }
    });
    for (uint32_t i = 1; i <= kMessages; i++) {
        line_part got;
        while (got = load_line(line), got.word[LINE_WORDS - 1] != i)
            std::this_thread::yield();
        for (unsigned k = 0; k < LINE_WORDS - 1; k++)
            ASSERT_EQ(got.word[k], uint64_t{i} * 100 + k);
        __atomic_store_n(&read, i, __ATOMIC_RELEASE);
    }
    sender.join();
}

TEST(Port, NoLineIsNothing)
{
    store_line(nullptr, line_part{});
    EXPECT_EQ(load_line(nullptr).word[0], 0u);
}

TEST(Port, BytesAtAnyAddress)
{
    unsigned char bytes[32] = {};

    for (unsigned at = 0; at < 16; at++) {
        store_bytes(bytes + at, uint64_t{0x1122334455667788} + at);
        EXPECT_EQ(load_bytes<uint64_t>(bytes + at), 0x1122334455667788 + at);
    }
}

// A warp of one lane.
TEST(Port, OneLaneAgreesWithItself)
{
    EXPECT_TRUE(agree(true) && agree_all(true) && vote_all(true));
    EXPECT_FALSE(agree(false) || agree_all(false) || vote_all(false));
    EXPECT_EQ(shuffle(7u, 0), 7u);
    EXPECT_EQ(warp_lane() + warp_index(), 0u);
    EXPECT_EQ(WARP_LANES, lane_count());
}

} // namespace
