// NCCL_ALGO and NCCL_PROTO as a job meets them. Ranks are processes, since a process reads them once.
#include "ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace
{

std::string ExpectError(ncclResult_t result, const std::vector<std::string> &needles)
{
    std::string text = ncclGetLastError(nullptr);

    if (result != ncclInvalidUsage)
        return "got " + std::to_string(result) + ": " + text;
    for (const std::string &needle : needles)
        if (text.find(needle) == std::string::npos)
            return "no '" + needle + "' in: " + text;
    return "";
}

TEST(Choices, MustAgree)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [&](Party &p) {
        if (p.first == 2)
            setenv("NCCL_PROTO", "LL", 1);
        ncclComm_t comm = nullptr;
        ncclResult_t result = ncclCommInitRank(&comm, 3, p.id, p.first);
        return ExpectError(result, {"NCCL_PROTO is unset on ranks 0, 1 but LL on rank 2 ("});
    }));
}

// Other words for the same are no difference.
TEST(Choices, AgreeByMeaning)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [&](Party &p) {
        setenv("NCCL_PROTO", p.first == 0 ? "LL" : "^simple,LL128", 1);
        return p.Init();
    }));
}

TEST(Choices, WhatIsImpossibleIsRefusedAtTheCall)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [&](Party &p) {
        setenv("NCCL_ALGO", "allreduce:Tree", 1);
        std::string outcome = p.Init();
        float buffer[2] = {1, 1};
        if (!outcome.empty())
            return outcome;
        outcome = ExpectError(ncclAllReduce(buffer, buffer, 2, ncclFloat, ncclSum, p.comms[0], nullptr),
                              {"AllReduce", "NCCL_ALGO=allreduce:Tree", "Ring"});
        if (!outcome.empty())
            return outcome;
        return std::string(ncclCommAbort(p.comms[0]) == ncclSuccess ? "" : ncclGetLastError(nullptr));
    }));
}

// A collective whose sizes differ so much that the ranks choose differently, and look for each other in other
// places: found by their histories.
TEST(Choices, AMismatchAcrossProtocolsIsFound)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [&](Party &p) {
        std::string outcome = p.Init();
        std::vector<float> buffer(1 << 20);
        if (!outcome.empty())
            return outcome;
        ncclResult_t result = Outcome(p.first, p.comms[0],
                                      ncclAllReduce(buffer.data(), buffer.data(), p.first == 0 ? 2 : 1 << 20,
                                                    ncclFloat, ncclSum, p.comms[0], nullptr));
        outcome = ExpectError(result, {"AllReduce(count 2,", "AllReduce(count 1048576,"});
        p.Barrier();
        ncclCommAbort(p.comms[0]);
        return outcome;
    }));
}

} // namespace
