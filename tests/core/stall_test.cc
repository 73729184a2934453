// What is said of an operation that stands still: who holds it up, however many ranks are in between.
#include "ranks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{

const int kEnvironment = setenv("RONDO_STALL_SECONDS", "2", 1);

bool Contains(const std::string &text, const std::string &needle)
{
    return text.find(needle) != std::string::npos;
}

std::string LastError()
{
    return ncclGetLastError(nullptr);
}

// The warnings of this process from here on.
class LogFile
{
  public:
    LogFile()
    {
        int fd = mkstemp(path_);
        if (fd >= 0)
            close(fd);
        setenv("NCCL_DEBUG", "WARN", 1);
        setenv("NCCL_DEBUG_FILE", path_, 1);
        ncclResetDebugInit();
    }
    ~LogFile()
    {
        unlink(path_);
    }
    // The first line that contains needle, "" if there is none.
    std::string Line(const std::string &needle) const
    {
        std::ifstream file(path_);
        std::string line;
        while (std::getline(file, line)) {
            if (Contains(line, needle))
                return line;
        }
        return "";
    }

  private:
    char path_[32] = "/tmp/rondo-log-XXXXXX";
};

std::string AllReduce(Party &p, std::vector<float> &data)
{
    return p.Each([&](int, ncclComm_t comm) {
        return ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr);
    });
}

// Stop for a while; somebody else must wake this process.
void StopFor(unsigned seconds)
{
    pid_t waker = fork();
    if (waker == 0) {
        sleep(seconds);
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    kill(getpid(), SIGSTOP);
    waitpid(waker, nullptr, 0);
}

TEST(Stall, StoppedRankIsReportedAndForgiven) // D09
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [](Party &p) {
        LogFile log;
        std::string outcome = p.Init();
        std::vector<float> data(1 << 20, 1.0f);
        if (outcome.empty())
            outcome = AllReduce(p, data);
        if (!outcome.empty())
            return outcome;
        if (p.first == 1)
            StopFor(4);
        std::string during, before = LastError();
        std::thread listener([&] {
            usleep(3500000);
            during = log.Line("has not moved");
        });
        outcome = AllReduce(p, data);
        listener.join();
        if (LastError() != before)
            return "an error although nothing failed: " + LastError();
        if (p.first != 1 && (!Contains(during, "rank 1 (") || !Contains(during, "does not run") ||
                             Contains(during, "rank 2 (") || Contains(during, "rank 0 (")))
            return "logged during the stall: " + during;
        if (p.first == 1 && !log.Line("has not moved").empty())
            return "the stopped one blames another: " + log.Line("has not moved");
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

// Rank 3 is stopped, or does something else; 2 receives from it, 1 from 2, 0 from 1. Each report names its
// end.
void ExpectTheEndOfTheChain(bool is_stopped, const std::string &what)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 4, [&](Party &p) {
        LogFile log;
        std::string outcome = p.Init();
        float value = 1;
        if (!outcome.empty())
            return outcome;
        if (p.first == 3 && is_stopped)
            StopFor(4);
        else if (p.first == 3)
            sleep(4);
        ncclResult_t rc = ncclSuccess;
        if (p.first < 3)
            rc = Outcome(p.first, p.comms[0],
                         ncclRecv(&value, 1, ncclFloat, p.first + 1, p.comms[0], nullptr));
        if (rc == ncclSuccess && p.first > 0)
            rc = Outcome(p.first, p.comms[0],
                         ncclSend(&value, 1, ncclFloat, p.first - 1, p.comms[0], nullptr));
        if (rc != ncclSuccess)
            return Failure("call", rc);
        std::string line = log.Line("has not moved"), blame = line.substr(line.find(" s: ") + 1);
        if (p.first < 3 &&
            (!Contains(blame, "rank 3 (") || Contains(blame, "rank 2 (") || Contains(blame, "rank 1 (") ||
             Contains(blame, "rank 0 (") || !Contains(blame, what)))
            return "rank " + std::to_string(p.first) + " says: " + line;
        return p.Destroy();
    }));
}

TEST(Stall, AStoppedRankAtTheEndOfAChainIsNamed)
{
    ExpectTheEndOfTheChain(true, "does not run");
}

TEST(Stall, ALateRankAtTheEndOfAChainIsNamed)
{
    ExpectTheEndOfTheChain(false, "");
}

