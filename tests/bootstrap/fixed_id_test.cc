// NCCL_COMM_ID: one id for everybody, with and without a secret of its own.
#include "loopback_ranks.h"

#include <csignal>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>

namespace
{

class FixedId : public Ranks
{
  protected:
    void SetUp() override
    {
        Ranks::SetUp();
        rondo_address any{};
        int fd;
        any.in4.sin_family = AF_INET;
        any.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(rondo_socket_listen(&any, 1, &fd, &address_),
                  ncclSuccess); // a port that was free a moment ago
        close(fd);
        char text[RONDO_ADDRESS_TEXT];
        environment_.Set("NCCL_COMM_ID", rondo_address_text(&address_, text));
        char folder[] = "/tmp/rondo-secret-XXXXXX";
        ASSERT_NE(mkdtemp(folder), nullptr);
        folder_ = folder;
    }
    void TearDown() override
    {
        EXPECT_EQ(std::system(("rm -r " + folder_).c_str()), 0);
        Ranks::TearDown();
    }
    std::string SecretFile(const std::string &name, const std::string &text, mode_t mode)
    {
        std::string path = folder_ + "/" + name;
        std::ofstream(path) << text;
        EXPECT_EQ(chmod(path.c_str(), mode), 0);
        return path;
    }

    rondo_address address_{};
    std::string folder_;
};

TEST_F(FixedId, IsTheSameForEverybodyAndOpensNoPort)
{
    ncclUniqueId one = Id(), other = Id();
    EXPECT_EQ(std::memcmp(&one, &other, sizeof(one)), 0);
    EXPECT_EQ(CountDescriptors(), descriptors_);
    Run(one, 3, [](int, rondo_bootstrap *bootstrap) {
        EXPECT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess);
    });
}

TEST_F(FixedId, WithASecretFile)
{
    environment_.Set("RONDO_SECRET_FILE", SecretFile("good", "a passphrase\n", 0600));
    ncclUniqueId with = Id();
    environment_.Unset("RONDO_SECRET_FILE");
    ncclUniqueId without = Id();
    EXPECT_NE(std::memcmp(&with, &without, sizeof(with)), 0);
    EXPECT_EQ(Join(with, {0, 1}, {2, 2}, Long()), std::vector<ncclResult_t>(2, ncclSuccess));
}

TEST_F(FixedId, AnUnsafeOrUselessSecretFileIsRefused)
{
    ncclUniqueId id{};
    std::string fifo = folder_ + "/fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const struct {
        std::string path, text;
    } rows[] = {
        {SecretFile("group", "x", 0640), "mode 0640"},
        {SecretFile("other", "x", 0604), "mode 0604"},
        {SecretFile("empty", "", 0600), "0 bytes"},
        {SecretFile("huge", std::string(5000, 'x'), 0600), "more than 4096 bytes"},
        {folder_ + "/nosuch", "No such file"},
        {folder_, "not a regular file"},
        {fifo, "not a regular file"},
    };
    for (const auto &row : rows) {
        environment_.Set("RONDO_SECRET_FILE", row.path);
        EXPECT_EQ(rondo_bootstrap_create_id(&id), ncclInvalidUsage) << row.path;
        EXPECT_TRUE(Contains(rondo_error_last(), row.path)) << rondo_error_last();
        EXPECT_TRUE(Contains(rondo_error_last(), row.text)) << rondo_error_last();
    }
    environment_.Set("RONDO_SECRET_FILE", SecretFile("strict", "x", 0400));
    EXPECT_EQ(rondo_bootstrap_create_id(&id), ncclSuccess) << rondo_error_last();
    if (geteuid() == 0) {
        std::string foreign = SecretFile("foreign", "x", 0600);
        ASSERT_EQ(chown(foreign.c_str(), 1234, 1234), 0);
        environment_.Set("RONDO_SECRET_FILE", foreign);
        EXPECT_EQ(rondo_bootstrap_create_id(&id), ncclInvalidUsage);
        EXPECT_TRUE(Contains(rondo_error_last(), "belongs to user 1234")) << rondo_error_last();
    }
}

TEST_F(FixedId, AnotherSecretIsRefused)
{
    environment_.Set("RONDO_SECRET_FILE", SecretFile("one", "one", 0600));
    ncclUniqueId right = Id();
    environment_.Set("RONDO_SECRET_FILE", SecretFile("two", "two", 0600));
    ncclUniqueId wrong = Id();
    std::thread good([&] {
        EXPECT_EQ(Join(right, {0, 2}, {3, 3}, Long()), std::vector<ncclResult_t>(2, ncclSuccess));
    });
    EXPECT_EQ(Join(wrong, {1}, {3}, Long())[0], ncclInvalidUsage);
    EXPECT_EQ(Join(right, {1}, {3}, Long())[0], ncclSuccess) << "and does no harm";
    good.join();
}

