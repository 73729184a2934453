// A rank that cannot start, before it has met the others: they learn of it, long before their own time is up.
// Ranks are processes; this program itself makes no communicator.
#include "descriptor_limit.h"
#include "ranks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

constexpr double kHangSeconds = 60; // of the 300 that an init waits

double Now()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Why a rank cannot start, and a part of what it says then.
struct Trouble {
    const char *name;
    std::function<void(ncclConfig_t *config)> make; // in the rank's own process
    ncclResult_t code;
    const char *reason;
};

const Trouble kTroubles[] = {
    {"nonblocking", [](ncclConfig_t *config) { config->blocking = 0; }, ncclInvalidUsage,
     "not in this version"},
    {"environment", [](ncclConfig_t *) { setenv("NCCL_COMM_BLOCKING", "0", 1); }, ncclInvalidUsage,
     "not in this version"},
    {"protocol", [](ncclConfig_t *) { setenv("NCCL_PROTO", "LL64", 1); }, ncclInvalidUsage,
     "NCCL_PROTO=LL64: 'LL64' is no name"},
    {"row", [](ncclConfig_t *) { setenv("RONDO_DEVICE", "tpu", 1); }, ncclInvalidUsage, "no such device"},
    {"device", [](ncclConfig_t *) { setenv("CUDA_VISIBLE_DEVICES", "", 1); }, ncclInvalidArgument,
     "CUDA_VISIBLE_DEVICES"},
    {"interface", [](ncclConfig_t *) { setenv("NCCL_SOCKET_IFNAME", "nosuch", 1); }, ncclInvalidUsage,
     "no network interface fits NCCL_SOCKET_IFNAME=\"nosuch\""},
};

// One init per party; the result, its text and how long it took, as the party's outcome: "" when as expected.
std::string Init(Party &p, ncclConfig_t *config, ncclResult_t expected,
                 const std::vector<std::string> &needles)
{
    double start = Now();
    ncclComm_t comm = nullptr;
    ncclResult_t result = ncclCommInitRankConfig(&comm, p.ranks, p.id, p.first, config);
    std::string text = ncclGetLastError(nullptr);

    if (result != expected || comm)
        return "rank " + std::to_string(p.first) + " got " + std::to_string(result) + ": " + text;
    for (const std::string &needle : needles) {
        if (text.find(needle) == std::string::npos)
            return "rank " + std::to_string(p.first) + " says without '" + needle + "': " + text;
    }
    return Now() - start < kHangSeconds ? "" : "only after " + std::to_string(Now() - start) + " s";
}

TEST(Excuse, AllFailWithTheReasonOfTheOneThatCannotStart)
{
    for (const Trouble &trouble : kTroubles) {
        for (int odd : {1, 2}) { // rank 0 makes the id, which needs its process in order
            SCOPED_TRACE(trouble.name + std::to_string(odd));
            ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
                ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
                if (p.first != odd)
                    return Init(p, &config, trouble.code,
                                {"rank " + std::to_string(odd) + " failed", trouble.reason});
                trouble.make(&config);
                return Init(p, &config, trouble.code, {trouble.reason});
            }));
        }
    }
}

TEST(Excuse, SeveralThatCannotStart)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = p.first == 1 ? 1 : 0;
        return Init(p, &config, ncclInvalidUsage, {"not in this version"});
    }));
}

// Without a thread of its own a rank can still say so.
TEST(Excuse, NoThreadCanBeStarted)
{
    if (geteuid() != 0)
        GTEST_SKIP()
            << "only a user other than root has a limit of threads, and only root can become another";
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        if (p.first == 1) {
            rlimit none{0, 0};
            if (setrlimit(RLIMIT_NPROC, &none) != 0 || setuid(65534) != 0)
                return std::string("cannot give up threads");
        }
        return Init(p, &config, ncclSystemError,
                    {p.first == 1 ? "start thread" : "rank 1 failed: start thread"});
    }));
}

