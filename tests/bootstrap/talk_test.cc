// All-gather, barrier and messages between ranks that joined.
#include "loopback_ranks.h"

#include <atomic>

namespace
{

unsigned char Value(int rank, size_t at, int turn)
{
    return static_cast<unsigned char>(rank * 37 + at * 11 + static_cast<size_t>(turn) * 101 + 1);
}

void GatherAndCheck(rondo_bootstrap *bootstrap, int rank, int ranks, size_t bytes, int turn)
{
    std::vector<unsigned char> data(static_cast<size_t>(ranks) * bytes, 0);
    for (size_t at = 0; at < bytes; at++)
        data[static_cast<size_t>(rank) * bytes + at] = Value(rank, at, turn);
    ASSERT_EQ(rondo_bootstrap_all_gather(bootstrap, data.data(), bytes, Long()), ncclSuccess)
        << rondo_error_last();
    for (int peer = 0; peer < ranks; peer++)
        for (size_t at = 0; at < bytes; at++)
            ASSERT_EQ(data[static_cast<size_t>(peer) * bytes + at], Value(peer, at, turn))
                << "rank " << rank << " block " << peer;
}

class Talk : public Ranks
{
};

TEST_F(Talk, AllGatherForEveryNumberOfRanks)
{
    for (int ranks = 1; ranks <= 33; ranks++) {
        Run(ranks, [ranks](int rank, rondo_bootstrap *bootstrap) {
            int turn = 0;
            for (size_t bytes : {size_t{1}, size_t{7}, size_t{0}, size_t{300}, size_t{28}})
                GatherAndCheck(bootstrap, rank, ranks, bytes, turn++);
        });
        if (HasFatalFailure() || HasNonfatalFailure())
            return;
    }
}

TEST_F(Talk, AllGatherOfMuch)
{
    Run(3, [](int rank, rondo_bootstrap *bootstrap) { GatherAndCheck(bootstrap, rank, 3, 3000001, 0); });
}

TEST_F(Talk, TooMuchIsRefused)
{
    Run(2, [](int rank, rondo_bootstrap *bootstrap) {
        static_cast<void>(rank);
        char byte = 0;
        EXPECT_EQ(rondo_bootstrap_all_gather(bootstrap, &byte, SIZE_MAX / 2, Long()), ncclInvalidArgument);
        EXPECT_EQ(rondo_bootstrap_send(bootstrap, 0, 0, &byte, SIZE_MAX / 2, Long()), ncclInvalidArgument);
        EXPECT_EQ(rondo_bootstrap_send(bootstrap, 2, 0, &byte, 1, Long()), ncclInvalidArgument);
        EXPECT_EQ(rondo_bootstrap_recv(bootstrap, -1, 0, &byte, 1, Long()), ncclInvalidArgument);
        EXPECT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess)
            << "a refusal leaves things as they were";
    });
}

TEST_F(Talk, BarrierHoldsEverybody)
{
    constexpr int kRanks = 7, kTurns = 30;
    std::atomic<int> arrived{0};
    Run(kRanks, [&](int, rondo_bootstrap *bootstrap) {
        for (int turn = 1; turn <= kTurns; turn++) {
            arrived++;
            ASSERT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess) << rondo_error_last();
            ASSERT_GE(arrived.load(), kRanks * turn);
        }
    });
}

// Everybody sends everybody several messages at once, and takes them in another order.
TEST_F(Talk, MessagesCross)
{
    constexpr int kRanks = 9, kTags = 3;
    Run(kRanks, [](int rank, rondo_bootstrap *bootstrap) {
        for (int step = 0; step < kRanks; step++) {
            int peer = (rank + step) % kRanks;
            for (uint32_t tag = 0; tag < kTags; tag++)
                for (int turn = 0; turn < 2; turn++) {
                    std::vector<unsigned char> data(1 + tag * 1000, Value(rank, static_cast<size_t>(peer),
                                                                          static_cast<int>(tag) * 2 + turn));
                    ASSERT_EQ(rondo_bootstrap_send(bootstrap, peer, tag, data.data(), data.size(), Long()),
                              ncclSuccess)
                        << rondo_error_last();
                }
        }
        for (uint32_t tag = kTags; tag-- > 0;)
            for (int peer = 0; peer < kRanks; peer++)
                for (int turn = 0; turn < 2; turn++) {
                    std::vector<unsigned char> data(1 + tag * 1000, 0);
                    ASSERT_EQ(rondo_bootstrap_recv(bootstrap, peer, tag, data.data(), data.size(), Long()),
                              ncclSuccess)
                        << rondo_error_last();
                    for (unsigned char byte : data)
                        ASSERT_EQ(byte,
                                  Value(peer, static_cast<size_t>(rank), static_cast<int>(tag) * 2 + turn));
                }
        ASSERT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess);
    });
}