TEST_F(FixedId, RanksMayComeBeforeRankZero)
{
    ncclUniqueId id = Id();
    std::thread early([&] {
        EXPECT_EQ(Join(id, {1, 2}, {3, 3}, Long()), std::vector<ncclResult_t>(2, ncclSuccess));
    });
    rondo_clock_sleep_ns(150000000);
    EXPECT_EQ(Join(id, {0}, {3}, Long())[0], ncclSuccess) << rondo_error_last();
    early.join();
}

TEST_F(FixedId, AnExcuseOfAnyRankIsToldToTheOthers)
{
    ncclUniqueId id = Id();
    for (int odd : {0, 1}) {
        std::thread other([&] { // rank 1 may be there before a root is
            EXPECT_EQ(Join(id, {1 - odd}, {2}, Long())[0], ncclInvalidArgument) << rondo_error_last();
        });
        rondo_clock_sleep_ns(100000000);
        rondo_bootstrap_excuse(&id, odd, 2, ncclInvalidArgument, "no such thing", Long(), nullptr);
        other.join();
        EXPECT_EQ(Join(id, {0, 1}, {2, 2}, Long()), std::vector<ncclResult_t>(2, ncclSuccess))
            << "the next run: " << rondo_error_last();
    }
}

TEST_F(FixedId, WithoutRankZeroTheWaitEnds)
{
    ncclUniqueId id = Id();
    EXPECT_EQ(Join(id, {1}, {2}, AfterMs(200))[0], ncclTimeout);
    EXPECT_TRUE(Contains(rondo_error_last(), "which rank 0 starts")) << rondo_error_last();
}

TEST_F(FixedId, ATakenPortIsSaid)
{
    int fd;
    rondo_address bound;
    char text[RONDO_ADDRESS_TEXT];
    ncclUniqueId id = Id();
    ASSERT_EQ(rondo_socket_listen(&address_, 1, &fd, &bound), ncclSuccess);
    EXPECT_EQ(Join(id, {0}, {2}, Long())[0], ncclSystemError);
    std::string message = rondo_error_last();
    EXPECT_TRUE(Contains(message, rondo_address_text(&address_, text))) << message;
    EXPECT_TRUE(Contains(message, "port in use")) << message;
    close(fd);
}

TEST_F(FixedId, ManyRunsOnOnePort)
{
    ncclUniqueId id = Id();
    for (int run = 0; run < 200; run++) {
        std::vector<std::thread> threads;
        for (int rank = 0; rank < 2; rank++)
            threads.emplace_back(
                [&, rank] { // a rank of the next run may start while the other is still in this one
                    rondo_bootstrap *bootstrap = nullptr;
                    ASSERT_EQ(rondo_bootstrap_join(&id, rank, 2, Long(), nullptr, &bootstrap), ncclSuccess)
                        << rondo_error_last();
                    rondo_bootstrap_destroy(bootstrap);
                });
        for (std::thread &thread : threads)
            thread.join();
        if (HasFatalFailure())
            return;
    }
}

