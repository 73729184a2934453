// cpu_ordinals_test.cpp - which devices a process sees.
#include "cpu_support.h"

#include "cpu/ordinals.h"

#include <gtest/gtest.h>

#include <set>

namespace
{

std::vector<int> Visible(const char *list, int physical = 4)
{
    std::vector<int> ordinals(physical);
    ordinals.resize(rondo_cpu_visible(list, physical, ordinals.data()));
    return ordinals;
}

std::string Uuid(int device)
{
    rondo_device_properties properties;
    char text[64] = "GPU-", *at = text + 4;
    EXPECT_EQ(Device()->properties(device, &properties), ncclSuccess);
    for (int i = 0; i < 16; i++)
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", properties.uuid[i]);
    return text;
}

using List = std::vector<int>;

TEST(Ordinals, ListsAreCutAtTheFirstInvalidEntry)
{
    EXPECT_EQ(Visible(nullptr), (List{0, 1, 2, 3}));
    EXPECT_EQ(Visible(""), List{});
    EXPECT_EQ(Visible("2"), List{2});
    EXPECT_EQ(Visible("3,1"), (List{3, 1}));
    EXPECT_EQ(Visible(" 3 , 1 "), (List{3, 1}));
    EXPECT_EQ(Visible("1,4,2"), List{1});
    EXPECT_EQ(Visible("1,-1,2"), List{1});
    EXPECT_EQ(Visible("1,,2"), List{1});
    EXPECT_EQ(Visible("1,1,2"), List{1});
    EXPECT_EQ(Visible("0 1"), List{0});
    EXPECT_EQ(Visible("x"), List{});
    EXPECT_EQ(Visible("99999999999999999999"), List{});
    EXPECT_EQ(Visible("0,1,2,3,0"), (List{0, 1, 2, 3}));
    EXPECT_EQ(Visible("NoDevFiles"), List{});
    EXPECT_EQ(Visible("GPU-"), List{});
    EXPECT_EQ(Visible("GPU-zz"), List{});
}

TEST(Ordinals, DevicesAreKnownByUuid)
{
    std::string one = Uuid(1), two = Uuid(2);
    EXPECT_EQ(Visible((two + "," + one).c_str()), (List{2, 1}));
    EXPECT_EQ(Visible(two.substr(0, 20).c_str()), List{2});
    EXPECT_EQ(Visible((two + "0").c_str()), List{});
}

TEST(Ordinals, EveryDeviceIsDistinct)
{
    int count = 0;
    std::set<std::string> busids, uuids;
    ASSERT_EQ(Device()->count(&count), ncclSuccess);
    for (int i = 0; i < count; i++) {
        rondo_device_properties properties;
        ASSERT_EQ(Device()->properties(i, &properties), ncclSuccess);
        busids.insert(properties.busid);
        uuids.insert(Uuid(i));
        EXPECT_GT(properties.memory_bytes, 0u);
        EXPECT_EQ(strlen(properties.busid), 12u);
    }
    EXPECT_EQ((int)busids.size(), count);
    EXPECT_EQ((int)uuids.size(), count);
}

TEST(Ordinals, MaskedProcessesKeepTheirPhysicalIdentity)
{
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(InChild([&] { // what this process has decided already does not hold in a new image
                      std::string mask = std::to_string(i);
                      setenv("CUDA_VISIBLE_DEVICES", mask.c_str(), 1);
                      execl("/proc/self/exe", "self", "--gtest_filter=Masked.*",
                            "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
                      return 1;
                  }),
                  0);
    }
}

// Run by the test above, in a process of its own.
TEST(Masked, DISABLED_OneDevice)
{
    const char *mask = getenv("CUDA_VISIBLE_DEVICES");
    ASSERT_NE(mask, nullptr);
    int count = 0;
    rondo_device_properties properties;
    char expected[16];
    ASSERT_EQ(Device()->count(&count), ncclSuccess);
    EXPECT_EQ(count, 1);
    ASSERT_EQ(Device()->properties(0, &properties), ncclSuccess);
    snprintf(expected, sizeof(expected), "0000:%02x:00.0", atoi(mask) + 1);
    EXPECT_STREQ(properties.busid, expected);
    EXPECT_EQ(Device()->properties(1, &properties), ncclInvalidArgument);
}

TEST(Ordinals, CurrentDeviceBelongsToTheThread)
{
    int device = -1;
    ASSERT_EQ(Device()->set_current(1), ncclSuccess);
    std::thread([&] {
        EXPECT_EQ(Device()->get_current(&device), ncclSuccess);
        EXPECT_EQ(device, 0);
        EXPECT_EQ(Device()->set_current(2), ncclSuccess);
    }).join();
    EXPECT_EQ(Device()->get_current(&device), ncclSuccess);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(Device()->set_current(-5), ncclInvalidArgument);
    EXPECT_EQ(Device()->get_current(&device), ncclSuccess);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(Device()->set_current(0), ncclSuccess);
}

} // namespace