// One thread holds both ranks, as a group of one process does: a send must not need its receiver's call.
TEST_F(Talk, SendDoesNotWaitForTheReceiver)
{
    rondo_bootstrap *both[2] = {nullptr, nullptr};
    ncclUniqueId id = Id();
    std::thread other(
        [&] { EXPECT_EQ(rondo_bootstrap_join(&id, 1, 2, Long(), nullptr, &both[1]), ncclSuccess); });
    ASSERT_EQ(rondo_bootstrap_join(&id, 0, 2, Long(), nullptr, &both[0]), ncclSuccess) << rondo_error_last();
    other.join();
    std::vector<char> big(5 << 20, 'x'), got(big.size());
    for (int from = 0; from < 2; from++) {
        ASSERT_EQ(rondo_bootstrap_send(both[from], 1 - from, 5, big.data(), big.size(), Long()), ncclSuccess)
            << rondo_error_last();
        ASSERT_EQ(rondo_bootstrap_send(both[from], 1 - from, 5, nullptr, 0, Long()), ncclSuccess);
        ASSERT_EQ(rondo_bootstrap_recv(both[1 - from], from, 5, got.data(), got.size(), Long()), ncclSuccess)
            << rondo_error_last();
        ASSERT_EQ(rondo_bootstrap_recv(both[1 - from], from, 5, nullptr, 0, Long()), ncclSuccess);
        EXPECT_EQ(got, big);
    }
    rondo_bootstrap_destroy(both[0]);
    rondo_bootstrap_destroy(both[1]);
}

// What was sent arrives although the sender has left; more is an error that names it.
TEST_F(Talk, LeavingDeliversWhatWasSent)
{
    Run(4, [](int rank, rondo_bootstrap *bootstrap) {
        char text[6] = "hello";
        if (rank == 2) {
            for (int peer : {0, 1, 3})
                ASSERT_EQ(rondo_bootstrap_send(bootstrap, peer, 1, text, sizeof(text), Long()), ncclSuccess);
            return;
        }
        std::memset(text, 0, sizeof(text));
        ASSERT_EQ(rondo_bootstrap_recv(bootstrap, 2, 1, text, sizeof(text), Long()), ncclSuccess)
            << rondo_error_last();
        EXPECT_STREQ(text, "hello");
        EXPECT_EQ(rondo_bootstrap_recv(bootstrap, 2, 1, text, sizeof(text), Long()), ncclRemoteError);
        EXPECT_TRUE(Contains(rondo_error_last(), "rank 2")) << rondo_error_last();
    });
}

TEST_F(Talk, SizesThatDifferAreNamed)
{
    Run(2, [](int rank, rondo_bootstrap *bootstrap) {
        char bytes[8] = {0};
        if (rank == 0) {
            ASSERT_EQ(rondo_bootstrap_send(bootstrap, 1, 1, bytes, 8, Long()), ncclSuccess);
        } else {
            EXPECT_EQ(rondo_bootstrap_recv(bootstrap, 0, 1, bytes, 4, Long()), ncclInvalidUsage);
            EXPECT_TRUE(Contains(rondo_error_last(), "rank 1 expects 4 bytes of rank 0, which sends 8"))
                << rondo_error_last();
        }
        EXPECT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess);
    });
}

TEST_F(Talk, AWaitEndsAtItsDeadlineAndNamesThePeer)
{
    Run(3, [](int rank, rondo_bootstrap *bootstrap) {
        char byte;
        if (rank == 0) {
            EXPECT_EQ(rondo_bootstrap_recv(bootstrap, 2, 9, &byte, 1, AfterMs(50)), ncclTimeout);
            EXPECT_TRUE(Contains(rondo_error_last(), "rank 0 waits for rank 2")) << rondo_error_last();
        }
        EXPECT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess) << rondo_error_last();
    });
}

TEST_F(Talk, StopEndsAnyWait)
{
    uint32_t stop = 0;
    ncclUniqueId id = Id();
    std::vector<std::thread> threads;
    std::atomic<int> attempts{0};
    for (int rank = 0; rank < 2; rank++)
        threads.emplace_back([&, rank] {
            rondo_bootstrap *bootstrap = nullptr;
            char byte;
            ncclResult_t joined = rondo_bootstrap_join(&id, rank, 2, Long(), &stop, &bootstrap);
            attempts++;
            ASSERT_EQ(joined, ncclSuccess) << rondo_error_last();
            EXPECT_EQ(rondo_bootstrap_recv(bootstrap, 1 - rank, 0, &byte, 1, UINT64_MAX), ncclInvalidUsage);
            rondo_bootstrap_destroy(bootstrap);
        });
    while (attempts < 2)
        rondo_clock_sleep_ns(1000000);
    rondo_clock_sleep_ns(100000000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (std::thread &thread : threads)
        thread.join();
}

TEST_F(Talk, DescriptorsGrowLikeTheLogarithm)
{
    std::atomic<int> most{0};
    constexpr int kRanks = 32;
    int before = CountDescriptors();
    Run(kRanks, [&](int, rondo_bootstrap *bootstrap) {
        ASSERT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess);
        int seen = most, now = CountDescriptors();
        while (now > seen && !most.compare_exchange_weak(seen, now))
            ;
        ASSERT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess);
    });
    // A listener, five links out and five in for each; the root's may not all be closed yet.
    EXPECT_LE(most.load() - before, kRanks * (1 + 2 * 5) + 2 * kRanks + 8);
}

TEST_F(Talk, TwoHundredRunsLeaveNothingBehind)
{
    Run(2, [](int, rondo_bootstrap *) {});
    int descriptors = CountDescriptors(), threads = CountThreads();
    for (int run = 0; run < 200; run++) {
        Run(2, [run](int rank, rondo_bootstrap *bootstrap) { GatherAndCheck(bootstrap, rank, 2, 8, run); });
        if (HasFatalFailure())
            return;
    }
    ExpectResources(descriptors, threads);
}

} // namespace
