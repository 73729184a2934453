// Processes that die, fork and exit.
#include "descriptor_limit.h"
#include "loopback_ranks.h"

#include <atomic>
#include <csignal>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

namespace
{

class Life : public Ranks
{
  protected:
    // A rank in a process of its own; its exit status is body's answer.
    static pid_t Fork(const std::function<int()> &body)
    {
        pid_t child = fork();
        EXPECT_GE(child, 0);
        if (child == 0) {
            alarm(120);
            _exit(body());
        }
        return child;
    }
    static int Wait(pid_t child)
    {
        int status = 0;
        waitpid(child, &status, 0);
        return status;
    }
    // A port on loopback that was free a moment ago, as NCCL_COMM_ID: so that children can be forked before
    // any thread exists.
    void UseFixedId()
    {
        rondo_address any{}, bound;
        int fd;
        char text[RONDO_ADDRESS_TEXT];
        any.in4.sin_family = AF_INET;
        any.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(rondo_socket_listen(&any, 1, &fd, &bound), ncclSuccess);
        close(fd);
        environment_.Set("NCCL_COMM_ID", rondo_address_text(&bound, text));
    }
};

TEST_F(Life, AKilledProcessIsARemoteErrorThatNamesItsRank)
{
    constexpr int kRanks = 5, kVictim = 3;
    UseFixedId();
    ncclUniqueId id = Id();
    std::vector<pid_t> children;
    for (int rank = 0; rank < kRanks; rank++)
        children.push_back(Fork([&] {
            rondo_bootstrap *bootstrap = nullptr;
            if (rondo_bootstrap_join(&id, rank, kRanks, Long(), nullptr, &bootstrap) != ncclSuccess)
                return 1;
            // The victim is through the first barrier while others may still be in it: either may be the one
            // that fails.
            ncclResult_t rc = rondo_bootstrap_barrier(bootstrap, Long());
            if (rank == kVictim)
                raise(SIGKILL);
            if (rc == ncclSuccess)
                rc = rondo_bootstrap_barrier(bootstrap, Long());
            bool is_named = Contains(rondo_error_last(), "rank 3");
            rondo_bootstrap_destroy(bootstrap);
            return rc != ncclRemoteError ? 3 : is_named ? 0 : 4;
        }));
    for (int rank = 0; rank < kRanks; rank++) {
        int status = Wait(children[static_cast<size_t>(rank)]);
        if (rank == kVictim)
            EXPECT_TRUE(WIFSIGNALED(status));
        else
            EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
                << "rank " << rank << ": " << WEXITSTATUS(status);
    }
}

// One rank is stopped. Who loses patience first takes that reason along: the others say what it found, and whom they
// wait for themselves. Nobody waits long for the stopped one to take a goodbye.
TEST_F(Life, WhyARankGaveUpIsToldToTheOthers)
{
    constexpr int kRanks = 6, kSilent = 1;
    UseFixedId();
    ncclUniqueId id = Id();
    std::vector<pid_t> children;
    void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto *joined = new (memory) std::atomic<int>(0);
    for (int rank = 0; rank < kRanks; rank++)
        children.push_back(Fork([&] {
            rondo_bootstrap *bootstrap = nullptr;
            if (rondo_bootstrap_join(&id, rank, kRanks, Long(), nullptr, &bootstrap) != ncclSuccess)
                return 1;
            ++*joined;
            while (rank == kSilent && *joined < kRanks)
                rondo_clock_sleep_ns(1000000);
            if (rank == kSilent)
                raise(SIGSTOP);
            ncclResult_t rc = rondo_bootstrap_barrier(bootstrap, rank == 0 ? AfterMs(1500) : Long());
            std::string text = rondo_error_last(), found = "rank 0 waits for rank 1";
            std::string own = "; rank " + std::to_string(rank) + " waits for rank 1";
            rondo_bootstrap_destroy(bootstrap);
            bool is_right = rank == 0 ? rc == ncclTimeout && text.find(found) == 0
                                      : rc == ncclRemoteError && Contains(text, "rank 0 gave up: " + found);
            // In the barrier ranks 3 and 5 come to wait for the silent one too, 2 and 4 for rank 0.
            is_right = is_right && Contains(text, own) == (rank == 3 || rank == 5);
            if (!is_right && rank != kSilent)
                fprintf(stderr, "rank %d: %d: %s\n", rank, rc, text.c_str());
            return is_right || rank == kSilent ? 0 : 2;
        }));
    for (int rank = 0; rank < kRanks; rank++) {
        if (rank != kSilent) {
            EXPECT_EQ(Wait(children[static_cast<size_t>(rank)]), 0) << "rank " << rank;
        }
    }
    kill(children[kSilent], SIGCONT);
    EXPECT_EQ(Wait(children[kSilent]), 0);
    munmap(memory, 4096);
}

TEST_F(Life, AProcessThatExitsDuringTheJoinIsNamed)
{
    UseFixedId();
    ncclUniqueId id = Id();
    pid_t survivor = Fork([&] {
        rondo_bootstrap *bootstrap = nullptr;
        ncclResult_t rc = rondo_bootstrap_join(&id, 0, 3, Long(), nullptr, &bootstrap);
        return rc != ncclRemoteError ? 1 : Contains(rondo_error_last(), "rank 1 (127.0.0.1:") ? 0 : 2;
    });
    pid_t victim = Fork([&] {
        rondo_bootstrap *bootstrap = nullptr;
        std::thread([&] {
            rondo_clock_sleep_ns(300000000);
            _exit(7);
        }).detach();
        rondo_bootstrap_join(&id, 1, 3, Long(), nullptr, &bootstrap);
        return 1;
    });
    EXPECT_EQ(WEXITSTATUS(Wait(victim)), 7);
    EXPECT_EQ(WEXITSTATUS(Wait(survivor)), 0);
}

TEST_F(Life, ExitWithARootAliveIsClean)
{
    pid_t child = Fork([] {
        ncclUniqueId id{};
        if (rondo_bootstrap_create_id(&id) != ncclSuccess)
            return 1;
        std::exit(0); // with destructors, and the leak check where there is one
    });
    int status = Wait(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Life, AForkedChildClosesTheSocketsAndIsToldSo)
{
    std::atomic<pid_t> child{0};
    int hold[2];
    ASSERT_EQ(pipe(hold), 0);
    Run(2, [&](int rank, rondo_bootstrap *bootstrap) {
        char byte;
        if (rank == 0) {
            child = Fork([&] {
                if (rondo_bootstrap_send(bootstrap, 1, 0, "x", 1, Long()) != ncclInvalidUsage)
                    return 1;
                if (rondo_bootstrap_barrier(bootstrap, Long()) != ncclInvalidUsage)
                    return 2;
                rondo_bootstrap_destroy(bootstrap);
                close(hold[1]);
                return read(hold[0], &byte, 1) == 0 ? 0 : 3; // live until the parent is done
            });
            return; // leaves; the child's copies must not keep the connections open
        }
        EXPECT_EQ(rondo_bootstrap_recv(bootstrap, 0, 0, &byte, 1, Long()), ncclRemoteError);
    });
    close(hold[1]);
    int status = Wait(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    close(hold[0]);
}

TEST_F(Life, AHostWithLoopbackOnlyWorks)
{
    environment_.Unset("NCCL_SOCKET_IFNAME");
    pid_t child = Fork([&] {
        if (unshare(CLONE_NEWNET) != 0)
            return 2;
        ifreq request{};
        std::strcpy(request.ifr_name, "lo");
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (ioctl(fd, SIOCSIFFLAGS, &request) != 0)
            return 3;
        close(fd);
        Run(4, [](int, rondo_bootstrap *bootstrap) {
            EXPECT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess);
        });
        return HasFailure() ? 1 : 0;
    });
    int status = Wait(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        GTEST_SKIP() << "no right to make a network namespace";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// With ever more descriptors allowed: an error first, success at some point, a hang never.
TEST_F(Life, FewDescriptorsAreAnErrorNotAHang)
{
    bool has_failed = false, has_worked = false;
    environment_.Set("RONDO_INIT_TIMEOUT", "2");
    for (int spare = 0; spare <= 16 && !has_worked; spare++) {
        DescriptorLimit limit(spare);
        ncclUniqueId id{};
        ncclResult_t rc = rondo_bootstrap_create_id(&id);
        std::vector<ncclResult_t> codes(2, rc);
        if (rc == ncclSuccess)
            codes = Join(id, {0, 1}, {2, 2}, AfterMs(1500));
        has_failed |= codes[0] != ncclSuccess || codes[1] != ncclSuccess;
        has_worked |= codes[0] == ncclSuccess && codes[1] == ncclSuccess;
    }
    EXPECT_TRUE(has_failed);
    EXPECT_TRUE(has_worked);
}

} // namespace
