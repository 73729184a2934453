// cpu_latency.cpp - what the CPU device's engine costs: an empty launch, and handing over between lanes,
// threads, processes.
//
// Not a test: build the target cpu_latency and run it. Figures are nanoseconds, the least of several rounds.
#include "cpu_support.h"

#include <algorithm>

namespace
{

constexpr int kRounds = 5;

double Best(const std::function<void()> &body, int count)
{
    double best = 1e18;
    for (int i = 0; i < kRounds; i++) {
        auto start = std::chrono::steady_clock::now();
        body();
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        best = std::min(best, took.count() / count);
    }
    return best;
}

void Report(const char *what, int count, const std::function<void()> &body)
{
    printf("%-34s %10.1f ns\n", what, Best(body, count));
}

void EmptyLaunch()
{
    constexpr int kCount = 200000;
    Stream stream;
    Launch launch(1, [](rondo_lane *) {});
    Report("empty launch and synchronize", kCount, [&] {
        for (int i = 0; i < kCount; i++) {
            launch.On(stream);
            Device()->synchronize(0, stream);
        }
    });
}

// One side of a ping-pong: publishes into theirs what it has seen in mine. Both lines start at base.
void Side(rondo_lane *lane, rondo_line *mine, rondo_line *theirs, rondo_switchboard *board, uint64_t base,
          int count, bool is_first)
{
    for (uint64_t i = base + 1; i <= base + count; i++) {
        if (is_first)
            rondo_line_publish(theirs, i, board);
        LaneWait(lane, mine, i);
        if (!is_first)
            rondo_line_publish(theirs, i, board);
    }
}

void SameThread()
{
    constexpr int kCount = 200000;
    static rondo_line lines[2];
    uint64_t base = 0;
    Stream stream;
    Launch launch(
        1,
        [&](rondo_lane *lane) {
            Side(lane, &lines[lane->role], &lines[1 - lane->role], Device()->switchboard(), base, kCount,
                 lane->role == 0);
        },
        2);
    Report("hand-over, two lanes of a thread", 2 * kCount, [&] {
        launch.On(stream);
        Device()->synchronize(0, stream);
        base += kCount;
    });
}

void TwoThreads()
{
    constexpr int kCount = 20000;
    static rondo_line lines[2];
    uint64_t base = 0;
    auto side = [&](int which) {
        Stream stream;
        Launch launch(1, [&](rondo_lane *lane) {
            Side(lane, &lines[which], &lines[1 - which], Device()->switchboard(), base, kCount, which == 0);
        });
        launch.On(stream);
        Device()->synchronize(0, stream);
    };
    Report("hand-over, two threads", 2 * kCount, [&] {
        std::thread other([&] { side(1); });
        side(0);
        other.join();
        base += kCount;
    });
}

void TwoProcesses()
{
    constexpr int kCount = 20000;
    Shared<rondo_line> lines(2);
    InTwoChildren([&](int which, int socket) {
        rondo_switchboard *board = SwapBoards(socket);
        uint64_t base = 0;
        Stream stream;
        Launch launch(1, [&](rondo_lane *lane) {
            Side(lane, &lines[which], &lines[1 - which], board, base, kCount, which == 0);
        });
        auto round = [&] {
            launch.On(stream);
            Device()->synchronize(0, stream);
            base += kCount;
        };
        if (which == 0)
            Report("hand-over, two processes", 2 * kCount, round);
        else
            Best(round, 1);
        return 0;
    });
}

} // namespace

int main()
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    TwoProcesses();
    EmptyLaunch();
    SameThread();
    TwoThreads();
    return 0;
}