// Stopped before its first beat, in the middle of an operation that goes round a ring.
TEST(Stall, ARankStoppedAtOnceIsNamedAlone)
{
    if (!HasCudaRuntime())
        GTEST_SKIP() << "a rank cannot be stopped in a call of its own without a runtime";
    ExpectSuccess(RunRanks(Mode::kProcesses, 4, [](Party &p) {
        LogFile log;
        std::string outcome = p.Init();
        std::vector<float> data(4 << 20, 1.0f);
        if (!outcome.empty())
            return outcome;
        ncclResult_t rc =
            ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, p.comms[0], nullptr);
        if (p.first == 2)
            StopFor(4);
        rc = Outcome(p.first, p.comms[0], rc);
        if (rc != ncclSuccess)
            return Failure("call", rc);
        std::string line = log.Line("has not moved"), blame = line.substr(line.find(" s: ") + 1);
        // One that has what it needs already may have ended.
        if (!line.empty() &&
            (p.first == 2 || !Contains(blame, "rank 2 (") || !Contains(blame, "does not run")))
            return "rank " + std::to_string(p.first) + " says: " + line;
        return p.Destroy();
    }));
}

// A rank that has called something else has called something, only not that.
TEST(Stall, AMissingMessageIsNamedByItsCall)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        LogFile log;
        std::string outcome = p.Init();
        float value = 1;
        if (!outcome.empty())
            return outcome;
        // Both receive first: a cycle, which ends both.
        ncclResult_t rc =
            Outcome(p.first, p.comms[0], ncclRecv(&value, 1, ncclFloat, 1 - p.first, p.comms[0], nullptr));
        std::string line = log.Line("has not moved"), error = LastError();
        p.Barrier();
        ncclCommAbort(p.comms[0]);
        if (rc != ncclInvalidUsage || !Contains(error, "wait cycle"))
            return Failure("recv", rc);
        // The other one may have told both before this one's own look.
        return line.empty() || Contains(line, "has not called the matching Send") ? "" : "it says: " + line;
    }));
}

TEST(Stall, ALateMessageIsNamedByItsCall)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        LogFile log;
        std::string outcome = p.Init();
        std::vector<float> data(1 << 20, 1.0f); // more than fits the slots
        if (!outcome.empty())
            return outcome;
        for (int sender : {0, 1}) {
            if (p.first == 1)
                sleep(4);
            ncclResult_t rc = Outcome(
                p.first, p.comms[0],
                p.first == sender
                    ? ncclSend(data.data(), data.size(), ncclFloat, 1 - p.first, p.comms[0], nullptr)
                    : ncclRecv(data.data(), data.size(), ncclFloat, 1 - p.first, p.comms[0], nullptr));
            if (rc != ncclSuccess)
                return Failure("call", rc);
            std::string needle = "rank 1 (pid ", missing = sender == 0 ? "matching Recv" : "matching Send";
            if (p.first == 0 && outcome.empty() && !Contains(log.Line(missing), needle))
                outcome = "nothing of the " + missing + ": " + log.Line("has not moved");
            p.Barrier();
        }
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

// Two communicators on one stream, in another order on each rank: each says what its own waits behind,
// unasked, and the time limit ends one of them at least.
TEST(Stall, OperationsQueuedBehindAnotherCommunicatorsAreTold)
{
    if (!HasCudaRuntime())
        GTEST_SKIP() << "without a runtime there are no streams";
    setenv("RONDO_TIMEOUT", "6", 1);
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        LogFile log;
        unsetenv("NCCL_DEBUG"); // alarms go to stderr then
        ncclResetDebugInit();
        char path[] = "/tmp/rondo-stderr-XXXXXX";
        int fd = mkstemp(path);
        dup2(fd, STDERR_FILENO);
        std::string outcome = p.Init();
        ncclUniqueId id = {};
        ncclComm_t second = nullptr;
        if (p.first == 0)
            ncclGetUniqueId(&id);
        p.Share(&id, sizeof(id));
        if (!outcome.empty() || ncclCommInitRank(&second, 2, id, p.first) != ncclSuccess)
            return "init: " + outcome;
        float value[2] = {1, 1};
        ncclComm_t comms[2] = {p.comms[0], second};
        for (int i = 0; i < 2; i++)
            ncclAllReduce(&value[i], &value[i], 1, ncclFloat, ncclSum, comms[i ^ p.first], nullptr);
        Synchronize(p.first);
        ncclResult_t errors[2] = {};
        for (int i = 0; i < 2; i++)
            ncclCommGetAsyncError(comms[i], &errors[i]);
        p.Barrier();
        ncclCommAbort(second);
        ncclCommAbort(p.comms[0]);
        std::ifstream file(path);
        std::string text{std::istreambuf_iterator<char>(file), {}};
        unlink(path);
        if (errors[0] != ncclTimeout && errors[1] != ncclTimeout) // when one has ended the other may go on
            return "errors " + std::to_string(errors[0]) + ", " + std::to_string(errors[1]);
        return Contains(text, "is queued behind AllReduce 1 of communicator") ? "" : "it says: " + text;
    }));
    unsetenv("RONDO_TIMEOUT");
}

} // namespace
