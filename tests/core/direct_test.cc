// Collectives that read their peers' memory: whose memory it is, and when.
#include "ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

// Forked processes must come from one that has made no communicator, so that threads have a program of their
// own (CMake).
#ifdef RONDO_TEST_PROCESSES
static const Mode kMode = Mode::kProcesses;
#else
static const Mode kMode = Mode::kThreads;
#endif

namespace
{

const size_t kCount = 4 << 20; // floats; far beyond where collectives go directly

// Memory that is gone at once when it is given up: a late access is a fault.
class Mapping
{
  public:
    explicit Mapping(float value)
        : at_(static_cast<float *>(mmap(nullptr, kCount * sizeof(float), PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
        std::fill_n(at_, kCount, value);
    }

    ~Mapping()
    {
        munmap(at_, kCount * sizeof(float));
    }

    Mapping(const Mapping &) = delete;

    float *data() const
    {
        return at_;
    }

  private:
    float *at_;
};

std::string AllReduceOnce(Party &p)
{
    Mapping send(1.0f), recv(0.0f);
    std::string outcome = p.Alone([&](int rank, ncclComm_t comm) {
        return Outcome(rank, comm,
                       ncclAllReduce(send.data(), recv.data(), kCount, ncclFloat, ncclSum, comm, nullptr));
    });
    bool is_right = std::count(recv.data(), recv.data() + kCount, (float)p.ranks) == (long)kCount;
    return outcome.empty() && !is_right ? "a wrong sum" : outcome;
}

// What a rank gave is its own when its call is over, for whatever reason it is. One rank aborts in the
// middle. Whether a peer reads at that very moment is chance: test_kernels holds one there
// (Direct.StopWaitsForTheReader).
void ExpectNoLateAccess()
{
    for (unsigned round = 0; round < 4; round++)
        ExpectSuccess(RunRanks(kMode, 3, [&](Party &p) {
            std::string outcome = p.Init();
            std::thread aborter;
            if (!outcome.empty())
                return outcome;
            p.Barrier();
            if (p.first == 1)
                aborter = std::thread([&] {
                    usleep(3000 + 2777 * round);
                    ncclCommAbort(p.comms[0]);
                });
            for (int i = 0; i < 1000 && outcome.empty(); i++)
                outcome = AllReduceOnce(p);
            if (aborter.joinable())
                aborter.join();
            else
                ncclCommAbort(p.comms[0]);
            return outcome.empty()            ? std::string("a thousand calls outlive the abort")
                   : outcome == "a wrong sum" ? outcome
                                              : std::string();
        }));
}

TEST(Direct, MemoryIsItsOwnersAfterAnAbort)
{
    ExpectNoLateAccess();
}

// The same when the kernels find the error: ranks return while others still read.
TEST(Direct, MemoryIsItsOwnersAfterAMismatch)
{
    for (int odd = 0; odd < 3; odd++)
        ExpectSuccess(RunRanks(kMode, 3, [&](Party &p) {
            std::string outcome = p.Init();
            if (!outcome.empty())
                return outcome;
            outcome = AllReduceOnce(p);
            if (!outcome.empty())
                return outcome;
            {
                Mapping send(1.0f), recv(0.0f);
                outcome = p.Alone([&](int rank, ncclComm_t comm) {
                    size_t count = rank == odd ? kCount - 1 : kCount;
                    return Outcome(
                        rank, comm,
                        ncclAllReduce(send.data(), recv.data(), count, ncclFloat, ncclSum, comm, nullptr));
                });
            }
            p.Barrier(); // so that nobody's abort is taken for the cause
            ncclCommAbort(p.comms[0]);
            bool is_named =
                outcome.find("rank " + std::to_string(odd) + " called AllReduce") != std::string::npos;
            return is_named ? std::string() : "no such error: " + outcome;
        }));
}

} // namespace
