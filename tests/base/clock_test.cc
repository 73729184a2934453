// The clock that deadlines are counted by.
#include "base/clock.h"

#include <gtest/gtest.h>

TEST(Clock, NeverGoesBack)
{
    uint64_t last = rondo_clock_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = rondo_clock_ns();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(Clock, SleepsAtLeastThatLong)
{
    uint64_t start = rondo_clock_ns();
    rondo_clock_sleep_ns(3000000);
    EXPECT_GE(rondo_clock_ns() - start, 3000000u);
}

TEST(Clock, DeadlinesSaturate)
{
    EXPECT_EQ(rondo_clock_deadline(UINT64_MAX), UINT64_MAX);
    EXPECT_EQ(rondo_clock_deadline(UINT64_MAX / 1000000000), UINT64_MAX);
    uint64_t already = rondo_clock_deadline(0);
    EXPECT_LE(already, rondo_clock_ns());
    EXPECT_GT(rondo_clock_deadline(60), rondo_clock_ns() + 50000000000u);
}
