// Groups, and the ways in which point to point can be used rightly and wrongly.
#include "ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace
{

// Read once by the library, at its first use.
const int kEnvironment = setenv("RONDO_STALL_SECONDS", "1", 1);

std::string LastError()
{
    return ncclGetLastError(nullptr);
}

void OneThread(int ranks, const Body &body)
{
    ExpectSuccess(RunRanks(Mode::kOneThread, ranks, [&](Party &party) {
        std::string outcome = party.Init();
        if (outcome.empty())
            outcome = body(party);
        for (ncclComm_t comm : party.comms)
            EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << LastError();
        return outcome;
    }));
}

// C01
TEST(Groups, SendToSelf)
{
    OneThread(2, [](Party &p) {
        for (size_t bytes : {size_t{0}, size_t{1}, size_t{1} << 20}) {
            std::vector<char> in(bytes + 1, 'x'), out(bytes + 1, '.');
            std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
                if (rank != 0)
                    return ncclSuccess;
                ncclResult_t result = ncclSend(in.data(), bytes, ncclChar, 0, comm, nullptr);
                return result == ncclSuccess ? ncclRecv(out.data(), bytes, ncclChar, 0, comm, nullptr)
                                             : result;
            });
            if (!outcome.empty())
                return outcome;
            EXPECT_EQ(out[bytes], '.');
            EXPECT_EQ(std::string(out.data(), bytes), std::string(in.data(), bytes));
        }
        return std::string();
    });
}

TEST(Groups, SendToSelfNeedsItsReceive)
{
    OneThread(1, [](Party &p) {
        char byte = 0;
        EXPECT_EQ(ncclSend(&byte, 1, ncclChar, 0, p.comms[0], nullptr), ncclInvalidUsage);
        EXPECT_NE(LastError(), "");
        EXPECT_EQ(ncclRecv(&byte, 1, ncclChar, 0, p.comms[0], nullptr), ncclInvalidUsage);
        // Nothing is left behind of either.
        EXPECT_EQ(ncclAllReduce(&byte, &byte, 1, ncclChar, ncclSum, p.comms[0], nullptr), ncclSuccess)
            << LastError();
        return std::string();
    });
}

// C05
TEST(Groups, ThousandSendsInOneGroup)
{
    OneThread(2, [](Party &p) {
        constexpr int kMessages = 1000;
        std::vector<std::vector<unsigned char>> in(kMessages), out(kMessages);
        for (int m = 0; m < kMessages; m++) {
            in[m].assign(m + 1, static_cast<unsigned char>(m * 7));
            out[m].assign(m + 1, 0);
        }
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            ncclResult_t result = ncclSuccess;
            for (int m = 0; m < kMessages && result == ncclSuccess; m++)
                result = rank == 0 ? ncclSend(in[m].data(), m + 1, ncclUint8, 1, comm, nullptr)
                                   : ncclRecv(out[m].data(), m + 1, ncclUint8, 0, comm, nullptr);
            return result;
        });
        for (int m = 0; m < kMessages; m++)
            EXPECT_EQ(in[m], out[m]) << "message " << m;
        return outcome;
    });
}

// C07
TEST(Groups, CommunicatorIsNotThereBeforeItsGroupEnds)
{
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    float value = 1;

    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess) << LastError();
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidUsage);
    EXPECT_NE(LastError().find("ncclAllReduce"), std::string::npos) << LastError();
    EXPECT_NE(LastError().find("group"), std::string::npos) << LastError();
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_NE(LastError().find("ncclAllReduce"), std::string::npos) << LastError();
    EXPECT_EQ(comm, nullptr); // not half a communicator
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// C08
TEST(Groups, EmptyNestedAndUnopened)
{
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    EXPECT_NE(LastError().find("ncclGroupStart"), std::string::npos) << LastError();
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    OneThread(2, [](Party &p) {
        std::vector<int> value = {1, 2};
        EXPECT_EQ(ncclGroupStart(), ncclSuccess);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            return ncclAllReduce(&value[rank], &value[rank], 1, ncclInt, ncclSum, comm, nullptr);
        });
        EXPECT_EQ(value[0], 1) << "an inner group has run";
        EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << LastError();
        for (int r = 0; r < 2; r++)
            EXPECT_EQ(Outcome(r, p.comms[r], ncclSuccess), ncclSuccess) << LastError();
        EXPECT_EQ(value[0], 3);
        EXPECT_EQ(value[1], 3);
        EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
        return outcome;
    });
}

TEST(Groups, FailureDropsTheGroup)
{
    OneThread(2, [](Party &p) {
        std::vector<int> value = {1, 2};
        EXPECT_EQ(ncclGroupStart(), ncclSuccess);
        for (int r = 0; r < 2; r++)
            EXPECT_EQ(ncclAllReduce(&value[r], &value[r], 1, ncclInt, ncclSum, p.comms[r], nullptr),
                      ncclSuccess);
        EXPECT_EQ(ncclBroadcast(&value[0], &value[0], 1, ncclInt, 2, p.comms[0], nullptr),
                  ncclInvalidArgument);
        (void)ncclCommCount(nullptr, nullptr); // another failure, not recorded in a group
        EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
        EXPECT_NE(LastError().find("root 2 is outside 0..1"), std::string::npos) << LastError();
        EXPECT_EQ(value[0], 1);
        EXPECT_EQ(value[1], 2);
        return p.Each([&](int rank, ncclComm_t comm) {
            return ncclAllReduce(&value[rank], &value[rank], 1, ncclInt, ncclSum, comm, nullptr);
        });
    });
}