// However many descriptors are left to those that are short of them: all ranks work, or all fail at once and,
// if says_why, say what limits them.
void AllowDescriptors(int spare, const std::function<bool(int rank)> &is_short, bool says_why = true)
{
    SCOPED_TRACE(std::to_string(spare) + " descriptors");
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
        UseDeviceOf(p.first);
        p.Barrier();
        std::optional<DescriptorLimit> limit;
        if (is_short(p.first))
            limit.emplace(spare);
        double start = Now();
        ncclComm_t comm = nullptr;
        ncclResult_t result = ncclCommInitRank(&comm, p.ranks, p.id, p.first);
        std::string text = ncclGetLastError(nullptr);
        if (result == ncclSuccess)
            ncclCommAbort(comm);
        else if (says_why && text.find("RLIMIT_NOFILE is ") == std::string::npos &&
                 text.find("oo many open files") == std::string::npos &&
                 text.find("ulimit -n") == std::string::npos)
            return "rank " + std::to_string(p.first) + " got " + std::to_string(result) + ": " + text;
        return std::string(Now() - start < kHangSeconds ? "" : "late: " + text);
    }));
}

TEST(Excuse, OneRankHasFewDescriptors)
{
    for (int spare = 0; spare <= 24; spare++)
        AllowDescriptors(spare, [](int rank) { return rank == 1; });
}

TEST(Excuse, AllRanksHaveFewDescriptors)
{
    for (int spare = 0; spare <= 24; spare++)
        AllowDescriptors(spare, [](int) { return true; });
}

TEST(Excuse, TheRootHasFewDescriptors)
{
    for (int spare = 0; spare <= 24; spare++)
        AllowDescriptors(
            spare, [](int rank) { return rank == 0; }, spare >= 2); // with fewer it can accept nobody
}

// An init that is never begun, as another call of its group fails.
TEST(Excuse, DroppedWithItsGroup)
{
    for (int odd : {0, 1, 2}) {
        ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
            ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
            if (p.first != odd)
                return Init(p, &config, ncclInvalidArgument,
                            {"rank " + std::to_string(odd) + " failed", "its group", "communicator is NULL"});
            double start = Now();
            ncclComm_t comm = nullptr;
            char byte = 0;
            ncclGroupStart();
            ncclResult_t first = ncclCommInitRank(&comm, p.ranks, p.id, p.first);
            ncclResult_t second = ncclAllReduce(&byte, &byte, 1, ncclChar, ncclSum, nullptr, nullptr);
            ncclResult_t result = ncclGroupEnd();
            std::string text = ncclGetLastError(nullptr);
            if (first != ncclSuccess || second != ncclInvalidArgument || result != ncclInvalidArgument ||
                comm)
                return "got " + std::to_string(result) + ": " + text;
            if (text.find("communicator is NULL") == std::string::npos)
                return text;
            return std::string(Now() - start < kHangSeconds ? "" : "late");
        }));
    }
}

// Ranks that contradict each other hear of it in whatever order they come, though the process that has the
// root ends with its own failure.
TEST(Excuse, NumbersOfRanksDifferInAnyOrder)
{
    const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (const int *order : orders) {
        for (int odd = 0; odd < 3; odd++) {
            for (int says : {2, 4}) {
                SCOPED_TRACE("order " + std::to_string(order[0]) + std::to_string(order[1]) +
                             std::to_string(order[2]) + ", rank " + std::to_string(odd) + " says " +
                             std::to_string(says));
                if (says <= odd || (says == 4 && order != orders[0]))
                    continue; // its own arguments refuse it; a fourth rank is waited for, so not too often
                ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
                    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
                    if (p.first == odd)
                        p.ranks = says;
                    usleep(static_cast<useconds_t>(order[p.first]) * 80000);
                    return Init(p, &config, ncclInvalidUsage, {"the number of ranks differs"});
                }));
            }
        }
    }
}

