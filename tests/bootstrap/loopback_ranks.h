// Ranks as threads of this process, over loopback.
#ifndef RONDO_TESTS_LOOPBACK_RANKS_H
#define RONDO_TESTS_LOOPBACK_RANKS_H

extern "C" {
#include "challenge.h"
#include "id.h"
#include "link.h"
#include "mesh.h"
#include "rendezvous.h"
#include "root.h"
}

#include "base/clock.h"
#include "base/error.h"
#include "base/interface.h"
#include "base/log.h"
#include "base/param.h"
#include "base/socket.h"
#include "bootstrap/bootstrap.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <functional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

// A limit that only a hang reaches.
inline uint64_t Long()
{
    return rondo_clock_deadline(100);
}

inline uint64_t AfterMs(uint64_t ms)
{
    return rondo_clock_ns() + ms * 1000000;
}

inline int CountEntries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

inline int CountDescriptors()
{
    return CountEntries("/proc/self/fd");
}

inline int CountThreads()
{
    return CountEntries("/proc/self/task");
}

// Both counts come down to these; threads and sockets that end by themselves may take a moment.
inline void ExpectResources(int descriptors, int threads)
{
    uint64_t limit = AfterMs(20000);
    while ((CountDescriptors() > descriptors || CountThreads() > threads) && rondo_clock_ns() < limit)
        rondo_clock_sleep_ns(2000000);
    EXPECT_LE(CountDescriptors(), descriptors);
    EXPECT_LE(CountThreads(), threads);
}

// Variables that last as long as a test; the library reads them anew.
class Environment
{
  public:
    Environment()
    {
        Set("NCCL_SOCKET_IFNAME", "lo");
    }
    ~Environment()
    {
        for (const std::string &name : names_)
            unsetenv(name.c_str());
        Forget();
    }
    void Set(const std::string &name, const std::string &value)
    {
        names_.push_back(name);
        setenv(name.c_str(), value.c_str(), 1);
        Forget();
    }
    void Unset(const std::string &name)
    {
        unsetenv(name.c_str());
        Forget();
    }

  private:
    static void Forget()
    {
        rondo_param_reset_for_test();
        rondo_log_reset();
    }
    std::vector<std::string> names_;
};

class Ranks : public testing::Test
{
  protected:
    void SetUp() override
    {
        std::thread([] {}).join(); // with the first thread sanitizers start one of their own
        descriptors_ = CountDescriptors();
        threads_ = CountThreads();
    }
    void TearDown() override
    {
        ExpectResources(descriptors_, threads_);
    }
    static ncclUniqueId Id()
    {
        ncclUniqueId id{};
        EXPECT_EQ(rondo_bootstrap_create_id(&id), ncclSuccess) << rondo_error_last();
        return id;
    }
    static rondo_address RootAddress(const ncclUniqueId &id)
    {
        rondo_id parts{};
        EXPECT_EQ(rondo_id_read(&id, &parts), ncclSuccess);
        return parts.root;
    }
    // Join as each of the given ranks, all at once; what each gets back.
    static std::vector<ncclResult_t> Join(const ncclUniqueId &id, const std::vector<int> &ranks,
                                          const std::vector<int> &totals, uint64_t deadline)
    {
        std::vector<ncclResult_t> codes(ranks.size());
        std::vector<std::thread> threads;
        for (size_t i = 0; i < ranks.size(); i++)
            threads.emplace_back([&, i] {
                rondo_bootstrap *bootstrap = nullptr;
                codes[i] = rondo_bootstrap_join(&id, ranks[i], totals[i], deadline, nullptr, &bootstrap);
                EXPECT_EQ(bootstrap == nullptr, codes[i] != ncclSuccess);
                rondo_bootstrap_destroy(bootstrap);
            });
        for (std::thread &thread : threads)
            thread.join();
        return codes;
    }
    // Run body once a rank, each on a thread with its bootstrap, which is destroyed afterwards.
    static void Run(int ranks, const std::function<void(int, rondo_bootstrap *)> &body)
    {
        Run(Id(), ranks, body);
    }
    static void Run(const ncclUniqueId &id, int ranks,
                    const std::function<void(int, rondo_bootstrap *)> &body)
    {
        std::vector<std::thread> threads;
        for (int rank = 0; rank < ranks; rank++)
            threads.emplace_back([&, rank] {
                rondo_bootstrap *bootstrap = nullptr;
                ASSERT_EQ(rondo_bootstrap_join(&id, rank, ranks, Long(), nullptr, &bootstrap), ncclSuccess)
                    << rondo_error_last();
                body(rank, bootstrap);
                rondo_bootstrap_destroy(bootstrap);
            });
        for (std::thread &thread : threads)
            thread.join();
    }

    Environment environment_;
    int descriptors_ = 0, threads_ = 0;
};

inline bool Contains(const std::string &text, const std::string &piece)
{
    return text.find(piece) != std::string::npos;
}

#endif
