// ranks.cc - running the ranks of a communicator in several ways.
#include "ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <dlfcn.h>
#include <fstream>
#include <new>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace
{

constexpr int kParties = 16;
constexpr size_t kText = 1500;
constexpr int kHangSeconds = 100; // below the limit of a test program: what hangs is to be named

int CountEntries(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    if (!directory)
        return -1;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

std::string FirstLine(const std::string &path)
{
    std::string line;

    std::getline(std::ifstream(path), line);
    return line;
}

// Each thread of a process, and the call of the kernel in which it is.
std::string WaitingThreads(pid_t process)
{
    std::string tasks = "/proc/" + std::to_string(process) + "/task/", text;
    DIR *directory = opendir(tasks.c_str());

    if (!directory)
        return "nothing";
    while (dirent *entry = readdir(directory)) {
        if (entry->d_name[0] == '.')
            continue;
        std::string task = tasks + entry->d_name;
        text += " " + FirstLine(task + "/comm") + ": syscall " + FirstLine(task + "/syscall") + ";";
    }
    closedir(directory);
    return text;
}

} // namespace

#ifdef __SANITIZE_THREAD__
// Thousands of short processes that are forked from one with threads, and end.
extern "C" const char *__tsan_default_options();
extern "C" const char *__tsan_default_options()
{
    return "atexit_sleep_ms=0:die_after_fork=0";
}
#endif

// In memory that forked processes share.
struct Shared {
    std::atomic<int> has_id{0};
    std::atomic<int> arrived{0};
    std::atomic<int> generation{0};
    int parties = 0;
    ncclUniqueId id;
    char outcome[kParties][kText];
    char board[256];
};

namespace
{

void RunParty(Shared *shared, Party party, const Body &body)
{
    party.shared = shared;
    if (party.index == 0) {
        if (ncclGetUniqueId(&shared->id) != ncclSuccess)
            abort();
        shared->has_id = 1;
    }
    while (!shared->has_id)
        usleep(100);
    party.id = shared->id;
    party.Conclude(body(party));
}

// How a child ended, "" for well. One that hangs is killed at the deadline.
std::string Collect(pid_t child, time_t deadline)
{
    int status = 0;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (time(nullptr) >= deadline) {
            std::string where = "still runs; its threads wait in " + WaitingThreads(child);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return where;
        }
        usleep(200);
    }
    if (WIFSIGNALED(status))
        return "killed by signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
}

void RunProcesses(Shared *shared, const std::vector<Party> &parties, const Body &body)
{
    std::vector<pid_t> children;

    for (const Party &party : parties) {
        pid_t child = fork();
        if (child == 0) {
            RunParty(shared, party, body);
            exit(0); // through atexit, as a program ends
        }
        children.push_back(child);
    }
    time_t deadline = time(nullptr) + kHangSeconds;
    for (size_t i = 0; i < children.size(); i++) {
        std::string end = Collect(children[i], deadline);
        if (!end.empty())
            snprintf(shared->outcome[i], kText, "%s", end.c_str());
    }
}

void RunThreads(Shared *shared, const std::vector<Party> &parties, const Body &body)
{
    std::vector<std::thread> threads;

    for (const Party &party : parties)
        threads.emplace_back([&, party] { RunParty(shared, party, body); });
    for (std::thread &thread : threads)
        thread.join();
}

} // namespace

void Party::Barrier() const
{
    int generation = shared->generation;

    if (shared->arrived.fetch_add(1) + 1 == shared->parties) {
        shared->arrived = 0;
        shared->generation++;
    } else {
        while (shared->generation == generation)
            usleep(100);
    }
}

void Party::Conclude(const std::string &outcome) const
{
    snprintf(shared->outcome[index], kText, "%s", outcome.c_str());
}

void Party::Share(void *data, size_t bytes) const
{
    if (index == 0)
        memcpy(shared->board, data, bytes);
    Barrier();
    if (index != 0)
        memcpy(data, shared->board, bytes);
    Barrier();
}

std::string Failure(const char *what, ncclResult_t result)
{
    return std::string(what) + ": " + std::to_string(result) + ": " + ncclGetLastError(nullptr);
}

