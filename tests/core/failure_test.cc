// Ranks that die, stop, leave or never come, and the ways out for the others. Ranks are processes; this
// program itself makes no communicator.
#include "ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{

const int kEnvironment = setenv("RONDO_STALL_SECONDS", "1", 1) + setenv("RONDO_INIT_TIMEOUT", "3", 1);

double Now()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

bool Contains(const std::string &text, const std::string &needle)
{
    return text.find(needle) != std::string::npos;
}

std::string LastError()
{
    return ncclGetLastError(nullptr);
}

// What the process keeps once it has had a communicator (the device's worker) is there before anything is
// counted.
std::string Warm()
{
    ncclUniqueId id;
    ncclComm_t comm;
    float value = 1;
    ncclResult_t result = ncclGetUniqueId(&id);

    if (result == ncclSuccess)
        result = ncclCommInitRank(&comm, 1, id, 0);
    if (result == ncclSuccess)
        result = Outcome(0, comm, ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr));
    if (result == ncclSuccess)
        result = ncclCommDestroy(comm);
    return result == ncclSuccess ? "" : Failure("warm up", result);
}

// Abort, bounded; and nothing of the library is left afterwards.
std::string AbortCleanly(Party &p, int descriptors, int threads)
{
    double start = Now();
    ncclResult_t result = ncclCommAbort(p.comms[0]);
    double seconds = Now() - start;

    if (result != ncclSuccess)
        return Failure("abort", result);
    if (seconds > 2)
        return "abort took " + std::to_string(seconds) + " s";
    if (CountDescriptors() > descriptors)
        return "descriptors: " + std::to_string(CountDescriptors()) +
               ", before: " + std::to_string(descriptors);
    if (CountThreads() > threads)
        return "threads: " + std::to_string(CountThreads()) + ", before: " + std::to_string(threads);
    return "";
}

std::string AllReduce(Party &p, std::vector<float> &data)
{
    return p.Each([&](int, ncclComm_t comm) {
        return ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr);
    });
}

// D06
TEST(Failure, KilledRankIsNamed)
{
    std::vector<std::string> outcomes = RunRanks(Mode::kProcesses, 4, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        std::vector<float> data(8 << 20, 1.0f);
        if (p.first == 2) {
            std::thread([] {
                usleep(30000);
                kill(getpid(), SIGKILL);
            }).detach();
        }
        for (int i = 0; i < 100000 && outcome.empty(); i++)
            outcome = AllReduce(p, data);
        ncclResult_t error = ncclSuccess;
        ncclCommGetAsyncError(p.comms[0], &error);
        if (error != ncclRemoteError || !Contains(outcome, "rank 2") || !Contains(outcome, "died"))
            return "error " + std::to_string(error) + ": " + outcome;
        if (ncclCommDestroy(p.comms[0]) != ncclRemoteError)
            return std::string("destroy of a failed communicator");
        return Failure("", ncclCommAbort(p.comms[0])).substr(0, 0);
    });
    EXPECT_EQ(outcomes[2], "killed by signal 9");
    outcomes[2] = "";
    ExpectSuccess(outcomes);
}

TEST(Failure, IdleRanksLearnOfADeathToo)
{
    std::vector<std::string> outcomes = RunRanks(Mode::kProcesses, 3, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        p.Barrier();
        if (p.first == 1)
            kill(getpid(), SIGKILL);
        ncclResult_t error = ncclSuccess;
        for (int i = 0; i < 500 && error == ncclSuccess; i++) {
            usleep(10000);
            ncclCommGetAsyncError(p.comms[0], &error);
        }
        if (error != ncclRemoteError || !Contains(LastError(), "rank 1"))
            return Failure("async error", error);
        ncclCommAbort(p.comms[0]);
        return std::string();
    });
    outcomes[1] = "";
    ExpectSuccess(outcomes);
}

TEST(Failure, LeavingInOrderIsNoError)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [](Party &p) {
        std::string outcome = p.Init();
        std::vector<float> data(100, 1.0f);
        if (outcome.empty())
            outcome = AllReduce(p, data);
        if (p.first == 1)
            return outcome.empty() ? p.Destroy() : outcome; // and exits
        if (p.first == 2)
            return outcome; // exits without a destroy
        usleep(1500000);
        ncclResult_t error = ncclSuccess;
        ncclCommGetAsyncError(p.comms[0], &error);
        if (error != ncclSuccess)
            return Failure("async error", error);
        return p.Destroy();
    }));
}

