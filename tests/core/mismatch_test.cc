// Ranks that do not call the same thing: every rank learns who differs, and in what.
#include "ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace
{

const int kEnvironment = setenv("RONDO_STALL_SECONDS", "2", 1);

constexpr size_t kCount = 4096;

using Call = std::function<ncclResult_t(Party &party, ncclComm_t comm, char *buffer)>;

// Every rank makes its call, then asks for the communicator's error until it has one. All must see
// ncclInvalidUsage and a text with all of the needles.
void ExpectMismatch(int ranks, const Call &call, const std::vector<std::string> &needles)
{
    ExpectSuccess(RunRanks(Mode::kThreads, ranks, [&](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        std::vector<char> buffer(kCount * 8 * ranks + 64);
        ncclResult_t error = Outcome(p.first, p.comms[0], call(p, p.comms[0], buffer.data()));
        for (int i = 0; i < 1000 && error == ncclSuccess; i++) {
            ncclCommGetAsyncError(p.comms[0], &error);
            usleep(10000);
        }
        int count;
        ncclResult_t sticky = ncclCommCount(p.comms[0], &count);
        std::string text = ncclGetLastError(nullptr);
        p.Barrier(); // so that nobody's abort is taken for the cause
        ncclCommAbort(p.comms[0]);
        if (error != ncclInvalidUsage || sticky != ncclInvalidUsage)
            return "rank " + std::to_string(p.first) + " got " + std::to_string(error) + ", then " +
                   std::to_string(sticky) + ": " + text;
        for (const std::string &needle : needles) {
            if (text.find(needle) == std::string::npos)
                return "no '" + needle + "' in: " + text;
        }
        return std::string();
    }));
}

TEST(Mismatch, CountByOneNamesTheOddRank) // A04
{
    ExpectMismatch(4,
                   [](Party &p, ncclComm_t comm, char *buffer) {
                       return ncclAllReduce(buffer, buffer, p.first == 1 ? 1025 : 1024, ncclFloat, ncclSum,
                                            comm, nullptr);
                   },
                   {"rank 1 called AllReduce(count 1025, ncclFloat32, ncclSum)",
                    "ranks 0, 2, 3 called AllReduce(count 1024", "operation 1"});
}

TEST(Mismatch, CountZeroOnOneRank) // A02
{
    ExpectMismatch(3,
                   [](Party &p, ncclComm_t comm, char *buffer) {
                       return ncclAllReduce(buffer, buffer, p.first == 1 ? 0 : 1, ncclHalf, ncclSum, comm,
                                            nullptr);
                   },
                   {"rank 1 called AllReduce(count 0", "ranks 0, 2 called AllReduce(count 1"});
}

TEST(Mismatch, Type)
{
    ExpectMismatch(
        3,
        [](Party &p, ncclComm_t comm, char *buffer) {
            return ncclAllReduce(buffer, buffer, 64, p.first == 2 ? ncclInt32 : ncclFloat32, ncclSum, comm,
                                 nullptr);
        },
        {"rank 2 called AllReduce(count 64, ncclInt32", "ranks 0, 1 called AllReduce(count 64, ncclFloat32"});
}

TEST(Mismatch, Reduction)
{
    ExpectMismatch(3,
                   [](Party &p, ncclComm_t comm, char *buffer) {
                       return ncclAllReduce(buffer, buffer, 64, ncclFloat32, p.first == 0 ? ncclMax : ncclSum,
                                            comm, nullptr);
                   },
                   {"rank 0 called AllReduce(count 64, ncclFloat32, ncclMax)", "ranks 1, 2 called"});
}

TEST(Mismatch, Root)
{
    ExpectMismatch(
        3,
        [](Party &p, ncclComm_t comm, char *buffer) {
            return ncclReduce(buffer, buffer, 64, ncclFloat32, ncclSum, p.first == 1 ? 1 : 0, comm, nullptr);
        },
        {"rank 1 called Reduce(count 64, ncclFloat32, ncclSum, root 1)", "ranks 0, 2 called", "root 0"});
}

TEST(Mismatch, Order) // A05
{
    ExpectMismatch(2,
                   [](Party &p, ncclComm_t comm, char *buffer) {
                       auto reduce = [&] {
                           return ncclAllReduce(buffer, buffer, 128, ncclFloat32, ncclSum, comm, nullptr);
                       };
                       auto gather = [&] {
                           return ncclAllGather(buffer, buffer + 4096, 128, ncclFloat32, comm, nullptr);
                       };
                       ncclResult_t result = p.first == 0 ? reduce() : gather();
                       if (result == ncclSuccess)
                           result = p.first == 0 ? gather() : reduce();
                       return result;
                   },
                   {"operation 1", "AllReduce(", "AllGather("});
}

TEST(Mismatch, LaterOperationKeepsItsNumber)
{
    ExpectMismatch(2,
                   [](Party &p, ncclComm_t comm, char *buffer) {
                       ncclResult_t result = ncclSuccess;
                       for (int i = 1; i <= 100 && result == ncclSuccess; i++)
                           result = ncclAllReduce(buffer, buffer, i == 100 && p.first == 1 ? 7 : 8,
                                                  ncclFloat32, ncclSum, comm, nullptr);
                       return result;
                   },
                   {"operation 100", "count 7", "count 8"});
}

TEST(Mismatch, ReceiverOfNothing) // A09
{
    ExpectMismatch(2,
                   [](Party &p, ncclComm_t comm, char *buffer) {
                       return p.first == 0 ? ncclSend(buffer, 8192, ncclChar, 1, comm, nullptr)
                                           : ncclRecv(buffer, 0, ncclChar, 0, comm, nullptr);
                   },
                   {"8192 bytes", " 0 bytes", "rank 0 sends", "rank 1 receives"});
}

TEST(Mismatch, SenderOfNothing) // A09, the reverse
{
    ExpectMismatch(2,
                   [](Party &p, ncclComm_t comm, char *buffer) {
                       return p.first == 0 ? ncclSend(buffer, 0, ncclChar, 1, comm, nullptr)
                                           : ncclRecv(buffer, 8192, ncclChar, 0, comm, nullptr);
                   },
                   {"8192 bytes", " 0 bytes", "rank 0 sends", "rank 1 receives"});
}

// A collective with one of its arguments chosen by the test.
struct Collective {
    const char *name;
    bool is_rooted;
    std::function<ncclResult_t(char *buffer, size_t count, int root, ncclComm_t comm)> call;
};

std::vector<Collective> Collectives()
{
    constexpr size_t kHalf = kCount * 4; // bytes; send and receive buffers are apart
    return {
        {"AllReduce", false,
         [](char *b, size_t n, int, ncclComm_t c) {
             return ncclAllReduce(b, b + kHalf, n, ncclInt32, ncclSum, c, nullptr);
         }},
        {"AllGather", false,
         [](char *b, size_t n, int, ncclComm_t c) {
             return ncclAllGather(b, b + kHalf, n, ncclInt32, c, nullptr);
         }},
        {"ReduceScatter", false,
         [](char *b, size_t n, int, ncclComm_t c) {
             return ncclReduceScatter(b, b + kHalf, n, ncclInt32, ncclSum, c, nullptr);
         }},
        {"AlltoAll", false,
         [](char *b, size_t n, int, ncclComm_t c) {
             return ncclAlltoAll(b, b + kHalf, n, ncclInt32, c, nullptr);
         }},
        {"Broadcast", true,
         [](char *b, size_t n, int root, ncclComm_t c) {
             return ncclBroadcast(b, b + kHalf, n, ncclInt32, root, c, nullptr);
         }},
        {"Reduce", true,
         [](char *b, size_t n, int root, ncclComm_t c) {
             return ncclReduce(b, b + kHalf, n, ncclInt32, ncclSum, root, c, nullptr);
         }},
        {"Gather", true,
         [](char *b, size_t n, int root, ncclComm_t c) {
             return ncclGather(b, b + kHalf, n, ncclInt32, root, c, nullptr);
         }},
        {"Scatter", true,
         [](char *b, size_t n, int root, ncclComm_t c) {
             return ncclScatter(b, b + kHalf, n, ncclInt32, root, c, nullptr);
         }},
    };
}

// Whoever the odd one is, and whether or not anybody waits for it.
TEST(Mismatch, EveryCollectiveWithAnotherRootOnOneRank)
{
    for (const Collective &collective : Collectives()) {
        for (int odd = 0; collective.is_rooted && odd < 3; odd += 2) {
            SCOPED_TRACE(collective.name + std::to_string(odd));
            std::string who =
                "rank " + std::to_string(odd) + " called " + collective.name + "(count 8, ncclInt32";
            ExpectMismatch(3,
                           [&](Party &p, ncclComm_t comm, char *buffer) {
                               return collective.call(buffer, 8, p.first == odd ? 1 : 2, comm);
                           },
                           {who, "root 1", "root 2", "operation 1"});
        }
    }
}

TEST(Mismatch, EveryCollectiveWithACountOfZeroOnOneRank)
{
    for (const Collective &collective : Collectives()) {
        for (int odd = 0; odd < 3; odd += 2) {
            SCOPED_TRACE(collective.name + std::to_string(odd));
            std::string who =
                "rank " + std::to_string(odd) + " called " + collective.name + "(count 0, ncclInt32";
            ExpectMismatch(3,
                           [&](Party &p, ncclComm_t comm, char *buffer) {
                               return collective.call(buffer, p.first == odd ? 0 : 8, 0, comm);
                           },
                           {who, "(count 8, ncclInt32", "operation 1"});
        }
    }
}

// Two roots that only send, and then operations that agree.
void ExpectFoundAfter(size_t count, int later, const char *text)
{
    SCOPED_TRACE(testing::Message() << "count " << count << ", " << later << " later");
    ExpectMismatch(2,
                   [&](Party &p, ncclComm_t comm, char *buffer) {
                       ncclResult_t result =
                           ncclScatter(buffer, buffer + 32768, count, ncclInt32, p.first, comm, nullptr);
                       for (int i = 0; i < later && result == ncclSuccess; i++)
                           result = ncclAllReduce(buffer, buffer, count, ncclInt32, ncclSum, comm, nullptr);
                       return result;
                   },
                   {text, "rank 0", "rank 1"});
}

// So large that the later ones look elsewhere for their data, and more than there is room for records: a look
// that comes in between can still say what was called.
TEST(Mismatch, IsFoundLongAfter)
{
    for (int later : {1, 62, 63, 64, 500})
        ExpectFoundAfter(2048, later, later < 64 ? "operation 1: " : "the ranks of communicator");
}

// So small that the next one finds the data of the first.
TEST(Mismatch, IsFoundByTheNext)
{
    for (int later : {1, 62})
        ExpectFoundAfter(8, later, "operation 1: ");
}

// All have made their calls: whoever closes first sees it, without waiting for the watch thread.
TEST(Mismatch, IsFoundWhenClosing)
{
    for (bool finalizes : {false, true}) {
        ExpectSuccess(RunRanks(Mode::kThreads, 2, [=](Party &p) {
            std::string outcome = p.Init();
            char buffer[64] = {};
            if (!outcome.empty())
                return outcome;
            ncclResult_t called =
                Outcome(p.first, p.comms[0],
                        ncclScatter(buffer, buffer + 32, 4, ncclInt32, p.first, p.comms[0], nullptr));
            p.Barrier();
            ncclResult_t closed = finalizes ? ncclCommFinalize(p.comms[0]) : ncclCommDestroy(p.comms[0]);
            std::string text = ncclGetLastError(nullptr);
            p.Barrier();
            ncclCommAbort(p.comms[0]);
            if (called == ncclSuccess && closed != ncclInvalidUsage)
                outcome = "closed with " + std::to_string(closed);
            else if (text.find("Scatter(count 4, ncclInt32, root 1)") == std::string::npos)
                outcome = text;
            return outcome;
        }));
    }
}

// Nothing is done in them, so nothing can go wrong.
TEST(Mismatch, CollectivesOfNothingAgree)
{
    ExpectSuccess(RunRanks(Mode::kThreads, 2, [](Party &p) {
        std::string outcome = p.Init();
        char buffer[64] = {};
        if (outcome.empty())
            outcome = p.Each([&](int rank, ncclComm_t comm) {
                return rank == 0 ? ncclBroadcast(buffer, buffer, 0, ncclChar, 0, comm, nullptr)
                                 : ncclReduce(buffer, buffer, 0, ncclFloat, ncclSum, 1, comm, nullptr);
            });
        p.Barrier();
        usleep(1500000); // a look of the watch thread
        if (outcome.empty())
            outcome = p.Each([&](int, ncclComm_t comm) {
                return ncclAllReduce(buffer, buffer, 4, ncclFloat, ncclSum, comm, nullptr);
            });
        p.Barrier();
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

TEST(Mismatch, EqualBytesOfDifferentTypesMayBeMoved)
{
    ExpectSuccess(RunRanks(Mode::kThreads, 2, [](Party &p) {
        std::string outcome = p.Init();
        std::vector<char> buffer(64, static_cast<char>('a' + p.first));
        if (outcome.empty())
            outcome = p.Each([&](int rank, ncclComm_t comm) {
                return rank == 0
                           ? ncclBroadcast(buffer.data(), buffer.data(), 64, ncclChar, 0, comm, nullptr)
                           : ncclBroadcast(buffer.data(), buffer.data(), 8, ncclDouble, 0, comm, nullptr);
            });
        if (outcome.empty() && buffer != std::vector<char>(64, 'a'))
            outcome = "wrong data";
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

} // namespace
