// Processes meeting and exchanging, here as threads of one process: they share nothing but what the launcher
// would say.
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <nccl.h> // has C++ overloads, so it cannot come first inside the braces below

extern "C" {
#include "star.h"
#include "team.h"
}

namespace
{

perf_identity Identity(int rank, int size, const std::string &job)
{
    perf_identity id = {};
    id.launcher = "test";
    id.rank = rank;
    id.size = size;
    id.local_size = size;
    snprintf(id.job, sizeof(id.job), "%s-%d", job.c_str(), (int)getpid());
    return id;
}

struct Timeout {
    explicit Timeout(const char *seconds)
    {
        setenv("RONDO_PERF_TIMEOUT", seconds, 1);
    }
    ~Timeout()
    {
        unsetenv("RONDO_PERF_TIMEOUT");
    }
};

void Exchange(int rank, int size, const std::string &job)
{
    perf_identity id = Identity(rank, size, job);
    perf_rendezvous *r = nullptr;
    ASSERT_EQ(perf_rendezvous_open(&id, &r), PERF_OK);
    for (int round = 0; round < 20; round++) {
        std::vector<int> all((size_t)size);
        int mine = rank * 100 + round;
        ASSERT_EQ(perf_rendezvous_exchange(r, "numbers", &mine, sizeof(mine), all.data()), PERF_OK);
        for (int i = 0; i < size; i++)
            ASSERT_EQ(all[(size_t)i], i * 100 + round);
    }
    ASSERT_EQ(perf_rendezvous_check(r), PERF_OK);
    int unused = 0;
    ASSERT_EQ(perf_rendezvous_exchange(r, "end", &unused, 0, &unused), PERF_OK);
    perf_rendezvous_close(r);
}

void RunAll(int size, const std::string &job)
{
    std::vector<std::thread> threads;
    for (int rank = size - 1; rank >= 0; rank--) // rank 0 comes last: the others wait for it
        threads.emplace_back(Exchange, rank, size, job);
    for (auto &t : threads)
        t.join();
}

int FreePort()
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    socklen_t length = sizeof(address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd, (sockaddr *)&address, length);
    getsockname(fd, (sockaddr *)&address, &length);
    close(fd);
    return ntohs(address.sin_port);
}

} // namespace

TEST(PerfRendezvous, OneHost)
{
    for (int size : {1, 2, 5})
        RunAll(size, "one-host" + std::to_string(size));
}

TEST(PerfRendezvous, OverTcp)
{
    setenv("RONDO_PERF_RENDEZVOUS", ("127.0.0.1:" + std::to_string(FreePort())).c_str(), 1);
    RunAll(3, "tcp");
    unsetenv("RONDO_PERF_RENDEZVOUS");
}

// Strangers connect, say nothing, nonsense or another job's name, and go or stay: the run meets all the same.
TEST(PerfRendezvous, StrangersDoNotDisturb)
{
    int port = FreePort();
    setenv("RONDO_PERF_RENDEZVOUS", ("127.0.0.1:" + std::to_string(port)).c_str(), 1);
    std::thread root(Exchange, 0, 2, "strangers");
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)port);
    std::vector<int> fds;
    for (int i = 0; i < 3; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        for (int attempt = 0; attempt < 500 && connect(fd, (sockaddr *)&address, sizeof(address)) != 0;
             attempt++)
            usleep(10000);
        std::string noise(1024, (char)('a' + i));
        if (i > 0) {
            EXPECT_EQ(send(fd, noise.data(), noise.size(), MSG_NOSIGNAL), (ssize_t)noise.size());
        }
        if (i == 2)
            shutdown(fd, SHUT_WR);
        fds.push_back(fd);
    }
    Exchange(1, 2, "strangers");
    root.join();
    for (int fd : fds)
        close(fd);
    unsetenv("RONDO_PERF_RENDEZVOUS");
}

TEST(PerfRendezvous, AMissingProcessIsNamedInTime)
{
    Timeout two("2");
    testing::internal::CaptureStdout();
    perf_status other = PERF_OK;
    std::thread one([&] {
        perf_identity id = Identity(1, 3, "missing");
        perf_rendezvous *r = nullptr;
        other = perf_rendezvous_open(&id, &r);
        if (other == PERF_OK) { // it met rank 0, which then gave up
            int mine = 0, all[3];
            other = perf_rendezvous_exchange(r, "x", &mine, sizeof(mine), all);
            perf_rendezvous_close(r);
        }
    });
    perf_identity id = Identity(0, 3, "missing");
    perf_rendezvous *r = nullptr;
    EXPECT_EQ(perf_rendezvous_open(&id, &r), PERF_TIMEOUT);
    one.join();
    EXPECT_NE(other, PERF_OK);
    EXPECT_NE(testing::internal::GetCapturedStdout().find("for rank 2"), std::string::npos);
}