TEST(Failure, WaitingForARankThatHasLeft)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        p.Barrier();
        if (p.first == 1)
            return p.Destroy();
        std::vector<float> data(100, 1.0f);
        outcome = AllReduce(p, data);
        if (!Contains(outcome, "rank 1") || !Contains(outcome, "destroyed") || !Contains(outcome, "call: 6"))
            return "no such error: " + outcome;
        ncclCommAbort(p.comms[0]);
        return std::string();
    }));
}

// D10
TEST(Failure, AbortWhileAPeerIsStopped)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = Warm(), call;
        int descriptors = CountDescriptors(), threads = CountThreads();
        if (outcome.empty())
            outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        if (p.first == 1) {
            // Somebody must wake it; a child does, after the other rank is through.
            pid_t waker = fork();
            if (waker == 0) {
                usleep(2500000);
                kill(getppid(), SIGCONT);
                _exit(0);
            }
            kill(getpid(), SIGSTOP);
            waitpid(waker, nullptr, 0);
            ncclCommAbort(p.comms[0]);
            return std::string();
        }
        std::vector<float> data(1 << 20, 1.0f);
        std::thread caller([&] { call = AllReduce(p, data); });
        usleep(200000);
        outcome = AbortCleanly(p, descriptors, threads + 1); // the caller may not have ended yet
        caller.join();
        if (outcome.empty() && call.empty())
            outcome = "the waiting call has succeeded";
        if (outcome.empty() && CountThreads() > threads)
            outcome = "threads are left";
        return outcome;
    }));
}

// D04
TEST(Failure, MissingRankAtInitIsNamed)
{
    std::vector<std::string> outcomes = RunRanks(Mode::kProcesses, 4, [](Party &p) {
        if (p.first == 3)
            return std::string();
        std::string outcome = Warm();
        int descriptors = CountDescriptors(), threads = CountThreads();
        if (outcome.empty())
            outcome = p.Init();
        if (!Contains(outcome, "rank 3") && !Contains(outcome, "ranks 3"))
            return "no such error: " + outcome;
        if (p.comms[0])
            return std::string("a handle is left");
        // The root that made the id says farewell to those who came, for a moment.
        for (int i = 0; i < 300 && (CountDescriptors() > descriptors || CountThreads() > threads); i++)
            usleep(10000);
        if (CountDescriptors() > descriptors || CountThreads() > threads)
            return "something is left: " + std::to_string(CountDescriptors()) + " descriptors, before " +
                   std::to_string(descriptors) + ", " + std::to_string(CountThreads()) + " threads, before " +
                   std::to_string(threads);
        return std::string();
    });
    ExpectSuccess(outcomes);
}

// D22, D04
TEST(Failure, AbortDuringInit)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        if (p.first == 1)
            return std::string(); // never comes
        ncclComm_t comm = nullptr;
        std::atomic<bool> is_done{false};
        double start = Now();
        std::string text;
        std::thread maker([&] {
            EXPECT_NE(ncclCommInitRank(&comm, 2, p.id, 0), ncclSuccess);
            text = LastError();
            is_done = true;
        });
        ncclComm_t seen = nullptr;
        while (!(seen = __atomic_load_n(&comm, __ATOMIC_ACQUIRE)))
            usleep(1000);
        usleep(100000);
        ncclResult_t error = ncclSuccess, asked = ncclCommGetAsyncError(seen, &error);
        ncclResult_t result = ncclCommAbort(seen);
        maker.join();
        if (asked != ncclSuccess || error != ncclInProgress)
            return "async error during init: " + std::to_string(asked) + ", " + std::to_string(error);
        if (result != ncclSuccess || comm)
            return Failure("abort", result);
        if (!Contains(text, "rank 0 of 2 of communicator") || !Contains(text, "ncclCommAbort"))
            return "it says: " + text;
        return Now() - start < 2.5 ? "" : std::string("it took too long");
    }));
}

// D14
TEST(Failure, DestroyTwiceAndUseAfter)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 1, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        ncclComm_t comm = p.comms[0];
        float value = 1;
        int count;
        ncclResult_t error;
        if (ncclCommDestroy(comm) != ncclSuccess || ncclCommDestroy(comm) != ncclInvalidArgument ||
            ncclCommAbort(comm) != ncclInvalidArgument || ncclCommFinalize(comm) != ncclInvalidArgument ||
            ncclCommCount(comm, &count) != ncclInvalidArgument ||
            ncclCommGetAsyncError(comm, &error) != ncclInvalidArgument ||
            ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr) != ncclInvalidArgument)
            return std::string("a dead handle was taken");
        return std::string();
    }));
}

