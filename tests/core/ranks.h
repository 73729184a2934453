// ranks.h - running the ranks of a communicator as threads, as one thread, as processes, or as a mixture.
//
// A test's body is written once, for a Party: the ranks that one thread holds. It returns "" or what went
// wrong, because a body may run in a process whose assertions nobody would see.
#ifndef RONDO_TESTS_CORE_RANKS_H
#define RONDO_TESTS_CORE_RANKS_H

#include "nccl.h"

#include <functional>
#include <string>
#include <vector>

struct Party {
    int ranks = 0;                 // of the whole communicator
    int first = 0;                 // lowest rank held here
    ncclUniqueId id = {};          // of the communicator that Init() makes
    std::vector<ncclComm_t> comms; // of the ranks held here, in order
    int index = 0;                 // of the party

    std::string Init();    // makes comms, in one group
    std::string Destroy(); // frees them, in one group

    // call(rank, comm) for each rank held here, in one group; "" or the first failure.
    std::string Each(const std::function<ncclResult_t(int rank, ncclComm_t comm)> &call);

    // As Each, without a group: for one rank held.
    std::string Alone(const std::function<ncclResult_t(int rank, ncclComm_t comm)> &call);

    // Say the outcome now: for a body that will not return.
    void Conclude(const std::string &outcome) const;

    // Meet all other parties.
    void Barrier() const;

    // Give all parties what party 0 has in data.
    void Share(void *data, size_t bytes) const;

    int held = 0;
    struct Shared *shared = nullptr;
};

using Body = std::function<std::string(Party &party)>;

// "function of rank: result, last error".
std::string Failure(const char *what, ncclResult_t result);

enum class Mode { kThreads, kOneThread, kProcesses, kProcessPairs };
const char *ModeName(Mode mode);

// What each party of a run returned; a process that was killed has returned "killed by signal N".
std::vector<std::string> RunRanks(Mode mode, int ranks, const Body &body);

// Fails the current test for each party that did not return "".
void ExpectSuccess(const std::vector<std::string> &outcomes);

// Whether the program runs on hostcuda, where calls return before they are complete. Rank r is then on device
// r.
bool HasCudaRuntime();
void UseDeviceOf(int rank);

// Wait for what rank has queued, as a program does that does not ask the communicator. false: the runtime
// says that it failed.
bool Synchronize(int rank);

// Wait for what rank has queued. What became of a call: its own result, or the communicator's error
// afterwards.
ncclResult_t Outcome(int rank, ncclComm_t comm, ncclResult_t called);

// Descriptors and threads of this process.
int CountDescriptors();
int CountThreads();

#endif