TEST(PerfRendezvous, ASecondClaimantOfARankIsTurnedAway)
{
    Timeout five("5");
    testing::internal::CaptureStdout();
    std::thread root(Exchange, 0, 3, "claim"), first(Exchange, 1, 3, "claim");
    usleep(300000);
    perf_identity id = Identity(1, 3, "claim");
    perf_rendezvous *r = nullptr;
    EXPECT_EQ(perf_rendezvous_open(&id, &r), PERF_USAGE);
    id = Identity(1, 4, "claim");
    EXPECT_EQ(perf_rendezvous_open(&id, &r), PERF_USAGE);
    Exchange(2, 3, "claim");
    root.join();
    first.join();
    std::string text = testing::internal::GetCapturedStdout();
    EXPECT_NE(text.find("another process has this rank"), std::string::npos) << text;
    EXPECT_NE(text.find("another number of processes"), std::string::npos) << text;
}

// A failure told by one process becomes the status of all, whether they wait here or only look.
TEST(PerfRendezvous, AFailureReachesAll)
{
    testing::internal::CaptureStdout();
    perf_status seen[3] = {};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; rank++)
        threads.emplace_back([rank, &seen] {
            perf_identity id = Identity(rank, 3, "failure");
            perf_rendezvous *r = nullptr;
            ASSERT_EQ(perf_rendezvous_open(&id, &r), PERF_OK);
            int mine = 0, all[3];
            ASSERT_EQ(perf_rendezvous_exchange(r, "met", &mine, sizeof(mine), all), PERF_OK);
            if (rank == 1) {
                perf_rendezvous_fail(r, PERF_NCCL);
                seen[1] = PERF_NCCL;
            } else if (rank == 0) {
                seen[0] = perf_rendezvous_exchange(r, "next", &mine, sizeof(mine), all);
            } else {
                for (int i = 0; i < 1000 && seen[2] == PERF_OK; i++) {
                    seen[2] = perf_rendezvous_check(r);
                    usleep(10000);
                }
            }
            perf_rendezvous_close(r);
        });
    for (auto &t : threads)
        t.join();
    testing::internal::GetCapturedStdout();
    for (perf_status status : seen)
        EXPECT_EQ(status, PERF_NCCL);
}

TEST(PerfRendezvous, DifferentOperationsAreNoticed)
{
    testing::internal::CaptureStdout();
    std::thread one([] {
        perf_identity id = Identity(1, 2, "different");
        perf_rendezvous *r = nullptr;
        int mine[2] = {}, all[4];
        ASSERT_EQ(perf_rendezvous_open(&id, &r), PERF_OK);
        EXPECT_NE(perf_rendezvous_exchange(r, "b", mine, 8, all), PERF_OK);
        perf_rendezvous_close(r);
    });
    perf_identity id = Identity(0, 2, "different");
    perf_rendezvous *r = nullptr;
    int mine = 0, all[2];
    ASSERT_EQ(perf_rendezvous_open(&id, &r), PERF_OK);
    EXPECT_EQ(perf_rendezvous_exchange(r, "a", &mine, 4, all), PERF_USAGE);
    perf_rendezvous_close(r);
    one.join();
    testing::internal::GetCapturedStdout();
}

TEST(PerfTeam, CombinesOverThreadsAndProcesses)
{
    const int processes = 2, threads = 3;
    std::vector<std::thread> all;
    for (int p = 0; p < processes; p++)
        all.emplace_back([p] {
            perf_identity id = Identity(p, processes, "team");
            perf_rendezvous *r = nullptr;
            ASSERT_EQ(perf_rendezvous_open(&id, &r), PERF_OK);
            perf_team team;
            perf_team_init(&team, r, processes, threads);
            std::vector<std::thread> workers;
            for (int t = 0; t < threads; t++)
                workers.emplace_back([p, t, &team] {
                    for (int round = 0; round < 30; round++) {
                        const double mine = 10 * p + t + 1;
                        double sum = mine, min = mine, max = mine, first = mine;
                        ASSERT_EQ(perf_team_reduce(&team, t, PERF_COMBINE_SUM, &sum), PERF_OK);
                        ASSERT_EQ(perf_team_reduce(&team, t, PERF_COMBINE_MIN, &min), PERF_OK);
                        ASSERT_EQ(perf_team_reduce(&team, t, PERF_COMBINE_MAX, &max), PERF_OK);
                        ASSERT_EQ(perf_team_reduce(&team, t, PERF_COMBINE_FIRST, &first), PERF_OK);
                        ASSERT_EQ(perf_team_barrier(&team, t), PERF_OK);
                        EXPECT_EQ(sum, 42);
                        EXPECT_EQ(min, 1);
                        EXPECT_EQ(max, 13);
                        EXPECT_EQ(first, 1);
                    }
                });
            for (auto &w : workers)
                w.join();
            perf_team_fini(&team);
            perf_rendezvous_close(r);
        });
    for (auto &t : all)
        t.join();
}

TEST(PerfTeam, AFailureWakesThoseWhoWait)
{
    perf_identity id = Identity(0, 1, "alone");
    perf_rendezvous *r = nullptr;
    ASSERT_EQ(perf_rendezvous_open(&id, &r), PERF_OK);
    perf_team team;
    perf_team_init(&team, r, 1, 2);
    std::thread waiting([&] { EXPECT_EQ(perf_team_barrier(&team, 0), PERF_CUDA); });
    usleep(50000);
    perf_team_fail(&team, PERF_CUDA);
    waiting.join();
    EXPECT_EQ(perf_team_barrier(&team, 1), PERF_CUDA);
    perf_team_fini(&team);
    perf_rendezvous_close(r);
}
