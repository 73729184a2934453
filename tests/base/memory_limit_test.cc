// Memory limits of recorded systems: no control groups, v1, v2, in containers and out of them.
#include "memory_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace
{

constexpr uint64_t kMiB = 1 << 20;

class MemoryLimit : public testing::Test
{
  protected:
    void SetUp() override
    {
        char path[] = "/tmp/rondo-memory-XXXXXX";
        ASSERT_NE(mkdtemp(path), nullptr);
        root_ = path;
        Put("/proc/meminfo", "MemTotal:       1048576 kB\nMemFree:  1 kB\nMemAvailable:    524288 kB\n");
    }
    void TearDown() override
    {
        std::filesystem::remove_all(root_);
    }
    void Put(const std::string &path, const std::string &text)
    {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text;
    }
    void Expect(uint64_t total_mib, uint64_t available_mib)
    {
        rondo_memory_limit limit = rondo_memory_limit_read(root_.c_str());
        EXPECT_EQ(limit.total, total_mib * kMiB);
        EXPECT_EQ(limit.available, available_mib * kMiB);
    }

    std::string root_;
};

const char kMountV2[] = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const char kMountV1[] = "33 29 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                        "34 29 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST_F(MemoryLimit, NoGroups)
{
    Expect(1024, 512);
}

TEST_F(MemoryLimit, NothingKnown)
{
    std::filesystem::remove_all(root_ + "/proc");
    Expect(0, 0);
}

TEST_F(MemoryLimit, V2TakesTheLeastOnTheWayUp)
{
    Put("/proc/self/mountinfo", kMountV2);
    Put("/proc/self/cgroup", "0::/user/job/step\n");
    Put("/sys/fs/cgroup/user/job/step/memory.max", "max\n");
    Put("/sys/fs/cgroup/user/job/memory.max", "209715200\n");     // 200 MiB
    Put("/sys/fs/cgroup/user/job/memory.current", "104857600\n"); // 100 MiB
    Put("/sys/fs/cgroup/user/job/memory.stat",
        "anon 1\ninactive_file 20971520\nactive_file 7\n"); // 20 MiB to be had back
    Put("/sys/fs/cgroup/user/memory.max", "419430400\n");
    Put("/sys/fs/cgroup/user/memory.current", "1\n");
    Expect(200, 120);
}

TEST_F(MemoryLimit, V1)
{
    Put("/proc/self/mountinfo", kMountV1);
    Put("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/job\n0::/\n");
    Put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
    Put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "94371840\n");
    Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // v1's "none"
    Put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    Expect(100, 10);
}

TEST_F(MemoryLimit, ContainerThatSeesOnlyItsOwnGroup)
{
    Put("/proc/self/mountinfo",
        "34 29 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    Put("/proc/self/cgroup", "4:memory:/docker/abc\n");
    Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
    Put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
    Expect(100, 0);
}

TEST_F(MemoryLimit, GroupOutsideTheMount)
{
    Put("/proc/self/mountinfo", "29 23 0:26 /a/b /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    Put("/proc/self/cgroup", "0::/../c\n");
    Put("/sys/fs/cgroup/memory.max", "209715200\n");
    Put("/sys/fs/cgroup/memory.current", "0\n");
    Expect(200, 200);
}

TEST_F(MemoryLimit, NonsenseIsIgnored)
{
    Put("/proc/self/mountinfo", "x\n - \n- cgroup2\n1 2 3 - cgroup2 x y\n");
    Put("/proc/self/cgroup", "\n::\n:\n0::" + std::string(9000, '/') + "\n");
    Expect(1024, 512);
}

} // namespace
