// A program resets devices on which communicators live: they work on, and no memory of its later allocations is
// theirs.
#include "ranks.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace
{

constexpr size_t kCount = 100000; // several slots
constexpr size_t kPieces = 48, kPieceBytes = 1 << 20;

// Small devices: what is free is then a matter of the program's own allocations, whatever else the host does.
const int kCapacity = setenv("RONDO_CPU_DEVICE_MEMORY", "134217728", 1);
const int kTimeout = setenv("RONDO_TIMEOUT", "20", 1); // for ranks whose partner has failed
const int kSharing = setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

// What one rank has on its device.
struct Holding {
    int device = 0;
    size_t free = 0;
    float *buffer = nullptr;
    std::vector<unsigned char *> pieces;
};

size_t FreeBytes(int device)
{
    size_t free = 0, total = 0;
    return cudaSetDevice(device) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

std::string Allocate(Holding &holding)
{
    if (cudaSetDevice(holding.device) != cudaSuccess ||
        cudaMalloc(reinterpret_cast<void **>(&holding.buffer), kCount * sizeof(float)) != cudaSuccess)
        return "no memory for the buffer";
    return "";
}

// Everything that is free on the device, or much of it: a mailbox that was released would lie in there.
std::string FillDevice(Holding &holding)
{
    cudaSetDevice(holding.device);
    for (size_t i = 0; i < kPieces; i++) {
        void *piece = nullptr;
        if (cudaMalloc(&piece, kPieceBytes) != cudaSuccess)
            return "no memory for piece " + std::to_string(i);
        memset(piece, static_cast<int>(i + 1), kPieceBytes);
        holding.pieces.push_back(static_cast<unsigned char *>(piece));
    }
    return "";
}

std::string CheckPieces(const Holding &holding)
{
    for (size_t i = 0; i < holding.pieces.size(); i++) {
        for (size_t at = 0; at < kPieceBytes; at++) {
            if (holding.pieces[i][at] != i + 1)
                return "piece " + std::to_string(i) + " was overwritten at byte " + std::to_string(at);
        }
    }
    return "";
}

std::string Reduce(Party &p, std::vector<Holding> &holdings)
{
    for (int i = 0; i < p.held; i++)
        std::fill_n(holdings[i].buffer, kCount, static_cast<float>(p.first + i + 1));
    std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
        float *buffer = holdings[rank - p.first].buffer;
        return ncclAllReduce(buffer, buffer, kCount, ncclFloat, ncclSum, comm, nullptr);
    });
    for (int i = 0; i < p.held && outcome.empty(); i++) {
        cudaSetDevice(holdings[i].device);
        cudaDeviceSynchronize();
        for (size_t at = 0; at < kCount && outcome.empty(); at++) {
            if (holdings[i].buffer[at] != static_cast<float>(p.ranks * (p.ranks + 1) / 2))
                outcome = "wrong result at " + std::to_string(at);
        }
    }
    return outcome;
}

// Reset all devices held, then look at what is left of the program's own.
std::string Reset(std::vector<Holding> &holdings)
{
    for (Holding &holding : holdings) {
        void *old = holding.buffer;
        cudaSetDevice(holding.device);
        if (cudaDeviceReset() != cudaSuccess)
            return "reset failed";
        if (cudaFree(old) == cudaSuccess)
            return "the program's memory outlived the reset";
        cudaGetLastError();
    }
    return "";
}

std::string InitOn(Party &p, const std::vector<Holding> &holdings)
{
    ncclResult_t result = ncclGroupStart();
    p.comms.assign(p.held, nullptr);
    for (int i = 0; i < p.held && result == ncclSuccess; i++) {
        cudaSetDevice(holdings[i].device);
        result = ncclCommInitRank(&p.comms[i], p.ranks, p.id, p.first + i);
    }
    ncclResult_t end = ncclGroupEnd();
    return result == ncclSuccess && end == ncclSuccess ? "" : Failure("init", result ? result : end);
}

// The whole life of a communicator with resets in it; devices: over how many the ranks are spread.
std::string Live(Party &p, int devices)
{
    std::vector<Holding> holdings(p.held);
    std::string outcome;

    for (int i = 0; i < p.held; i++) {
        holdings[i].device = (p.first + i) % devices;
        holdings[i].free = FreeBytes(holdings[i].device);
    }
    p.Barrier(); // before anybody on the same device has a mailbox
    outcome = InitOn(p, holdings);
    for (int round = 0; round < 3; round++) { // to the end in any case: the others wait at the barriers
        for (int i = 0; i < p.held && outcome.empty(); i++)
            outcome = Allocate(holdings[i]);
        if (outcome.empty())
            outcome = Reduce(p, holdings);
        p.Barrier(); // threads of one process may share a device
        if (outcome.empty())
            outcome = Reset(holdings);
        p.Barrier();
        for (int i = 0; i < p.held && outcome.empty(); i++) {
            outcome = Allocate(holdings[i]);
            if (outcome.empty())
                outcome = FillDevice(holdings[i]);
        }
        if (outcome.empty())
            outcome = Reduce(p, holdings);
        p.Barrier();
        for (int i = 0; i < p.held && outcome.empty(); i++)
            outcome = CheckPieces(holdings[i]);
        p.Barrier();
        if (outcome.empty())
            outcome = Reset(holdings);
        for (Holding &holding : holdings)
            holding.pieces.clear();
        p.Barrier();
    }
    if (outcome.empty())
        outcome = p.Destroy();
    p.Barrier();
    for (int i = 0; i < p.held && outcome.empty(); i++) {
        if (FreeBytes(holdings[i].device) != holdings[i].free)
            outcome = std::to_string(holdings[i].free) + " bytes were free, now " +
                      std::to_string(FreeBytes(holdings[i].device));
    }
    return outcome;
}

TEST(Reset, RanksOfProcesses)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) { return Live(p, 2); }));
}

TEST(Reset, RanksOfProcessesOnOneDevice)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 2, [](Party &p) { return Live(p, 1); }));
}

// Only one of the ranks can have the thread's stream; the others run on streams that the library made.
TEST(Reset, RanksOfOneThreadOnOneDeviceKeepTheirStreams)
{
    ExpectSuccess(RunRanks(Mode::kProcessPairs, 4, [](Party &p) {
        std::vector<Holding> holdings(2);
        std::string outcome = InitOn(p, holdings);
        for (int round = 0; round < 3 && outcome.empty(); round++) {
            for (int i = 0; i < 2 && outcome.empty(); i++)
                outcome = Allocate(holdings[i]);
            if (outcome.empty())
                outcome = Reduce(p, holdings);
            p.Barrier();
            if (outcome.empty() && (cudaSetDevice(0) != cudaSuccess || cudaDeviceReset() != cudaSuccess))
                outcome = "reset failed";
        }
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

TEST(Reset, RanksOfThreads)
{
    ExpectSuccess(RunRanks(Mode::kThreads, 2, [](Party &p) { return Live(p, 2); }));
}

TEST(Reset, RanksOfOneThread)
{
    ExpectSuccess(RunRanks(Mode::kOneThread, 3, [](Party &p) { return Live(p, 3); }));
}

TEST(Reset, WhatTheLibraryAllocatedForTheProgramIsTheProgramsOwn)
{
    size_t before = FreeBytes(0);
    void *memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, 1 << 20), ncclSuccess);
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(FreeBytes(0), before);
    EXPECT_NE(ncclMemFree(memory), ncclSuccess);
}

} // namespace
