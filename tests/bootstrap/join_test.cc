// How joining ends when all is not well: who is missing, who is double, who came too late.
#include "loopback_ranks.h"

#include <algorithm>

namespace
{

class JoinTest : public Ranks
{
};

TEST_F(JoinTest, NamesAMissingRank)
{
    std::vector<ncclResult_t> codes = Join(Id(), {0, 1, 2}, {4, 4, 4}, AfterMs(800));
    EXPECT_EQ(codes, std::vector<ncclResult_t>(3, ncclTimeout));
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 3 missing: 3 of 4")) << rondo_error_last();
}

TEST_F(JoinTest, NamesManyMissingRanksInFewWords)
{
    std::vector<ncclResult_t> codes = Join(Id(), {2, 5}, {64, 64}, AfterMs(800));
    EXPECT_EQ(codes, std::vector<ncclResult_t>(2, ncclTimeout));
    EXPECT_TRUE(Contains(rondo_error_last(), "ranks 0-1,3-4,6-63 missing: 2 of 64")) << rondo_error_last();
}

TEST_F(JoinTest, TheRootsOwnTimeEndsWaitsWithoutADeadline)
{
    environment_.Set("RONDO_INIT_TIMEOUT", "1");
    std::vector<ncclResult_t> codes = Join(Id(), {1}, {2}, UINT64_MAX);
    EXPECT_EQ(codes[0], ncclTimeout);
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 0 missing")) << rondo_error_last();
}

TEST_F(JoinTest, WhoIsMissingIsSaidAloudBeforeTimeIsUp)
{
    environment_.Set("RONDO_STALL_SECONDS", "1");
    environment_.Unset("NCCL_DEBUG");
    testing::internal::CaptureStderr();
    EXPECT_EQ(Join(Id(), {0, 2}, {4, 4}, AfterMs(4000))[0], ncclTimeout);
    std::string lines = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(
        Contains(lines, "NCCL WARN ranks 1,3 of 4 have not called ncclCommInitRank 1 s after the first"))
        << lines;
    EXPECT_TRUE(Contains(lines, "between ncclGroupStart and ncclGroupEnd")) << lines;
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << "said once: " << lines;
}

TEST_F(JoinTest, NothingIsSaidWhileNobodyWaits)
{
    environment_.Set("RONDO_STALL_SECONDS", "1");
    environment_.Set("RONDO_INIT_TIMEOUT", "2");
    testing::internal::CaptureStderr();
    Id();
    rondo_clock_sleep_ns(UINT64_C(1500000000));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(JoinTest, RanksMayComeInAnyOrderAndLate)
{
    ncclUniqueId id = Id();
    std::vector<std::thread> threads;
    for (int rank : {3, 1, 0, 2})
        threads.emplace_back([&, rank] {
            rondo_clock_sleep_ns(static_cast<uint64_t>(rank) * 60000000);
            rondo_bootstrap *bootstrap = nullptr;
            EXPECT_EQ(rondo_bootstrap_join(&id, rank, 4, Long(), nullptr, &bootstrap), ncclSuccess)
                << rondo_error_last();
            rondo_bootstrap_destroy(bootstrap);
        });
    for (std::thread &thread : threads)
        thread.join();
}

TEST_F(JoinTest, TwoRanksWithOneNumber)
{
    std::vector<ncclResult_t> codes = Join(Id(), {0, 0, 2}, {3, 3, 3}, Long());
    EXPECT_EQ(codes, std::vector<ncclResult_t>(3, ncclInvalidUsage));
    std::string text = rondo_error_last();
    EXPECT_TRUE(Contains(text, "rank 0 of 3 is claimed twice, by 127.0.0.1:")) << text;
}

TEST_F(JoinTest, ALateRankHearsTheReasonToo)
{
    ncclUniqueId id = Id();
    std::vector<ncclResult_t> first = Join(id, {1, 1}, {3, 3}, Long());
    EXPECT_EQ(first, std::vector<ncclResult_t>(2, ncclInvalidUsage));
    EXPECT_EQ(rondo_fail(ncclInternalError, "cleared"), ncclInternalError);
    EXPECT_EQ(Join(id, {0}, {3}, Long())[0], ncclInvalidUsage);
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 1 of 3 is claimed twice")) << rondo_error_last();
}

TEST_F(JoinTest, NumbersOfRanksDiffer)
{
    environment_.Set("RONDO_INIT_TIMEOUT", "5"); // how long the root stays for a fourth rank that may come
    std::vector<ncclResult_t> codes = Join(Id(), {0, 1, 2}, {3, 4, 3}, Long());
    EXPECT_EQ(codes, std::vector<ncclResult_t>(3, ncclInvalidUsage));
    std::string text = rondo_error_last();
    EXPECT_TRUE(Contains(text, "the number of ranks differs: rank ")) << text;
    EXPECT_TRUE(Contains(text, ") says 4")) << text;
    EXPECT_TRUE(Contains(text, ") says 3")) << text;
}

// The root stays until the largest number of ranks that was spoken of has been told, whatever came first.
TEST_F(JoinTest, ContradictionsReachThoseWhoComeLater)
{
    const struct {
        std::vector<int> ranks, totals;
    } rows[] = {
        {{0, 1, 2}, {3, 2, 3}}, {{1, 0, 2}, {2, 3, 3}}, {{2, 0, 1}, {3, 3, 2}},
        {{2, 0, 1}, {2, 3, 3}}, // out of range first: its 2 ranks are not all
        {{0, 0, 1}, {2, 3, 3}}, {{0, 0, 2}, {3, 3, 3}}, {{-1, 0, 1}, {3, 3, 3}},
    };
    for (const auto &row : rows) {
        ncclUniqueId id = Id();
        std::vector<std::thread> threads;
        for (size_t i = 0; i < 3; i++) {
            threads.emplace_back([&row, id, i] {
                EXPECT_EQ(Join(id, {row.ranks[i]}, {row.totals[i]}, Long())[0], ncclInvalidUsage)
                    << i << ": " << rondo_error_last();
            });
            rondo_clock_sleep_ns(40000000);
        }
        for (std::thread &thread : threads)
            thread.join();
    }
}

// A rank that tries again with the same id is no other rank: the root stays for the one that is missing.
TEST_F(JoinTest, TryingAgainDoesNotEndTheRoot)
{
    ncclUniqueId id = Id();
    EXPECT_EQ(Join(id, {0, 1}, {3, 4}, Long()), std::vector<ncclResult_t>(2, ncclInvalidUsage));
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(Join(id, {0}, {3}, Long())[0], ncclInvalidUsage) << rondo_error_last();
    EXPECT_EQ(Join(id, {2}, {3}, Long())[0], ncclInvalidUsage) << rondo_error_last();
    EXPECT_EQ(Join(id, {3}, {4}, Long())[0], ncclInvalidUsage) << rondo_error_last();
}

// Whoever comes, before or after, hears of a rank that cannot start.
TEST_F(JoinTest, AnExcuseIsToldToAll)
{
    ncclUniqueId id = Id();
    std::thread early([&] { EXPECT_EQ(Join(id, {0}, {3}, Long())[0], ncclInvalidArgument); });
    rondo_clock_sleep_ns(50000000);
    rondo_bootstrap_excuse(&id, 1, 3, ncclInvalidArgument, "no such thing", Long(), nullptr);
    early.join();
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 1 failed: no such thing")) << rondo_error_last();
    EXPECT_EQ(rondo_fail(ncclInternalError, "cleared"), ncclInternalError);
    EXPECT_EQ(Join(id, {2}, {3}, Long())[0], ncclInvalidArgument);
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 1 failed: no such thing")) << rondo_error_last();
}

TEST_F(JoinTest, AnExcuseEndsWithoutARootOrWithAStopWord)
{
    ncclUniqueId id = Id();
    EXPECT_EQ(Join(id, {0}, {1}, Long())[0], ncclSuccess);
    rondo_bootstrap_excuse(&id, 1, 2, ncclSystemError, "gone", UINT64_MAX, nullptr); // nobody is there
    rondo_address any{}, bound{};
    int listener;
    any.in4.sin_family = AF_INET;
    any.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(rondo_socket_listen(&any, 8, &listener, &bound), ncclSuccess);
    rondo_id parts{};
    parts.root = bound;
    rondo_id_write(&parts, &id);
    rondo_bootstrap_excuse(&id, 1, 2, ncclSystemError, "silence", AfterMs(300), nullptr);
    uint32_t stop = 1;
    rondo_bootstrap_excuse(&id, 1, 2, ncclSystemError, "stopped", UINT64_MAX, &stop);
    close(listener);
}

// Whatever code and text a rank gives, the others get a failure that can be read.
TEST_F(JoinTest, AnExcuseWithoutAUsableCode)
{
    for (int code : {-1, static_cast<int>(ncclInProgress), 4711}) {
        ncclUniqueId id = Id();
        rondo_bootstrap_excuse(&id, 1, 2, static_cast<ncclResult_t>(code), std::string(5000, 'x').c_str(),
                               Long(), nullptr);
        EXPECT_EQ(Join(id, {0}, {2}, Long())[0], ncclInternalError);
        EXPECT_TRUE(Contains(rondo_error_last(), "rank 1 failed: xxxx")) << rondo_error_last();
    }
}

TEST_F(JoinTest, ARankWithoutAnInterfaceTellsTheOthers)
{
    ncclUniqueId id = Id();
    environment_.Set("NCCL_SOCKET_IFNAME", "nosuch"); // all ranks are this process: each has the trouble
    EXPECT_EQ(Join(id, {0}, {2}, Long())[0], ncclInvalidUsage);
    environment_.Set("NCCL_SOCKET_IFNAME", "lo");
    EXPECT_EQ(Join(id, {1}, {2}, Long())[0], ncclInvalidUsage);
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 0 failed: no network interface fits"))
        << rondo_error_last();
}

TEST_F(JoinTest, ARankOutOfRangeIsToldToAll)
{
    for (int rank : {2, -1, 1 << 30}) {
        std::vector<ncclResult_t> codes = Join(Id(), {0, rank}, {2, 2}, Long());
        EXPECT_EQ(codes, std::vector<ncclResult_t>(2, ncclInvalidUsage));
        EXPECT_TRUE(Contains(rondo_error_last(), "rank " + std::to_string(rank) + " (127.0.0.1:"))
            << rondo_error_last();
        EXPECT_TRUE(Contains(rondo_error_last(), "out of range")) << rondo_error_last();
    }
}

TEST_F(JoinTest, ImpossibleNumbersOfRanks)
{
    ncclUniqueId id = Id();
    for (int ranks : {0, -5, RONDO_RANKS_MOST + 1})
        EXPECT_EQ(Join(id, {0}, {ranks}, Long())[0], ncclInvalidArgument);
    EXPECT_EQ(Join(id, {0}, {1}, Long())[0], ncclSuccess) << "the root has not been disturbed";
}

// A rank of another version, made by hand: the library itself has only one.
struct Foreign {
    rondo_secret secret;
    rondo_report report{};
    bool is_told = false;
    int32_t code = -1;
    rondo_link *link = nullptr;
    rondo_loop_source source{};
};

TEST_F(JoinTest, VersionsDiffer)
{
    static const rondo_link_ops ops = {
        nullptr,
        [](rondo_link *link) {
            auto *self = static_cast<Foreign *>(link->owner);
            EXPECT_EQ(rondo_link_send(link, RONDO_FRAME_REPORT, 0, &self->report, sizeof(self->report)),
                      ncclSuccess);
        },
        [](rondo_link *link, const rondo_frame *head, void *data) {
            auto *self = static_cast<Foreign *>(link->owner);
            EXPECT_GE(head->bytes, sizeof(rondo_answer));
            std::memcpy(&self->code, data, sizeof(self->code));
            std::free(data);
            self->is_told = true;
            return true;
        },
        [](rondo_link *, rondo_link_end, int) {},
        nullptr,
    };
    ncclUniqueId id = Id();
    rondo_id parts{};
    Foreign foreign;
    ASSERT_EQ(rondo_id_read(&id, &parts), ncclSuccess);
    foreign.secret = parts.secret;
    foreign.report.version = RONDO_BOOTSTRAP_VERSION + 1;
    foreign.report.rank = 1;
    foreign.report.ranks = 2;
    foreign.report.patience_ms = UINT32_MAX;
    foreign.report.listener = parts.root;
    foreign.source.wake = UINT64_MAX;
    rondo_entry entry{};
    entry.purpose = RONDO_PURPOSE_ROOT;
    entry.from = 1;
    entry.to = -1;
    rondo_loop_lock();
    ASSERT_EQ(rondo_loop_attach(&foreign.source), ncclSuccess);
    ASSERT_EQ(rondo_link_create_client(&parts.root, &foreign.secret, &entry, &ops, &foreign, &foreign.link),
              ncclSuccess);
    ASSERT_EQ(rondo_link_connect(foreign.link), ncclSuccess);
    rondo_loop_unlock();
    EXPECT_EQ(Join(id, {0}, {2}, Long())[0], ncclInvalidUsage);
    std::string text = rondo_error_last();
    EXPECT_TRUE(Contains(text, "library versions differ")) << text;
    EXPECT_TRUE(Contains(text, std::to_string(RONDO_BOOTSTRAP_VERSION + 1))) << text;
    for (bool is_told = false; !is_told;) {
        rondo_clock_sleep_ns(1000000);
        rondo_loop_lock();
        is_told = foreign.is_told;
        rondo_loop_unlock();
    }
    rondo_loop_lock();
    EXPECT_EQ(foreign.code, ncclInvalidUsage);
    rondo_link_destroy(foreign.link);
    rondo_loop_detach(&foreign.source);
    rondo_loop_unlock_settled();
}

TEST_F(JoinTest, WhoComesAfterTheOthersGaveUpIsToldSo)
{
    environment_.Set("RONDO_INIT_TIMEOUT", "1");
    ncclUniqueId id = Id();
    EXPECT_EQ(Join(id, {1}, {2}, UINT64_MAX)[0], ncclTimeout);
    EXPECT_EQ(Join(id, {0}, {2}, UINT64_MAX)[0], ncclTimeout); // the root is still there
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 0 came 0.")) << rondo_error_last();
    EXPECT_TRUE(Contains(rondo_error_last(), " s after these had given up")) << rondo_error_last();
    ncclUniqueId other = Id();
    ExpectResources(descriptors_, threads_); // until it is not
    rondo_clock_sleep_ns(200000000);
    EXPECT_EQ(Join(other, {0}, {2}, UINT64_MAX)[0], ncclRemoteError);
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 0 is too late by ")) << rondo_error_last();
}

TEST_F(JoinTest, AnIdServesOnce)
{
    ncclUniqueId id = Id();
    EXPECT_EQ(Join(id, {0, 1}, {2, 2}, Long()), std::vector<ncclResult_t>(2, ncclSuccess));
    EXPECT_EQ(Join(id, {0, 1}, {2, 2}, UINT64_MAX), std::vector<ncclResult_t>(2, ncclRemoteError));
    std::string text = rondo_error_last();
    EXPECT_TRUE(Contains(text, "an id serves one communicator")) << text;
}

TEST_F(JoinTest, StopEndsAWaitingJoin)
{
    uint32_t stop = 0;
    ncclUniqueId id = Id();
    rondo_bootstrap *bootstrap = nullptr;
    std::thread stopper([&] {
        rondo_clock_sleep_ns(100000000);
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    });
    EXPECT_EQ(rondo_bootstrap_join(&id, 0, 2, UINT64_MAX, &stop, &bootstrap), ncclInvalidUsage);
    EXPECT_STREQ(rondo_error_last(), "aborted");
    EXPECT_EQ(bootstrap, nullptr);
    stopper.join();
    EXPECT_EQ(Join(id, {1}, {2}, Long())[0], ncclRemoteError) << "the others are told";
    EXPECT_TRUE(Contains(rondo_error_last(), "rank 0 (127.0.0.1:")) << rondo_error_last();
    EXPECT_TRUE(Contains(rondo_error_last(), "went away before all 2 ranks had come")) << rondo_error_last();
}

TEST_F(JoinTest, ARankThatGivesUpEndsTheOthersWait)
{
    uint32_t stop = 0;
    ncclUniqueId id = Id();
    std::thread quitter([&] {
        rondo_bootstrap *bootstrap = nullptr;
        EXPECT_EQ(rondo_bootstrap_join(&id, 2, 3, Long(), &stop, &bootstrap), ncclInvalidUsage);
    });
    std::thread stopper([&] {
        rondo_clock_sleep_ns(200000000);
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    });
    EXPECT_EQ(Join(id, {0}, {3}, Long())[0], ncclRemoteError);
    quitter.join();
    stopper.join();
    EXPECT_EQ(Join(id, {1}, {3}, Long())[0], ncclRemoteError);
}

TEST_F(JoinTest, SeveralJobsAtOnceDoNotMix)
{
    std::vector<std::thread> jobs;
    for (int job = 0; job < 4; job++)
        jobs.emplace_back([job] {
            Run(3, [job](int rank, rondo_bootstrap *bootstrap) {
                int seen[3] = {-1, -1, -1};
                seen[rank] = job * 10 + rank;
                ASSERT_EQ(rondo_bootstrap_all_gather(bootstrap, seen, sizeof(int), Long()), ncclSuccess)
                    << rondo_error_last();
                for (int peer = 0; peer < 3; peer++)
                    EXPECT_EQ(seen[peer], job * 10 + peer);
            });
        });
    for (std::thread &job : jobs)
        job.join();
}

TEST_F(JoinTest, WorksOverIPv6)
{
    rondo_interface found;
    int count;
    if (rondo_interface_find("=lo", AF_INET6, &found, 1, &count) != ncclSuccess)
        GTEST_SKIP() << "no IPv6 on loopback: " << rondo_error_last();
    environment_.Set("NCCL_SOCKET_FAMILY", "AF_INET6");
    ncclUniqueId id = Id();
    EXPECT_EQ(RootAddress(id).any.sa_family, AF_INET6);
    Run(id, 3, [](int, rondo_bootstrap *bootstrap) {
        EXPECT_EQ(bootstrap->addresses[0].any.sa_family, AF_INET6);
        EXPECT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess) << rondo_error_last();
    });
}

TEST_F(JoinTest, NoUsableInterfaceIsSaid)
{
    environment_.Set("NCCL_SOCKET_IFNAME", "nosuch");
    ncclUniqueId id{};
    EXPECT_EQ(rondo_bootstrap_create_id(&id), ncclInvalidUsage);
    EXPECT_TRUE(Contains(rondo_error_last(), "NCCL_SOCKET_IFNAME=\"nosuch\"")) << rondo_error_last();
}

} // namespace