// D23
TEST(Failure, ForkedChildIsRefusedAndTheParentDoesNotNotice)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        std::vector<float> data(1000, 1.0f);
        if (!outcome.empty())
            return outcome;
        pid_t child = fork();
        if (child == 0) {
            ncclUniqueId id;
            int count;
            bool refused = ncclCommCount(p.comms[0], &count) == ncclInvalidUsage &&
                           ncclGetUniqueId(&id) == ncclInvalidUsage &&
                           ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum, p.comms[0],
                                         nullptr) == ncclInvalidUsage &&
                           ncclCommDestroy(p.comms[0]) == ncclInvalidUsage &&
                           ncclCommAbort(p.comms[0]) == ncclInvalidUsage && Contains(LastError(), "fork");
            exit(refused ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0)
            return std::string("the child was not refused");
        outcome = AllReduce(p, data);
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

TEST(Failure, TimeoutEndsAWait)
{
    setenv("RONDO_TIMEOUT", "1", 1);
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        if (p.first == 1) {
            p.Barrier();
            ncclCommAbort(p.comms[0]);
            return outcome;
        }
        std::vector<float> data(10, 1.0f);
        outcome = AllReduce(p, data);
        p.Barrier();
        ncclCommAbort(p.comms[0]);
        return Contains(outcome, "call: 8") && Contains(outcome, "rank 1") &&
                       Contains(outcome, "has not called")
                   ? ""
                   : outcome + "!";
    }));
    unsetenv("RONDO_TIMEOUT");
}

TEST(Failure, ExitWithLiveCommunicators) // D15
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        std::vector<float> data(1000, 1.0f);
        return outcome.empty() ? AllReduce(p, data)
                               : outcome; // RunRanks calls exit() and looks at the status
    }));
}

// A program that only asks for the asynchronous error after its stream: data that are wrong never pass for
// right ones, also while a rank is late and nobody can say yet who differs.
TEST(Failure, MismatchIsKnownWhenTheStreamIsDone)
{
    using Call = std::function<ncclResult_t(int rank, float *data, ncclComm_t comm)>;
    const std::vector<Call> calls = {
        [](int rank, float *data, ncclComm_t comm) { // type
            return ncclAllReduce(data, data, 1024, rank == 1 ? ncclInt : ncclFloat, ncclSum, comm, nullptr);
        },
        [](int rank, float *data, ncclComm_t comm) { // count
            return ncclAllReduce(data, data, rank == 1 ? 1023 : 1024, ncclFloat, ncclSum, comm, nullptr);
        },
        [](int rank, float *data, ncclComm_t comm) { // operation
            return rank == 1 ? ncclBroadcast(data, data, 1024, ncclFloat, 1, comm, nullptr)
                             : ncclAllReduce(data, data, 1024, ncclFloat, ncclSum, comm, nullptr);
        },
    };
    for (const Call &call : calls) {
        for (int late = -1; late < 3; late++) {
            ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
                std::string outcome = p.Init();
                std::vector<float> data(1024, 1.0f);
                ncclResult_t error = ncclSuccess;
                int count;
                if (!outcome.empty())
                    return outcome;
                if (p.first == late)
                    usleep(300000);
                ncclResult_t called = call(p.first, data.data(), p.comms[0]);
                if (called == ncclSuccess && !Synchronize(p.first))
                    return std::string("the stream failed");
                ncclCommGetAsyncError(p.comms[0], &error);
                std::string first = LastError();
                // A broadcast's root needs nobody's data, so it may be done before anybody else begins.
                bool is_innocent =
                    error == ncclSuccess && called == ncclSuccess && p.first == 1 && &call == &calls[2];
                for (int i = 0; i < 500 && error == ncclSuccess && is_innocent; i++) {
                    usleep(10000);
                    ncclCommGetAsyncError(p.comms[0], &error);
                    first = LastError();
                }
                ncclResult_t sticky = ncclCommCount(p.comms[0], &count);
                std::string text = LastError();
                p.Barrier(); // so that nobody's abort is taken for the cause
                ncclCommAbort(p.comms[0]);
                if (error != ncclInvalidUsage || sticky != error)
                    return "error " + std::to_string(error) + ", then " + std::to_string(sticky);
                if (first.empty() || !Contains(text, "rank 1 called"))
                    return "'" + first + "', then '" + text + "'";
                return std::string();
            }));
        }
    }
}

