// The table's parsing, and the warning of a bad value.
#include "base/log.h"
#include "base/param.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace
{

struct Case {
    const char *text; // nullptr: unset
    int64_t value;
    bool warns;
};

// NCCL_BUFFSIZE: default 0, 0 .. 2^30
constexpr Case kCases[] = {
    {nullptr, 0, false},
    {"", 0, false},
    {"0", 0, false},
    {"4194304", 4194304, false},
    {" 12 ", 12, false},
    {"+7", 7, false},
    {"0x1000", 4096, false},
    {"010", 8, false},
    {"1073741824", 1073741824, false},
    {"1073741825", 0, true},
    {"-1", 0, true},
    {"12k", 0, true},
    {"1.5", 0, true},
    {"1e3", 0, true},
    {"abc", 0, true},
    {" ", 0, true},
    {"99999999999999999999999", 0, true},
    {"-99999999999999999999999", 0, true},
};

class Param : public testing::Test
{
  protected:
    void SetUp() override
    {
        setenv("NCCL_DEBUG", "WARN", 1);
        Forget();
    }
    void TearDown() override
    {
        unsetenv("NCCL_DEBUG");
        unsetenv("NCCL_BUFFSIZE");
        unsetenv("NCCL_COMM_ID");
        Forget();
    }
    static void Forget()
    {
        rondo_param_reset_for_test();
        rondo_log_reset();
    }
};

TEST_F(Param, Integers)
{
    for (const Case &row : kCases) {
        SCOPED_TRACE(row.text ? row.text : "(unset)");
        if (row.text)
            setenv("NCCL_BUFFSIZE", row.text, 1);
        else
            unsetenv("NCCL_BUFFSIZE");
        Forget();
        testing::internal::CaptureStderr();
        EXPECT_EQ(rondo_param_int(RONDO_PARAM_BUFFSIZE), row.value);
        EXPECT_EQ(rondo_param_int(RONDO_PARAM_BUFFSIZE), row.value);
        std::string lines = testing::internal::GetCapturedStderr();
        if (!row.warns) {
            EXPECT_EQ(lines, "");
            continue;
        }
        EXPECT_NE(lines.find("NCCL_BUFFSIZE=\"" + std::string(row.text) + "\""), std::string::npos) << lines;
        EXPECT_NE(lines.find("from 0 to 1073741824"), std::string::npos) << lines;
        EXPECT_EQ(lines.find('\n'), lines.size() - 1) << "one line, not one a use: " << lines;
    }
}

TEST_F(Param, IsReadOnce)
{
    setenv("NCCL_BUFFSIZE", "100", 1);
    EXPECT_EQ(rondo_param_int(RONDO_PARAM_BUFFSIZE), 100);
    setenv("NCCL_BUFFSIZE", "200", 1);
    EXPECT_EQ(rondo_param_int(RONDO_PARAM_BUFFSIZE), 100);
    rondo_param_reset_for_test();
    EXPECT_EQ(rondo_param_int(RONDO_PARAM_BUFFSIZE), 200);
}

TEST_F(Param, Texts)
{
    EXPECT_EQ(rondo_param_string(RONDO_PARAM_COMM_ID), nullptr);
    rondo_param_reset_for_test();
    setenv("NCCL_COMM_ID", "", 1);
    EXPECT_EQ(rondo_param_string(RONDO_PARAM_COMM_ID), nullptr);
    rondo_param_reset_for_test();
    setenv("NCCL_COMM_ID", "h:1", 1);
    const char *text = rondo_param_string(RONDO_PARAM_COMM_ID);
    setenv("NCCL_COMM_ID", "h:2", 1);
    EXPECT_STREQ(text, "h:1");
    EXPECT_EQ(rondo_param_string(RONDO_PARAM_COMM_ID), text);
    rondo_param_reset_for_test();
    EXPECT_STREQ(rondo_param_string(RONDO_PARAM_COMM_ID), "h:2");
    EXPECT_STREQ(text, "h:1") << "lives as long as the process";
}

TEST_F(Param, LogsWhatTheEnvironmentSets)
{
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_BUFFSIZE", "4096", 1);
    Forget();
    testing::internal::CaptureStderr();
    rondo_param_int(RONDO_PARAM_BUFFSIZE);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("NCCL_BUFFSIZE set by environment to 4096."),
              std::string::npos);
}

TEST_F(Param, ThreadsAgree)
{
    setenv("NCCL_BUFFSIZE", "bad", 1);
    for (int round = 0; round < 20; round++) {
        Forget();
        testing::internal::CaptureStderr();
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([] { EXPECT_EQ(rondo_param_int(RONDO_PARAM_BUFFSIZE), 0); });
        for (std::thread &thread : threads)
            thread.join();
        std::string lines = testing::internal::GetCapturedStderr();
        ASSERT_EQ(lines.find('\n'), lines.size() - 1) << lines;
    }
}

TEST_F(Param, EveryRowIsSound)
{
    for (int id = 0; id < RONDO_PARAM_NUM; id++) {
        std::string name = rondo_param_name(static_cast<rondo_param_id>(id));
        EXPECT_TRUE(name.rfind("NCCL_", 0) == 0 || name.rfind("RONDO_", 0) == 0) << name;
        EXPECT_STRNE(rondo_param_text(static_cast<rondo_param_id>(id)), "") << name;
        for (int other = 0; other < id; other++)
            EXPECT_NE(name, rondo_param_name(static_cast<rondo_param_id>(other)));
        rondo_param_limits limits = rondo_param_range(static_cast<rondo_param_id>(id));
        EXPECT_TRUE(limits.low <= limits.initial && limits.initial <= limits.high) << name;
    }
}

TEST_F(Param, SaysWhatItWouldAccept)
{
    rondo_param_limits limits = rondo_param_range(RONDO_PARAM_CPU_DEVICES);
    EXPECT_TRUE(limits.is_integer);
    EXPECT_EQ(limits.initial, 8);
    EXPECT_EQ(limits.low, 1);
    EXPECT_EQ(limits.high, 1024);
    EXPECT_FALSE(rondo_param_range(RONDO_PARAM_DEVICE).is_integer);
    for (const char *good : {"1", " 0x400 ", "1024"})
        EXPECT_TRUE(rondo_param_accepts(RONDO_PARAM_CPU_DEVICES, good)) << good;
    for (const char *bad : {"0", "1025", "", "4M", "four", "99999999999999999999"})
        EXPECT_FALSE(rondo_param_accepts(RONDO_PARAM_CPU_DEVICES, bad)) << bad;
    EXPECT_TRUE(rondo_param_accepts(RONDO_PARAM_DEVICE, "anything"));
}

} // namespace