// The ranks do not wait for one another between runs: one may be a run ahead.
TEST_F(FixedId, RunsFollowEachOtherWithoutAPause)
{
    ncclUniqueId id = Id();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; rank++)
        threads.emplace_back([&, rank] {
            for (int run = 0; run < 50; run++) {
                rondo_bootstrap *bootstrap = nullptr;
                int runs[3] = {-1, -1, -1};
                ASSERT_EQ(rondo_bootstrap_join(&id, rank, 3, Long(), nullptr, &bootstrap), ncclSuccess)
                    << rondo_error_last();
                runs[rank] = run;
                EXPECT_EQ(rondo_bootstrap_all_gather(bootstrap, runs, sizeof(int), Long()), ncclSuccess)
                    << rondo_error_last();
                EXPECT_TRUE(runs[0] == run && runs[1] == run && runs[2] == run);
                rondo_bootstrap_destroy(bootstrap);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}

// Whatever ended a run, its root must neither hold the port nor answer the ranks of the next run.
TEST_F(FixedId, ARunThatTimedOutIsForgotten)
{
    ncclUniqueId id = Id();
    EXPECT_EQ(Join(id, {0}, {2}, AfterMs(300))[0], ncclTimeout);
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 1 missing")) << rondo_error_last();
    EXPECT_EQ(Join(id, {1}, {2}, AfterMs(300))[0], ncclTimeout);
    EXPECT_TRUE(Contains(rondo_error_last(), "which rank 0 starts")) << rondo_error_last();
    EXPECT_EQ(Join(id, {0, 1}, {2, 2}, Long()), std::vector<ncclResult_t>(2, ncclSuccess))
        << rondo_error_last();
}

TEST_F(FixedId, ARunThatRankZeroGaveUpIsForgotten)
{
    ncclUniqueId id = Id();
    volatile uint32_t stop = 1;
    rondo_bootstrap *bootstrap = nullptr;
    EXPECT_NE(rondo_bootstrap_join(&id, 0, 2, Long(), &stop, &bootstrap), ncclSuccess);
    EXPECT_EQ(Join(id, {1}, {2}, AfterMs(300))[0], ncclTimeout);
    EXPECT_TRUE(Contains(rondo_error_last(), "which rank 0 starts")) << rondo_error_last();
    EXPECT_EQ(Join(id, {0, 1}, {2, 2}, Long()), std::vector<ncclResult_t>(2, ncclSuccess))
        << rondo_error_last();
}

// A root that found a contradiction waits for the ranks that have not heard of it, here rank 2 of 3.
TEST_F(FixedId, ARunWhoseRanksDisagreedIsForgotten)
{
    ncclUniqueId id = Id();
    for (int run = 0; run < 20 && !HasFailure(); run++) {
        std::vector<ncclResult_t> wrong = Join(id, {0, 1}, {3, 2}, Long());
        EXPECT_EQ(wrong, std::vector<ncclResult_t>(2, ncclInvalidUsage)) << rondo_error_last();
        EXPECT_EQ(Join(id, {1, 0}, {2, 2}, Long()), std::vector<ncclResult_t>(2, ncclSuccess))
            << rondo_error_last();
    }
}

// A root that has left the address is of the run before, even while a rank that does not run keeps it from
// its end.
TEST_F(FixedId, AnExcuseIsForTheRunThatComes)
{
    ncclUniqueId id = Id();
    pid_t frozen = fork();
    if (frozen == 0) {
        Join(id, {1}, {3}, Long());
        _exit(0);
    }
    std::thread early([&] { EXPECT_EQ(Join(id, {0}, {3}, AfterMs(1500))[0], ncclTimeout); });
    usleep(700000); // for rank 1 to report
    ASSERT_EQ(kill(frozen, SIGSTOP), 0);
    early.join();
    std::thread excuse(
        [&] { rondo_bootstrap_excuse(&id, 1, 2, ncclInvalidUsage, "it cannot", AfterMs(20000), nullptr); });
    usleep(50000); // for the excuse to look for a root
    EXPECT_EQ(Join(id, {0}, {2}, AfterMs(20000))[0], ncclInvalidUsage);
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 1 failed: it cannot")) << rondo_error_last();
    excuse.join();
    EXPECT_EQ(kill(frozen, SIGKILL), 0);
    EXPECT_EQ(waitpid(frozen, nullptr, 0), frozen);
}

TEST_F(FixedId, IsWarnedOfOnceWhenUnauthenticated)
{
    // The warning is given once a process, so a process of its own looks for it.
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        setenv("NCCL_DEBUG", "WARN", 1);
        execl("/proc/self/exe", "bootstrap_test", "--gtest_filter=FixedIdHelper.DISABLED_MakeThree",
              "--gtest_also_run_disabled_tests", nullptr);
        _exit(1);
    }
    close(ends[1]);
    std::string lines;
    char buffer[512];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;)
        lines.append(buffer, static_cast<size_t>(got));
    close(ends[0]);
    size_t at = lines.find("unauthenticated");
    EXPECT_NE(at, std::string::npos) << lines;
    EXPECT_EQ(lines.find("unauthenticated", at + 1), std::string::npos) << lines;
}

// Helper of the test above.
TEST(FixedIdHelper, DISABLED_MakeThree)
{
    ncclUniqueId id{};
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(rondo_bootstrap_create_id(&id), ncclSuccess);
}

TEST_F(FixedId, ATextThatIsNoAddressIsRefused)
{
    ncclUniqueId id{};
    for (const char *text : {"nonsense", "1.2.3.4", "1.2.3.4:99999", ":5"}) {
        environment_.Set("NCCL_COMM_ID", text);
        EXPECT_EQ(rondo_bootstrap_create_id(&id), ncclInvalidArgument) << text;
        EXPECT_TRUE(Contains(rondo_error_last(), "NCCL_COMM_ID")) << rondo_error_last();
    }
}

} // namespace
