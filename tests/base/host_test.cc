// What a process knows of its host and of itself.
#include "base/error.h"
#include "base/host.h"

#include <gtest/gtest.h>

#include <cstring>
#include <sched.h>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

// What function yields in a forked child.
template <typename Function> uint64_t InChild(Function function)
{
    int ends[2];
    uint64_t value = 0;
    EXPECT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        value = function();
        _exit(write(ends[1], &value, sizeof(value)) == sizeof(value) ? 0 : 1);
    }
    EXPECT_EQ(read(ends[0], &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    return value;
}

TEST(Host, HashIsStable)
{
    uint64_t hash = rondo_host_hash();
    EXPECT_NE(hash, 0u);
    EXPECT_EQ(rondo_host_hash(), hash);
    EXPECT_EQ(InChild(rondo_host_hash), hash) << "processes of a host agree";
}

TEST(Host, WithoutDescriptorsTheReasonIsSaidAndALaterCallAgrees)
{
    uint64_t expected = rondo_host_hash();
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "base_test", "--gtest_filter=HostHelper.DISABLED_HashUnderALimit",
              "--gtest_also_run_disabled_tests", nullptr);
        _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(expected & 0x7f) | 0x80);
}

// Helper of the test above: a fresh process that first has no descriptor left.
TEST(HostHelper, DISABLED_HashUnderALimit)
{
    rlimit usual{};
    getrlimit(RLIMIT_NOFILE, &usual);
    rlimit none = usual;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    if (rondo_host_hash() != 0 || !strstr(rondo_error_last(), "RLIMIT_NOFILE is 0, raise it (ulimit -n)"))
        _exit(1);
    setrlimit(RLIMIT_NOFILE, &usual);
    _exit(static_cast<int>(rondo_host_hash() & 0x7f) | 0x80);
}

TEST(Host, AnotherNetworkNamespaceIsAnotherHost)
{
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNET) != 0)
            _exit(2);
        execl("/proc/self/exe", "base_test", "--gtest_filter=HostHelper.DISABLED_PrintHash",
              "--gtest_also_run_disabled_tests", nullptr);
        _exit(3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        GTEST_SKIP() << "no right to make a network namespace";
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_NE(WEXITSTATUS(status), static_cast<int>(rondo_host_hash() & 0x7f) | 0x80);
}

// Helper of the test above: exits with a byte of a fresh process's hash.
TEST(HostHelper, DISABLED_PrintHash)
{
    _exit(static_cast<int>(rondo_host_hash() & 0x7f) | 0x80);
}

TEST(Host, NameHasNoDot)
{
    std::string name = rondo_host_name();
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(name.find('.'), std::string::npos);
}

TEST(Host, NonceIsTheProcesss)
{
    uint64_t nonce = rondo_process_nonce();
    EXPECT_NE(nonce, 0u);
    EXPECT_EQ(rondo_process_nonce(), nonce);
    EXPECT_NE(InChild(rondo_process_nonce), nonce);
    EXPECT_NE(InChild(rondo_process_nonce), InChild(rondo_process_nonce));
    EXPECT_EQ(rondo_process_nonce(), nonce);
}

TEST(Host, ThreadsOfAFreshProcessAgreeOnTheNonce)
{
    EXPECT_EQ(InChild([]() -> uint64_t {
                  std::vector<uint64_t> seen(4);
                  std::vector<std::thread> threads;
                  for (uint64_t &slot : seen)
                      threads.emplace_back([&slot] { slot = rondo_process_nonce(); });
                  for (std::thread &thread : threads)
                      thread.join();
                  return std::set<uint64_t>(seen.begin(), seen.end()).size();
              }),
              1u);
}

TEST(Host, CpusFollowTheAffinity)
{
    cpu_set_t before, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    EXPECT_EQ(rondo_host_cpus(), CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &before) && CPU_COUNT(&one) == 0)
            CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(rondo_host_cpus(), 1);
    ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

TEST(Host, MemoryIsPlausible)
{
    uint64_t total = rondo_host_memory_total();
    EXPECT_GT(total, UINT64_C(1) << 24);
    EXPECT_GT(rondo_host_memory_available(), 0u);
    EXPECT_LE(rondo_host_memory_available(), total);
}

TEST(Host, HashOfBytesChains)
{
    EXPECT_EQ(rondo_hash("", 0, 0), UINT64_C(0xcbf29ce484222325));
    EXPECT_EQ(rondo_hash("a", 1, 0), UINT64_C(0xaf63dc4c8601ec8c)) << "the published value of FNV-1a";
    EXPECT_NE(rondo_hash("b", 1, rondo_hash("a", 1, 0)), rondo_hash("a", 1, rondo_hash("b", 1, 0)));
}

} // namespace
