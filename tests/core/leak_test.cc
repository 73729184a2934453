// A communicator leaves nothing behind: many rounds of init, operation and destroy, in threads and between
// processes.
#include "ranks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace
{

// RONDO_TEST_ROUNDS: the same program serves the quick test and the long one (CMake).
int Rounds()
{
    const char *text = getenv("RONDO_TEST_ROUNDS");
    return text ? atoi(text) : 200;
}

long ResidentKilobytes()
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%*s %ld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * 4;
}

std::string Round(Party &p)
{
    std::vector<float> in(1000, static_cast<float>(p.first + 1)), out(1000);
    std::string outcome = p.Init();
    if (outcome.empty())
        outcome = p.Each([&](int, ncclComm_t comm) {
            return ncclAllReduce(in.data(), out.data(), in.size(), ncclFloat, ncclSum, comm, nullptr);
        });
    if (outcome.empty() && out[999] != static_cast<float>(p.ranks * (p.ranks + 1) / 2))
        outcome = "wrong result";
    return outcome.empty() ? p.Destroy() : outcome;
}

// The id of the next round, from rank 0 to all: every round is a communicator of its own.
std::string NextId(Party &p)
{
    p.Barrier();
    if (p.index == 0) {
        ncclResult_t result = ncclGetUniqueId(&p.id);
        if (result != ncclSuccess)
            return Failure("id", result);
    }
    p.Share(&p.id, sizeof(p.id));
    return "";
}

struct Use {
    int descriptors, threads;
    long kilobytes;
};

// What is in use now. Roots of earlier rounds may be about to end, so the least of a while counts.
Use Measure()
{
    Use least = {CountDescriptors(), CountThreads(), ResidentKilobytes()};
    for (int i = 0; i < 50; i++) {
        usleep(2000);
        least.descriptors = std::min(least.descriptors, CountDescriptors());
        least.threads = std::min(least.threads, CountThreads());
    }
    least.kilobytes = ResidentKilobytes();
    return least;
}

// D16
TEST(Leak, NothingIsLeftBetweenProcesses)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) {
        Use before = {};
        for (int round = 0; round < Rounds(); round++) {
            if (round == Rounds() / 10)
                before = Measure();
            std::string outcome = NextId(p);
            if (outcome.empty())
                outcome = Round(p);
            if (!outcome.empty())
                return "round " + std::to_string(round) + ": " + outcome;
        }
        Use after = Measure();
        if (after.descriptors > before.descriptors || after.threads > before.threads)
            return "descriptors " + std::to_string(before.descriptors) + " to " +
                   std::to_string(after.descriptors) + ", threads " + std::to_string(before.threads) +
                   " to " + std::to_string(after.threads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // their own records of past memory grow
        if (after.kilobytes > before.kilobytes + 1024)
            return "resident " + std::to_string(before.kilobytes) + " to " + std::to_string(after.kilobytes) +
                   " KiB";
#endif
        return std::string();
    }));
}

} // namespace