// Those who come later than the excuse waits are told all the same.
TEST(Excuse, LateRanksLearnOfItToo)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = p.first == 1 ? 0 : 1;
        sleep(p.first == 2 ? 4 : 0);
        std::string outcome =
            Init(p, &config, ncclInvalidUsage, {p.first == 1 ? "" : "rank 1 failed", "not in this version"});
        p.Barrier(); // the root lives in rank 0's process
        return outcome;
    }));
}

// The root's process may be held up for seconds, as on a machine that is busy or suspended.
TEST(Excuse, TheRootIsStoppedForAWhile)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        pid_t root = getpid(), waker = -1;
        p.Share(&root, sizeof(root));
        if (p.first == 1) {
            config.blocking = 0;
            kill(root, SIGSTOP);
            waker = fork();
            if (waker == 0) {
                sleep(4);
                kill(root, SIGCONT);
                _exit(0);
            }
        }
        std::string outcome =
            Init(p, &config, ncclInvalidUsage, {p.first == 1 ? "" : "rank 1 failed", "not in this version"});
        if (waker > 0)
            waitpid(waker, nullptr, 0);
        return outcome;
    }));
}

// The caller gets its own error back soon, whoever else comes.
TEST(Excuse, NobodyElseComes)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 1, [&](Party &p) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        p.ranks = 4;
        return Init(p, &config, ncclInvalidUsage, {"not in this version"});
    }));
}

TEST(Excuse, InAGroupWithOthersOfTheThread)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [&](Party &p) {
        ncclConfig_t good = NCCL_CONFIG_INITIALIZER, bad = NCCL_CONFIG_INITIALIZER;
        ncclComm_t comms[2] = {};
        double start = Now();
        bad.blocking = 0;
        ncclGroupStart();
        for (int i = 0; i < 2; i++)
            ncclCommInitRankConfig(&comms[i], 4, p.id, 2 * p.first + i, p.first == 1 ? &bad : &good);
        ncclResult_t result = ncclGroupEnd();
        std::string text = ncclGetLastError(nullptr);
        if (result != ncclInvalidUsage || comms[0] || comms[1])
            return "got " + std::to_string(result) + ": " + text;
        if (text.find("not in this version") == std::string::npos)
            return text;
        return std::string(Now() - start < kHangSeconds ? "" : "late");
    }));
}

// A group fails with its first failure in the order of the calls, and with that one's text.
TEST(Excuse, TheFirstFailureOfAGroupIsTold)
{
    setenv("RONDO_INIT_TIMEOUT", "1", 1); // read by the child, once
    ExpectSuccess(RunRanks(Mode::kProcesses, 1, [&](Party &) {
        ncclConfig_t good = NCCL_CONFIG_INITIALIZER, bad = NCCL_CONFIG_INITIALIZER;
        ncclUniqueId ids[2];
        ncclComm_t comms[2] = {};
        bad.blocking = 0;
        for (ncclUniqueId &id : ids)
            ncclGetUniqueId(&id);
        ncclGroupStart();
        ncclCommInitRankConfig(&comms[0], 2, ids[0], 0, &bad);
        ncclCommInitRankConfig(&comms[1], 2, ids[1], 0, &good); // fails later: rank 1 never comes
        ncclResult_t result = ncclGroupEnd();
        std::string text = ncclGetLastError(nullptr);
        bool is_first = result == ncclInvalidUsage && text.find("not in this version") != std::string::npos;
        return is_first ? "" : "got " + std::to_string(result) + ": " + text;
    }));
    unsetenv("RONDO_INIT_TIMEOUT");
}

// What is wrong with the arguments alone is between the caller and the library.
TEST(Excuse, BadArgumentsAreLocal)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 1, [&](Party &p) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.magic = 1;
        p.ranks = 2;
        return Init(p, &config, ncclInvalidArgument, {"magic"});
    }));
}

} // namespace