TEST(Groups, CannotUseAndDestroyInOneGroup)
{
    OneThread(1, [](Party &p) {
        int value = 1;
        EXPECT_EQ(ncclGroupStart(), ncclSuccess);
        EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, p.comms[0], nullptr), ncclSuccess);
        EXPECT_EQ(ncclCommDestroy(p.comms[0]), ncclSuccess);
        EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
        return std::string();
    });
}

TEST(Groups, FinalizeAndDestroyInOneGroup)
{
    ExpectSuccess(RunRanks(Mode::kOneThread, 3, [](Party &p) {
        std::string outcome = p.Init();
        EXPECT_EQ(ncclGroupStart(), ncclSuccess);
        for (ncclComm_t comm : p.comms) {
            EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
            EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
        }
        ncclResult_t result = ncclGroupEnd();
        return result == ncclSuccess ? outcome : Failure("group", result);
    }));
}

// C09, where calls return before they are complete
TEST(Groups, OneThreadWithoutGroupFinishes)
{
    if (!HasCudaRuntime())
        GTEST_SKIP() << "without a CUDA runtime a call is complete when it returns, so it cannot wait for "
                        "the same thread's next call";
    ExpectSuccess(RunRanks(Mode::kOneThread, 4, [](Party &p) {
        std::string outcome = p.Init();
        std::vector<float> value = {1, 2, 3, 4};
        for (int r = 0; r < 4 && outcome.empty(); r++)
            EXPECT_EQ(ncclAllReduce(&value[r], &value[r], 1, ncclFloat, ncclSum, p.comms[r], nullptr),
                      ncclSuccess)
                << LastError();
        for (int r = 0; r < 4 && outcome.empty(); r++)
            EXPECT_EQ(Outcome(r, p.comms[r], ncclSuccess), ncclSuccess) << LastError();
        EXPECT_EQ(value, std::vector<float>(4, 10));
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

// C09, where calls are complete when they return
TEST(Groups, OneThreadWithoutGroupIsToldToGroup)
{
    if (HasCudaRuntime())
        GTEST_SKIP() << "with a CUDA runtime such calls finish";
    ExpectSuccess(RunRanks(Mode::kOneThread, 4, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        float value = 1;
        EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, p.comms[0], nullptr),
                  ncclInvalidUsage);
        EXPECT_NE(LastError().find("ncclGroupStart"), std::string::npos) << LastError();
        for (ncclComm_t comm : p.comms) {
            ncclResult_t error = ncclSuccess;
            EXPECT_EQ(ncclCommGetAsyncError(comm, &error), ncclSuccess);
            EXPECT_EQ(error, ncclInvalidUsage);
            EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
        }
        return outcome;
    }));
}

// C11
TEST(Groups, RankThatPostsNothingIsNotNeeded)
{
    ExpectSuccess(RunRanks(Mode::kThreads, 3, [](Party &p) {
        std::string outcome = p.Init();
        int value = p.first, other = -1;
        if (outcome.empty() && p.first < 2) {
            outcome = p.Each([&](int rank, ncclComm_t comm) {
                ncclResult_t result = ncclSend(&value, 1, ncclInt, 1 - rank, comm, nullptr);
                return result == ncclSuccess ? ncclRecv(&other, 1, ncclInt, 1 - rank, comm, nullptr) : result;
            });
            if (outcome.empty() && other != 1 - p.first)
                outcome = "received " + std::to_string(other);
        }
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

// C03: both ranks first send more than the slots hold.
TEST(Groups, WaitCycleIsNamed)
{
    std::vector<std::string> outcomes = RunRanks(Mode::kThreads, 2, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        std::vector<char> buffer(64 << 20);
        ncclResult_t result =
            ncclSend(buffer.data(), buffer.size(), ncclChar, 1 - p.first, p.comms[0], nullptr);
        result = Outcome(p.first, p.comms[0], result);
        std::string text = ncclGetLastError(nullptr);
        ncclCommAbort(p.comms[0]);
        if (result != ncclInvalidUsage)
            return Failure("send", result);
        return text.find("wait cycle 0 -> 1 -> 0") == std::string::npos ? text : "";
    });
    ExpectSuccess(outcomes);
}

TEST(Groups, SecondThreadInACommunicatorIsRefused)
{
    if (HasCudaRuntime())
        GTEST_SKIP() << "with a CUDA runtime calls return at once, so that two of them hardly meet";
    ExpectSuccess(RunRanks(Mode::kThreads, 2, [](Party &p) {
        std::string outcome = p.Init();
        int value = 1;
        auto reduce = [&] { return ncclAllReduce(&value, &value, 1, ncclInt, ncclSum, p.comms[0], nullptr); };
        p.Barrier();
        if (!outcome.empty())
            return outcome;
        if (p.first == 0) {
            ncclResult_t first = ncclInternalError;
            std::thread waiting([&] { first = reduce(); }); // until rank 1 comes
            usleep(100000);
            int other = 1;
            EXPECT_EQ(ncclAllReduce(&other, &other, 1, ncclInt, ncclSum, p.comms[0], nullptr),
                      ncclInvalidUsage);
            EXPECT_NE(LastError().find("two threads"), std::string::npos) << LastError();
            p.Barrier();
            waiting.join();
            EXPECT_EQ(first, ncclSuccess) << "the first call is not disturbed";
        } else {
            p.Barrier();
            EXPECT_EQ(reduce(), ncclSuccess) << LastError();
        }
        EXPECT_EQ(value, 2);
        return p.Destroy();
    }));
}

} // namespace