// A launch that a rank has no memory for is that rank's failure, and no disagreement.
TEST(Failure, LackOfMemoryForALaunchIsCalledSo)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer ends a process whose address space is limited";
#endif
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = Warm();
        ncclResult_t error = ncclSuccess;
        if (outcome.empty())
            outcome = p.Init();
        std::vector<float> data(4 << 20, 1.0f);
        if (!outcome.empty())
            return outcome;
        if (p.first == 1) {
            std::vector<char>(100000).clear();       // for small allocations there is room
            rlimit limit = {1 << 20, RLIM_INFINITY}; // less than there is: what needs new pages gets none
            setrlimit(RLIMIT_AS, &limit);
        }
        outcome = AllReduce(p, data);
        std::string text = LastError();
        if (p.first == 1) {
            rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
            setrlimit(RLIMIT_AS, &limit);
        }
        ncclCommGetAsyncError(p.comms[0], &error);
        p.Barrier();
        ncclCommAbort(p.comms[0]);
        if (error != ncclSystemError || !Contains(text, "rank 1 could not run") ||
            !Contains(text, "memory") || Contains(text, "rank -1") || Contains(text, "same operations"))
            return "error " + std::to_string(error) + ": " + text;
        return std::string();
    }));
}

// A stream of another device, alone and within a group: refused before anybody has seen the operation, so
// that the ranks go on.
TEST(Failure, StreamOfAnotherDeviceIsRefusedAndDoesNoHarm)
{
    if (!HasCudaRuntime())
        GTEST_SKIP() << "there are no streams without a CUDA runtime";
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        auto create = reinterpret_cast<int (*)(cudaStream_t *)>(dlsym(RTLD_DEFAULT, "cudaStreamCreate"));
        auto destroy = reinterpret_cast<int (*)(cudaStream_t)>(dlsym(RTLD_DEFAULT, "cudaStreamDestroy"));
        std::string outcome = p.Init();
        std::vector<float> data(1000, 1.0f);
        cudaStream_t stranger, own;
        if (!outcome.empty())
            return outcome;
        UseDeviceOf(3);
        if (create(&stranger) != 0)
            return std::string("no stream");
        UseDeviceOf(p.first);
        if (create(&own) != 0)
            return std::string("no stream");
        for (bool is_grouped : {false, true}) {
            if (is_grouped)
                ncclGroupStart();
            ncclResult_t called = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum,
                                                p.comms[0], stranger);
            std::string text = LastError();
            ncclResult_t ended = is_grouped ? ncclGroupEnd() : called;
            if (called != ncclInvalidArgument || ended != called || !Contains(text, "device 3") ||
                !Contains(text, "device " + std::to_string(p.first)))
                return Failure("a stream of device 3", called) + " / " + text;
        }
        destroy(stranger);
        if (ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, p.comms[0], stranger) !=
            ncclInvalidArgument)
            return std::string("a destroyed stream was taken");
        p.Barrier();
        const cudaStream_t streams[] = {own, nullptr, reinterpret_cast<cudaStream_t>(1),
                                        reinterpret_cast<cudaStream_t>(2)};
        for (cudaStream_t stream : streams) {
            ncclResult_t called =
                ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, p.comms[0], stream);
            if (called != ncclSuccess)
                return Failure("afterwards", called);
        }
        outcome = AllReduce(p, data);
        if (outcome.empty() && data[999] != 32.0f)
            outcome = "sum " + std::to_string(data[999]);
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

// A program that closes what it did not open. Not by close(), in which ThreadSanitizer would rightly see a
// race.
void CloseEverything()
{
    for (int fd = 3; fd < 256; fd++)
        syscall(SYS_close, fd);
}

// Then there is an error that says so, and every call comes back.
TEST(Failure, ClosedDescriptorsEndTheCommunicators)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        ncclResult_t error = ncclSuccess;
        if (!outcome.empty())
            return outcome;
        CloseEverything();
        for (int i = 0; i < 1000 && error == ncclSuccess; i++) {
            ncclCommGetAsyncError(p.comms[0], &error);
            usleep(10000);
        }
        std::string text = LastError();
        if (error != ncclSystemError || !Contains(text, "epoll_wait") || !Contains(text, "close"))
            return "error " + std::to_string(error) + ": " + text;
        if (ncclCommDestroy(p.comms[0]) != ncclSystemError)
            return Failure("destroy", ncclSuccess);
        return ncclCommAbort(p.comms[0]) == ncclSuccess ? "" : Failure("abort", ncclSystemError);
    }));
}

TEST(Failure, DestroyReturnsWhenDescriptorsWereClosed)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        std::string outcome = p.Init();
        if (!outcome.empty())
            return outcome;
        CloseEverything();
        ncclResult_t result = ncclCommDestroy(p.comms[0]);
        return result == ncclSuccess || result == ncclSystemError ? "" : Failure("destroy", result);
    }));
}

} // namespace
