// The ends of communicators that do not go as they should: what the call that ends one says, and what the
// peers of a rank that goes without a word are told.
#include "ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace
{

const int kEnvironment = setenv("RONDO_STALL_SECONDS", "1", 1);

bool Contains(const std::string &text, const std::string &needle)
{
    return text.find(needle) != std::string::npos;
}

// Rank 0 calls and ends its communicator while rank 1 has not called; what ends the wait differs.
void ExpectTheWaitsError(const std::function<ncclResult_t(ncclComm_t comm)> &end,
                         const std::function<void(Party &p)> &peer, ncclResult_t expected)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [&](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        if (p.first == 1) {
            usleep(200000);
            peer(p); // meets rank 0's barrier
            return outcome;
        }
        float value = 1;
        ncclResult_t called = ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, p.comms[0], nullptr);
        ncclResult_t ended = end(p.comms[0]);
        std::string text = ncclGetLastError(nullptr);
        int count = 0;
        ncclResult_t asked = ncclCommCount(p.comms[0], &count), again = ncclCommDestroy(p.comms[0]);
        ncclResult_t aborted = ncclCommAbort(p.comms[0]), dead = ncclCommAbort(p.comms[0]);
        p.Barrier();
        if (ended != expected || !Contains(text, "AllReduce") || !Contains(text, "rank 1"))
            return "the call says " + std::to_string(called) + ", the end " + std::to_string(ended) + ": " +
                   text;
        if (asked != expected || again != expected || aborted != ncclSuccess || dead != ncclInvalidArgument)
            return "then " + std::to_string(asked) + ", " + std::to_string(again) + ", abort " +
                   std::to_string(aborted) + ", " + std::to_string(dead);
        return outcome;
    }));
}

const std::vector<std::function<ncclResult_t(ncclComm_t)>> kEnds = {ncclCommFinalize, ncclCommDestroy,
                                                                    [](ncclComm_t comm) {
                                                                        ncclGroupStart();
                                                                        ncclCommDestroy(comm);
                                                                        return ncclGroupEnd();
                                                                    }};

TEST(Endings, AnOperationThatTimesOutFailsTheCallThatEnds)
{
    setenv("RONDO_TIMEOUT", "2", 1);
    for (const auto &end : kEnds)
        ExpectTheWaitsError(
            end,
            [](Party &p) {
                p.Barrier();
                ncclCommAbort(p.comms[0]);
            },
            ncclTimeout);
    unsetenv("RONDO_TIMEOUT");
}

TEST(Endings, AnOperationWhosePeerLeavesFailsTheCallThatEnds)
{
    for (const auto &end : kEnds)
        ExpectTheWaitsError(
            end,
            [](Party &p) {
                ncclCommDestroy(p.comms[0]);
                p.Barrier();
            },
            ncclRemoteError);
}

// An abort on another thread: both calls return, and the communicator is freed once.
TEST(Endings, AnAbortEndsADestroyThatWaits)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        if (p.first == 1) {
            sleep(1);
            ncclCommAbort(p.comms[0]);
            return outcome;
        }
        float value = 1;
        ncclResult_t aborted = ncclInternalError;
        std::thread other([&] {
            usleep(300000);
            aborted = ncclCommAbort(p.comms[0]);
        });
        (void)ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, p.comms[0], nullptr);
        ncclResult_t ended = ncclCommDestroy(p.comms[0]);
        other.join();
        ncclResult_t dead = ncclCommAbort(p.comms[0]);
        // Without a runtime it is the AllReduce that waits, and the destroy may come when nothing is left.
        if (ended != ncclInvalidUsage && (HasCudaRuntime() || ended != ncclInvalidArgument))
            return Failure("destroy", ended);
        return aborted == ncclSuccess && dead == ncclInvalidArgument ? "" : Failure("abort", aborted);
    }));
}

