// cpu_flag_test.cpp - lanes that wait for words which carry flags.
#include "cpu_support.h"

#include <gtest/gtest.h>

namespace
{

// Lanes that wait for flags sleep as others do, and only the flag of a lane wakes it: the line where it waits
// may have any value.
TEST(Flags, AFlagIsWaitedForAsleep)
{
    Stream stream;
    rondo_line line = {};
    std::atomic<int> woken{0};
    uint32_t flags[2] = {5, 5};
    Launch launch(
        1,
        [&](rondo_lane *lane) {
            if (lane->ops->wait_flag(lane, &line, &flags[lane->role], 6))
                woken += 1 + lane->role * 10;
        },
        2);
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    std::thread waits([&] { EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess); });
    EXPECT_LT(SecondsWhenIdle(), 0.010);
    Publish(&line, 6);
    StoreFlag(&line, &flags[1], 7);
    usleep(50000);
    EXPECT_EQ(woken, 0);
    StoreFlag(&line, &flags[1], 6);
    EXPECT_TRUE(Eventually([&] { return woken == 11; }));
    StoreFlag(&line, &flags[0], 6);
    waits.join();
    EXPECT_EQ(woken, 12);
}

TEST(Flags, AStopEndsTheWaitForAFlag)
{
    Stream stream;
    rondo_line line = {};
    uint32_t flag = 0;
    bool reached = true;
    Launch launch(1, [&](rondo_lane *lane) { reached = lane->ops->wait_flag(lane, &line, &flag, 1); });
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    std::thread waits([&] { EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess); });
    usleep(50000);
    launch.Stop();
    waits.join();
    EXPECT_FALSE(reached);
    EXPECT_EQ(line.waiter, 0u) << "who has gone is still to be rung";
}

// Who polls may look at more than the word that it names: at all of a longer flag, say.
TEST(Flags, AStopEndsTheWaitForAFlagThatHasCome)
{
    Stream stream;
    rondo_line line = {};
    uint32_t flag = 1;
    std::atomic<int> looks{0};
    Launch launch(1, [&](rondo_lane *lane) {
        while (lane->ops->wait_flag(lane, &line, &flag, 1))
            looks++;
    });
    std::thread runs([&] { // the lane always can go on, so whoever enqueues it runs it
        EXPECT_EQ(launch.On(stream), ncclSuccess);
        EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    });
    EXPECT_TRUE(Eventually([&] { return looks > 10; }));
    launch.Stop();
    runs.join();
}

} // namespace
