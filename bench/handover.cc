/*
 * handover.cc - how long it takes one rank's kernel to hand 8 bytes to another's on the CPU device, by
 * protocol, next to a bare flag that the same two threads hand to and fro in the same run.
 *
 *   bench_handover [rounds [hops]]      prints one JSON object on stdout
 *
 * The two kernels run lists of sends and receives that answer each other, so that every work waits for the
 * one before it: a list's time over its length is one hop, the work's own bookkeeping included. Threads poll
 * as they do for the bare flag; the CPU device's streams, fibers and sleeps have no part in it. Protocols and
 * the bare flag take turns and medians are compared, because machines are shared. Where the two threads share
 * a CPU, the figures show the scheduler.
 */
#include "collectives/choose.h"
#include "device/lane.h"
#include "device/work.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace
{

constexpr uint64_t kBytes = 8, kSlotBytes = 1024, kFingerprint = 1;

// Polls before a thread gives its CPU away: far more than an answer takes that is under way.
constexpr unsigned kPolls = 20000;

template <class HasCome> void Poll(const HasCome &has_come)
{
    for (unsigned polls = 0; !has_come(); polls++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (polls > kPolls)
            sched_yield();
    }
}

bool Wait(rondo_lane *, rondo_line *line, uint64_t target)
{
    Poll([&] { return static_cast<int64_t>(rondo_line_read(line) - target) >= 0; });
    return true;
}

bool WaitFlag(rondo_lane *, rondo_line *, const uint32_t *flag, uint32_t value)
{
    Poll([&] { return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == value; });
    return true;
}

void Ring(rondo_switchboard *, uint32_t)
{
}

void Yield(rondo_lane *)
{
}

constexpr rondo_lane_ops kOps = {Wait, WaitFlag, Ring, Yield};

// One direction between the two ranks.
struct Connection {
    rondo_line posted{}, consumed{};
    rondo_slot_head heads[RONDO_SLOTS]{};
    alignas(RONDO_LINE_BYTES) unsigned char slots[RONDO_SLOTS * kSlotBytes]{};
    rondo_end to{}, from{};

    Connection(int32_t sender, int32_t receiver)
    {
        to = {0, &posted, &consumed, heads, slots, kSlotBytes, nullptr, receiver, 0};
        from = to;
        from.peer_rank = sender;
    }
};

// One rank's list of works and what its kernel needs beside it.
struct Rank {
    std::vector<rondo_work> works;
    rondo_rank_page page{};
    rondo_fault fault{};
    rondo_block block{};
    rondo_kernel_args args{};
    uint64_t memory = 0;
    int32_t order[2] = {0, 1}, position = 0;

    Rank(int32_t rank, rondo_protocol protocol, Connection &out, Connection &in, unsigned hops)
    {
        for (unsigned hop = 0; hop < hops; hop++) {
            rondo_work work{};
            bool sends = static_cast<int32_t>(hop % 2) == rank;
            work.kind = sends ? RONDO_WORK_SEND : RONDO_WORK_RECV;
            work.protocol = static_cast<uint8_t>(protocol);
            work.count = kBytes;
            work.chunk = kBytes;
            work.fingerprint = kFingerprint;
            work.send = sends ? &memory : nullptr;
            work.recv = sends ? nullptr : &memory;
            work.to = sends ? &out.to : nullptr;
            work.from = sends ? nullptr : &in.from;
            works.push_back(work);
        }
        block.works[0] = hops;
        position = rank;
        args = {rank, 2, 1, hops, &block, works.data(), order, &position, &page, nullptr, &fault};
    }

    bool Run(rondo_cpu_kernel kernel)
    {
        rondo_lane lane{&kOps, &page.stop, 0, 0};

        kernel(&lane, &args);
        return fault.code == 0;
    }
};

struct Protocol {
    Connection there{0, 1}, back{1, 0};
    Rank ranks[2];

    Protocol(rondo_protocol protocol, unsigned hops)
        : ranks{{0, protocol, there, back, hops}, {1, protocol, back, there, hops}}
    {
    }
};

// The bare flag: each thread polls a line of its own and stores into the other's.
struct Flags {
    rondo_line line[2]{};

    void Run(int rank, uint64_t base, unsigned hops)
    {
        for (unsigned hop = 0; hop < hops; hop++) {
            if (static_cast<int>(hop % 2) == rank)
                __atomic_store_n(&line[1 - rank].value, base + hop + 1, __ATOMIC_RELEASE);
            else
                Poll([&] { return rondo_line_read(&line[rank]) == base + hop + 1; });
        }
    }
};

// Both threads arrive before one goes on.
void Meet(rondo_line (&lines)[2], int rank, uint64_t turn)
{
    __atomic_store_n(&lines[1 - rank].value, turn, __ATOMIC_RELEASE);
    Poll([&] { return rondo_line_read(&lines[rank]) >= turn; });
}

struct Run {
    unsigned rounds, hops;
    rondo_cpu_kernel kernel;
    Flags flags;
    rondo_line meeting[2]{};
    std::unique_ptr<Protocol> protocols[RONDO_PROTOCOL_NUM];
    std::vector<double> samples[RONDO_PROTOCOL_NUM + 1]; // ns a hop; the last are the bare flag's
    bool is_sound[2] = {true, true};

    void Thread(int rank)
    {
        uint64_t turn = 0;

        for (unsigned round = 0; round < rounds + 2; round++) // two to warm up
            for (int what = 0; what <= RONDO_PROTOCOL_NUM; what++) {
                Meet(meeting, rank, ++turn);
                auto begin = std::chrono::steady_clock::now();
                if (what == RONDO_PROTOCOL_NUM)
                    flags.Run(rank, static_cast<uint64_t>(round) * hops, hops);
                else
                    is_sound[rank] = protocols[what]->ranks[rank].Run(kernel) && is_sound[rank];
                std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
                if (rank == 0 && round >= 2)
                    samples[what].push_back(took.count() / hops);
            }
    }
};

double Median(std::vector<double> &samples)
{
    std::nth_element(samples.begin(), samples.begin() + static_cast<long>(samples.size() / 2), samples.end());
    return samples[samples.size() / 2];
}

} // namespace

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 201, hops = argc > 2 ? std::atoi(argv[2]) : 2000;
    const char *isa = nullptr;

    if (rounds < 1 || hops < 2) {
        std::fprintf(stderr, "usage: bench_handover [rounds, 1 or more [hops a round, 2 or more]]\n");
        return 2;
    }
    auto run = std::make_unique<Run>();
    run->rounds = static_cast<unsigned>(rounds);
    run->hops = static_cast<unsigned>(hops) / 2 * 2; // the last hop is to the thread that has the clock
    run->kernel = rondo_cpu_kernel_select(&isa);
    for (int protocol = 0; protocol < RONDO_PROTOCOL_NUM; protocol++)
        run->protocols[protocol] =
            std::make_unique<Protocol>(static_cast<rondo_protocol>(protocol), run->hops);
    std::thread other([&] { run->Thread(1); });
    run->Thread(0);
    other.join();
    if (!run->is_sound[0] || !run->is_sound[1]) {
        std::fprintf(stderr, "bench_handover: a kernel reported a fault\n");
        return 1;
    }
    double flag = Median(run->samples[RONDO_PROTOCOL_NUM]);
    std::printf(
        "{\"schema\": 1, \"benchmark\": \"handover\", \"isa\": \"%s\", \"rounds\": %d, \"hops\": %u,\n"
        " \"flag_ns\": %.1f, \"protocols\": [",
        isa, rounds, run->hops, flag);
    for (int protocol = 0; protocol < RONDO_PROTOCOL_NUM; protocol++) {
        double ns = Median(run->samples[protocol]);
        std::printf("%s\n  {\"protocol\": \"%s\", \"hop_ns\": %.1f, \"ratio\": %.2f}", protocol ? "," : "",
                    rondo_protocol_name(static_cast<rondo_protocol>(protocol)), ns, ns / flag);
    }
    std::printf("]}\n");
    return 0;
}
