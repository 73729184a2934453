// Reading sizes, stepping through them, and the blocks and shapes that collectives make of them.
#include <gtest/gtest.h>

#include <nccl.h> // has C++ overloads, so it cannot come first inside the braces below

extern "C" {
#include "collective.h"
#include "sizes.h"
}

TEST(PerfSizes, ReadsNumbersWithSuffixes)
{
    struct {
        const char *text;
        size_t bytes;
    } good[] = {{"0", 0},          {"8", 8},           {"9", 9},       {"1K", 1024},        {"1k", 1024},
                {"32M", 33554432}, {"1G", 1073741824}, {"1.5K", 1536}, {"0.5g", 536870912}, {"2 M", 2097152},
                {"4MB", 4194304},  {"1e3", 1000},      {" 16", 16},    {"0x10", 16}};
    for (auto &row : good) {
        size_t bytes = 77;
        EXPECT_TRUE(perf_size_parse(row.text, &bytes)) << row.text;
        EXPECT_EQ(bytes, row.bytes) << row.text;
    }
    for (const char *bad :
         {"", "x", "K", "1T", "1Q", "-1", "-1K", "nan", "inf", "1e300", "99999999999G", "1,5"}) {
        size_t bytes = 77;
        EXPECT_FALSE(perf_size_parse(bad, &bytes)) << bad;
        EXPECT_EQ(bytes, 77u) << bad;
    }
}

TEST(PerfSizes, StepsAlwaysGrow)
{
    size_t next = 0;
    EXPECT_TRUE(perf_size_next(8, 100, 1, &next));
    EXPECT_EQ(next, 108u);
    EXPECT_TRUE(perf_size_next(8, 100, 2, &next));
    EXPECT_EQ(next, 16u);
    EXPECT_TRUE(perf_size_next(0, 100, 4, &next));
    EXPECT_EQ(next, 1u);
    EXPECT_FALSE(perf_size_next(8, 0, 1, &next));
    EXPECT_FALSE(perf_size_next(SIZE_MAX, 1, 1, &next));
    EXPECT_FALSE(perf_size_next(SIZE_MAX / 2, 0, 3, &next));
}

TEST(PerfSizes, BlocksStartAtMultiplesOf16Bytes)
{
    for (unsigned bytes : {1u, 2u, 4u, 8u})
        for (unsigned ranks = 1; ranks <= 17; ranks++)
            for (size_t elements : {0u, 1u, 15u, 16u, 100u, 1000u, 65537u}) {
                size_t block = perf_size_block(elements, bytes, ranks);
                EXPECT_EQ(block * bytes % 16, 0u);
                EXPECT_LE(block * ranks, elements);
                EXPECT_GT((block + 16 / bytes) * ranks, elements - elements % ranks);
            }
}

TEST(PerfSizes, LimitLeavesRoomOnTheDevice)
{
    const size_t gib = (size_t)1 << 30;
    EXPECT_EQ(perf_size_limit(16 * gib, true), 14 * gib / 3);
    EXPECT_EQ(perf_size_limit(16 * gib, false), 7 * gib);
    EXPECT_EQ(perf_size_limit(80 * gib, true), 75 * gib / 3);
    EXPECT_EQ(perf_size_limit(40 * gib, false), 36 * gib / 2);
    EXPECT_LT(3 * perf_size_limit(gib, true), gib);
    EXPECT_GT(perf_size_limit(gib, true), 0u);
}

TEST(PerfSizes, ShapesOfTheCollectives)
{
    perf_shape whole = perf_shape_whole(1000, 4, 2, 4);
    EXPECT_EQ(whole.send_count, 1000u);
    EXPECT_EQ(whole.recv_count, 1000u);
    EXPECT_EQ(whole.in_place_recv_start, 0u);
    perf_shape gathering = perf_shape_gathering(1000, 4, 2, 3); // 333 elements each, down to 332
    EXPECT_EQ(gathering.send_count, 332u);
    EXPECT_EQ(gathering.recv_count, 996u);
    EXPECT_EQ(gathering.in_place_send_start, 664u);
    EXPECT_EQ(gathering.in_place_recv_start, 0u);
    perf_shape scattering = perf_shape_scattering(1000, 4, 2, 3);
    EXPECT_EQ(scattering.send_count, 996u);
    EXPECT_EQ(scattering.recv_count, 332u);
    EXPECT_EQ(scattering.in_place_recv_start, 664u);
    EXPECT_DOUBLE_EQ(perf_bytes_of_count(&whole, 4, 4), 4000);
    EXPECT_DOUBLE_EQ(perf_bytes_of_all(&gathering, 4, 3), 3984);
    EXPECT_DOUBLE_EQ(perf_factor_others(4), 0.75);
    EXPECT_DOUBLE_EQ(perf_factor_others(1), 0);
}
