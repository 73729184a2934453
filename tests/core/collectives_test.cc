// Every operation, between ranks that are threads, one thread, processes, or pairs of ranks in processes.
#include "ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

// Forked processes must come from one that has made no communicator, so that threads have a program of their
// own (CMake).
#ifdef RONDO_TEST_PROCESSES
static const Mode kModes[] = {Mode::kProcesses, Mode::kProcessPairs};
#else
static const Mode kModes[] = {Mode::kThreads, Mode::kOneThread};
#endif

namespace
{

struct Case {
    Mode mode;
    int ranks;
    size_t count;
};

using Buffers = std::vector<std::vector<int32_t>>;

// Element i of rank r's input; differs between ranks and elements.
int32_t Input(int rank, size_t i)
{
    return static_cast<int32_t>((rank + 1) * 1000003u + i * 17u);
}

int32_t Sum(int ranks, size_t i)
{
    uint32_t sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += static_cast<uint32_t>(Input(r, i));
    return static_cast<int32_t>(sum);
}

Buffers Inputs(const Party &party, size_t count)
{
    Buffers buffers(party.held);
    for (int h = 0; h < party.held; h++) {
        buffers[h].resize(count + 1); // never empty, so that data() is no NULL
        for (size_t i = 0; i < count; i++)
            buffers[h][i] = Input(party.first + h, i);
    }
    return buffers;
}

Buffers Outputs(const Party &party, size_t count)
{
    return Buffers(party.held, std::vector<int32_t>(count + 1, -1));
}

// expected(rank, i) for each element of each rank held; nothing beyond.
std::string Check(const char *what, const Party &party, const Buffers &buffers, size_t count,
                  const std::function<int32_t(int rank, size_t i)> &expected)
{
    for (int h = 0; h < party.held; h++) {
        for (size_t i = 0; i <= count; i++) {
            int32_t want = i < count ? expected(party.first + h, i) : -1;
            if (buffers[h][i] != want)
                return std::string(what) + " on rank " + std::to_string(party.first + h) + ": element " +
                       std::to_string(i) + " is " + std::to_string(buffers[h][i]) + ", not " +
                       std::to_string(want);
        }
    }
    return "";
}

class Collectives : public testing::TestWithParam<Case>
{
  protected:
    // Between Init and Destroy.
    void Play(const Body &body)
    {
        ExpectSuccess(RunRanks(GetParam().mode, GetParam().ranks, [&](Party &party) {
            std::string outcome = party.Init();
            if (outcome.empty())
                outcome = body(party);
            if (outcome.empty())
                outcome = party.Destroy();
            return outcome;
        }));
    }
};

TEST_P(Collectives, AllReduce)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        Buffers in = Inputs(p, n), out = Outputs(p, n);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            return ncclAllReduce(in[rank - p.first].data(), out[rank - p.first].data(), n, ncclInt32, ncclSum,
                                 comm, nullptr);
        });
        return outcome.empty() ? Check("AllReduce", p, out, n, [&](int, size_t i) { return Sum(p.ranks, i); })
                               : outcome;
    });
}

TEST_P(Collectives, AllReduceInPlaceTwice)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        Buffers data = Inputs(p, n);
        for (auto &buffer : data)
            buffer[n] = -1;
        std::string outcome;
        for (int round = 0; round < 2 && outcome.empty(); round++)
            outcome = p.Each([&](int rank, ncclComm_t comm) {
                return ncclAllReduce(data[rank - p.first].data(), data[rank - p.first].data(), n, ncclInt32,
                                     ncclSum, comm, nullptr);
            });
        return outcome.empty()
                   ? Check("AllReduce", p, data, n,
                           [&](int, size_t i) {
                               return static_cast<int32_t>(static_cast<uint32_t>(Sum(p.ranks, i)) * p.ranks);
                           })
                   : outcome;
    });
}

TEST_P(Collectives, AllGather)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        Buffers in = Inputs(p, n), out = Outputs(p, n * p.ranks);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            return ncclAllGather(in[rank - p.first].data(), out[rank - p.first].data(), n, ncclInt32, comm,
                                 nullptr);
        });
        return outcome.empty() ? Check("AllGather", p, out, n * p.ranks,
                                       [&](int, size_t i) { return Input(static_cast<int>(i / n), i % n); })
                               : outcome;
    });
}

TEST_P(Collectives, ReduceScatter)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        Buffers in = Inputs(p, n * p.ranks), out = Outputs(p, n);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            return ncclReduceScatter(in[rank - p.first].data(), out[rank - p.first].data(), n, ncclInt32,
                                     ncclSum, comm, nullptr);
        });
        return outcome.empty() ? Check("ReduceScatter", p, out, n,
                                       [&](int rank, size_t i) { return Sum(p.ranks, rank * n + i); })
                               : outcome;
    });
}