// A rank whose process goes on as another program, until it has been told of. `before` is what it does first:
// a child that it has forked may live on, and an operation that it has called may have ended before.
void ExpectExecIsTold(const std::function<void(Party &p)> &before, bool others_call,
                      bool may_have_ended = false)
{
    auto other_program = static_cast<std::atomic<pid_t> *>(
        mmap(nullptr, sizeof(std::atomic<pid_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::vector<std::string> outcomes = RunRanks(Mode::kProcesses, 3, [&](Party &p) {
        std::string outcome = p.Init();
        std::vector<float> data(1 << 20, 1.0f);
        if (!outcome.empty())
            return outcome;
        p.Barrier();
        if (p.first == 1) {
            before(p);
            *other_program = getpid();
            execl("/bin/sleep", "sleep", "60", static_cast<char *>(nullptr));
            return std::string("no exec");
        }
        ncclResult_t error = ncclSuccess, called = ncclSuccess;
        if (others_call)
            called = Outcome(p.first, p.comms[0],
                             ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum,
                                           p.comms[0], nullptr));
        for (int i = 0; i < 2000 && error == ncclSuccess; i++) {
            usleep(10000);
            ncclCommGetAsyncError(p.comms[0], &error);
        }
        std::string text = ncclGetLastError(nullptr);
        usleep(500000); // for the other one to be told
        if (*other_program > 0)
            kill(*other_program, SIGTERM);
        if (ncclCommAbort(p.comms[0]) != ncclSuccess)
            return std::string("abort");
        bool is_odd = others_call && called != error && !(may_have_ended && called == ncclSuccess);
        if (error != ncclRemoteError || is_odd || !Contains(text, "rank 1 (") || !Contains(text, "exec"))
            return "call " + std::to_string(called) + ", error " + std::to_string(error) + ": " + text;
        return outcome;
    });
    munmap(other_program, sizeof(*other_program));
    EXPECT_EQ(outcomes[1], "killed by signal 15");
    outcomes[1].clear();
    ExpectSuccess(outcomes);
}

TEST(Endings, ExecIsToldToThoseWhoWaitAndToIdleOnes)
{
    for (bool others_call : {true, false})
        ExpectExecIsTold([](Party &) {}, others_call);
}

TEST(Endings, ExecInTheMiddleOfAnOperation)
{
    ExpectExecIsTold(
        [](Party &p) {
            static std::vector<float> data(1 << 20, 1.0f);
            if (HasCudaRuntime()) // else the call would wait until it is complete
                ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, p.comms[0], nullptr);
        },
        true, true);
}

TEST(Endings, ExecIsSeenAlthoughAChildLivesOn)
{
    ExpectExecIsTold(
        [](Party &) {
            if (fork() == 0) {
                sleep(3);
                _exit(0);
            }
        },
        true);
}

// Neither a child that a rank forks, nor one that executes another program, nor an orderly end before exec()
// is news.
TEST(Endings, ChildrenAndExecAfterAnEndAreNoNews)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        std::vector<float> data(1000, 1.0f);
        auto reduce = [&] {
            return p.Each([&](int, ncclComm_t comm) {
                return ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm,
                                     nullptr);
            });
        };
        if (!outcome.empty())
            return outcome;
        if (p.first == 1) {
            if (fork() == 0)
                _exit(0);
            if (fork() == 0)
                execl("/bin/true", "true", static_cast<char *>(nullptr));
            if (system("true") != 0)
                return std::string("system");
        }
        sleep(2);
        outcome = reduce();
        p.Barrier();
        if (outcome.empty() && p.first == 1) {
            outcome = p.Destroy();
            p.Conclude(outcome);
            execl("/bin/sleep", "sleep", "3", static_cast<char *>(nullptr));
        }
        sleep(3);
        ncclResult_t error = ncclSuccess;
        ncclCommGetAsyncError(p.comms[0], &error);
        return error != ncclSuccess ? Failure("afterwards", error) : outcome.empty() ? p.Destroy() : outcome;
    }));
}

// A process that makes communicators again after its last one has gone is not taken for one that is gone.
TEST(Endings, CommunicatorsOfOneProcessComeAndGo)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        ncclUniqueId id = {};
        ncclComm_t second = nullptr;
        if (!outcome.empty())
            return outcome;
        if (p.first == 1)
            outcome = p.Destroy(); // its last one, while the peer keeps the way to it
        p.Barrier();
        if (p.first == 0 && ncclGetUniqueId(&id) != ncclSuccess)
            return std::string("no id");
        p.Share(&id, sizeof(id));
        if (outcome.empty() && ncclCommInitRank(&second, 2, id, p.first) != ncclSuccess)
            return Failure("second", ncclSystemError);
        sleep(2);
        float value = 1;
        ncclResult_t rc =
            Outcome(p.first, second, ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, second, nullptr));
        if (rc != ncclSuccess)
            return Failure("reduce", rc);
        if (ncclCommDestroy(second) != ncclSuccess)
            return Failure("destroy", ncclSystemError);
        return p.first == 0 ? p.Destroy() : outcome;
    }));
}

} // namespace
