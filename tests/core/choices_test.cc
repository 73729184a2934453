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
        setenv("NCCL_ALGO", "allreduce:NVLS", 1);
        std::string outcome = p.Init();
        float buffer[2] = {1, 1};
        if (!outcome.empty())
            return outcome;
        outcome = ExpectError(ncclAllReduce(buffer, buffer, 2, ncclFloat, ncclSum, p.comms[0], nullptr),
                              {"AllReduce", "NCCL_ALGO=allreduce:NVLS", "Ring", "Tree"});
        if (!outcome.empty())
            return outcome;
        return std::string(ncclCommAbort(p.comms[0]) == ncclSuccess ? "" : ncclGetLastError(nullptr));
    }));
}

// All-reduces go by tree, in and out of place and in groups, and nothing else does.
TEST(Choices, TreesAreTakenWhereTheyAreAsked)
{
    for (const char *protocol : {"Simple", "LL", "LL128"})
        ExpectSuccess(RunRanks(Mode::kProcesses, 4, [&](Party &p) {
            setenv("NCCL_ALGO", "Tree", 1);
            setenv("NCCL_PROTO", protocol, 1);
            std::string outcome = p.Init();
            std::vector<float> send(50000, (float)(p.first + 1)), recv(send.size()), again(recv);
            if (!outcome.empty())
                return outcome;
            for (int round = 0; round < 3; round++) {
                bool is_up = ncclGroupStart() == ncclSuccess;
                for (auto *to : {&recv, &again})
                    is_up = is_up && ncclAllReduce(send.data(), to->data(), send.size(), ncclFloat, ncclSum,
                                                   p.comms[0], nullptr) == ncclSuccess;
                if (!is_up || ncclGroupEnd() != ncclSuccess)
                    return std::string(ncclGetLastError(nullptr));
            }
            if (Outcome(p.first, p.comms[0],
                        ncclAllReduce(send.data(), send.data(), send.size(), ncclFloat, ncclAvg, p.comms[0],
                                      nullptr)) != ncclSuccess)
                return std::string(ncclGetLastError(p.comms[0]));
            for (size_t i = 0; i < send.size(); i++)
                if (recv[i] != 10 || again[i] != 10 || send[i] != 2.5f)
                    return "element " + std::to_string(i) + " is wrong";
            outcome =
                ExpectError(ncclBroadcast(send.data(), send.data(), 2, ncclFloat, 0, p.comms[0], nullptr),
                            {"Broadcast", "NCCL_ALGO=Tree", "Ring", "Tree: it does AllReduce alone"});
            p.Barrier();
            ncclCommAbort(p.comms[0]);
            return outcome;
        }));
}

TEST(Choices, TreesAreRefusedWhereFloatsMustBeDeterministic)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [&](Party &p) {
        setenv("NCCL_ALGO", "Tree", 1);
        setenv("RONDO_DETERMINISTIC", "1", 1);
        std::string outcome = p.Init();
        int whole[2] = {1, 1};
        float buffer[2] = {1, 1};
        if (!outcome.empty())
            return outcome;
        ncclResult_t result = Outcome(p.first, p.comms[0],
                                      ncclAllReduce(whole, whole, 2, ncclInt, ncclSum, p.comms[0], nullptr));
        if (result != ncclSuccess || whole[1] != 2)
            return std::string("whole numbers: ") + ncclGetLastError(nullptr);
        outcome = ExpectError(ncclAllReduce(buffer, buffer, 2, ncclFloat, ncclSum, p.comms[0], nullptr),
                              {"AllReduce", "NCCL_ALGO=Tree", "Ring", "Tree: RONDO_DETERMINISTIC is set"});
        p.Barrier();
        ncclCommAbort(p.comms[0]);
        return outcome;
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