std::string Party::Init()
{
    ncclResult_t result = ncclGroupStart();

    comms.assign(held, nullptr);
    for (int i = 0; i < held && result == ncclSuccess; i++) {
        UseDeviceOf(first + i);
        result = ncclCommInitRank(&comms[i], ranks, id, first + i);
    }
    ncclResult_t end = ncclGroupEnd();
    if (result == ncclSuccess)
        result = end;
    return result == ncclSuccess ? "" : Failure("init", result);
}

std::string Party::Destroy()
{
    ncclResult_t result = ncclGroupStart();

    for (ncclComm_t comm : comms) {
        ncclResult_t destroyed = ncclCommDestroy(comm);
        if (result == ncclSuccess)
            result = destroyed;
    }
    ncclResult_t end = ncclGroupEnd();
    if (result == ncclSuccess)
        result = end;
    comms.clear();
    return result == ncclSuccess ? "" : Failure("destroy", result);
}

std::string Party::Each(const std::function<ncclResult_t(int rank, ncclComm_t comm)> &call)
{
    ncclResult_t result = ncclGroupStart();

    for (int i = 0; i < held; i++) {
        ncclResult_t called = call(first + i, comms[i]);
        if (result == ncclSuccess)
            result = called;
    }
    ncclResult_t end = ncclGroupEnd();
    if (result == ncclSuccess)
        result = end;
    for (int i = 0; i < held; i++) {
        ncclResult_t outcome = Outcome(first + i, comms[i], result);
        if (result == ncclSuccess)
            result = outcome;
    }
    return result == ncclSuccess ? "" : Failure("call", result);
}

std::string Party::Alone(const std::function<ncclResult_t(int rank, ncclComm_t comm)> &call)
{
    ncclResult_t result = Outcome(first, comms[0], call(first, comms[0]));

    return result == ncclSuccess ? "" : Failure("call", result);
}

bool HasCudaRuntime()
{
    return dlsym(RTLD_DEFAULT, "cudaSetDevice") != nullptr;
}

void UseDeviceOf(int rank)
{
    auto set_device = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "cudaSetDevice"));

    if (set_device && set_device(rank) != 0)
        abort();
}

bool Synchronize(int rank)
{
    auto synchronize = reinterpret_cast<int (*)(void *)>(dlsym(RTLD_DEFAULT, "cudaStreamSynchronize"));

    UseDeviceOf(rank);
    return !synchronize || synchronize(nullptr) == 0;
}

ncclResult_t Outcome(int rank, ncclComm_t comm, ncclResult_t called)
{
    int unused;

    if (called != ncclSuccess || !HasCudaRuntime())
        return called;
    if (!Synchronize(rank))
        return ncclUnhandledCudaError;
    return ncclCommCount(comm, &unused); // also yields the communicator's error, and its text
}

const char *ModeName(Mode mode)
{
    switch (mode) {
    case Mode::kThreads:
        return "Threads";
    case Mode::kOneThread:
        return "OneThread";
    case Mode::kProcesses:
        return "Processes";
    case Mode::kProcessPairs:
        return "ProcessPairs";
    }
    return "";
}

std::vector<std::string> RunRanks(Mode mode, int ranks, const Body &body)
{
    int held = mode == Mode::kOneThread ? ranks : mode == Mode::kProcessPairs ? 2 : 1;
    std::vector<Party> parties;
    std::vector<std::string> outcomes;
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Shared *shared = new (memory) Shared;

    for (int first = 0; first < ranks; first += held) {
        Party party;
        party.ranks = ranks;
        party.first = first;
        party.held = std::min(held, ranks - first);
        party.index = static_cast<int>(parties.size());
        snprintf(shared->outcome[party.index], kText, "ended before the test's end");
        parties.push_back(party);
    }
    shared->parties = static_cast<int>(parties.size());
    if (mode == Mode::kProcesses || mode == Mode::kProcessPairs)
        RunProcesses(shared, parties, body);
    else
        RunThreads(shared, parties, body);
    for (size_t i = 0; i < parties.size(); i++)
        outcomes.push_back(shared->outcome[i]);
    munmap(memory, sizeof(Shared));
    return outcomes;
}

void ExpectSuccess(const std::vector<std::string> &outcomes)
{
    for (size_t i = 0; i < outcomes.size(); i++)
        EXPECT_EQ(outcomes[i], "") << "party " << i;
}

int CountDescriptors()
{
    return CountEntries("/proc/self/fd");
}

int CountThreads()
{
    return CountEntries("/proc/self/task");
}