TEST_P(Collectives, BroadcastAndBcast)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        int root = p.ranks - 1;
        Buffers in = Inputs(p, n), out = Outputs(p, n), same = Inputs(p, n);
        for (auto &buffer : same)
            buffer[n] = -1;
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            int h = rank - p.first;
            ncclResult_t result = ncclBroadcast(rank == root ? in[h].data() : nullptr, out[h].data(), n,
                                                ncclInt32, root, comm, nullptr);
            return result == ncclSuccess ? ncclBcast(same[h].data(), n, ncclInt32, 0, comm, nullptr) : result;
        });
        if (outcome.empty())
            outcome = Check("Broadcast", p, out, n, [&](int, size_t i) { return Input(root, i); });
        return outcome.empty() ? Check("Bcast", p, same, n, [&](int, size_t i) { return Input(0, i); })
                               : outcome;
    });
}

TEST_P(Collectives, Reduce)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        int root = p.ranks / 2;
        Buffers in = Inputs(p, n), out = Outputs(p, n);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            int h = rank - p.first;
            return ncclReduce(in[h].data(), rank == root ? out[h].data() : nullptr, n, ncclInt32, ncclSum,
                              root, comm, nullptr);
        });
        return outcome.empty()
                   ? Check("Reduce", p, out, n,
                           [&](int rank, size_t i) { return rank == root ? Sum(p.ranks, i) : -1; })
                   : outcome;
    });
}

TEST_P(Collectives, AlltoAll)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        Buffers in = Inputs(p, n * p.ranks), out = Outputs(p, n * p.ranks);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            return ncclAlltoAll(in[rank - p.first].data(), out[rank - p.first].data(), n, ncclInt32, comm,
                                nullptr);
        });
        return outcome.empty() ? Check("AlltoAll", p, out, n * p.ranks,
                                       [&](int rank, size_t i) {
                                           return Input(static_cast<int>(i / n), rank * n + i % n);
                                       })
                               : outcome;
    });
}

TEST_P(Collectives, GatherThenScatter)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        int root = p.ranks - 1;
        Buffers in = Inputs(p, n), all = Outputs(p, n * p.ranks), out = Outputs(p, n);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            int h = rank - p.first;
            return ncclGather(in[h].data(), rank == root ? all[h].data() : nullptr, n, ncclInt32, root, comm,
                              nullptr);
        });
        if (outcome.empty())
            outcome = Check("Gather", p, all, n * p.ranks, [&](int rank, size_t i) {
                return rank == root ? Input(static_cast<int>(i / n), i % n) : -1;
            });
        if (outcome.empty())
            outcome = p.Each([&](int rank, ncclComm_t comm) {
                int h = rank - p.first;
                return ncclScatter(rank == root ? all[h].data() : nullptr, out[h].data(), n, ncclInt32, root,
                                   comm, nullptr);
            });
        return outcome.empty()
                   ? Check("Scatter", p, out, n, [&](int rank, size_t i) { return Input(rank, i); })
                   : outcome;
    });
}

TEST_P(Collectives, SendAndRecvRoundTheRing)
{
    size_t n = GetParam().count;
    Play([n](Party &p) {
        Buffers in = Inputs(p, n), out = Outputs(p, n);
        std::string outcome = p.Each([&](int rank, ncclComm_t comm) {
            int h = rank - p.first;
            ncclResult_t result = ncclSend(in[h].data(), n, ncclInt32, (rank + 1) % p.ranks, comm, nullptr);
            return result == ncclSuccess
                       ? ncclRecv(out[h].data(), n, ncclInt32, (rank + p.ranks - 1) % p.ranks, comm, nullptr)
                       : result;
        });
        return outcome.empty()
                   ? Check("Recv", p, out, n,
                           [&](int rank, size_t i) { return Input((rank + p.ranks - 1) % p.ranks, i); })
                   : outcome;
    });
}

std::vector<Case> Cases()
{
    std::vector<Case> cases;
    for (Mode mode : kModes) {
        for (int ranks : {1, 2, 3, 4}) {
            for (size_t count : {0, 1, 1021, 70001})
                cases.push_back({mode, ranks, count});
        }
        cases.push_back({mode, 8, 1021});
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Collectives, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case> &each) {
                             return std::string(ModeName(each.param.mode)) +
                                    std::to_string(each.param.ranks) + "Count" +
                                    std::to_string(each.param.count);
                         });

} // namespace
