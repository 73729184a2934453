// cpu_engine_test.cpp - who runs what: lanes that wait for each other, drivers, passengers, the worker,
// sleep.
#include "cpu_support.h"

#include "base/clock.h"
#include "base/error.h"

#include <gtest/gtest.h>

namespace
{

bool IsDone(void *stream)
{
    bool done = false;
    EXPECT_EQ(Device()->query(0, stream, &done), ncclSuccess);
    return done;
}

// Lines of a ring of ranks, each of which passes a token on for some rounds.
struct Ring {
    explicit Ring(int ranks) : lines(ranks)
    {
    }
    void Run(rondo_lane *lane, int rank, int rounds)
    {
        int ranks = (int)lines.size();
        for (int i = 1; i <= rounds; i++) {
            if (rank == 0)
                Publish(&lines[1 % ranks], i);
            if (!LaneWait(lane, &lines[rank], i))
                return;
            if (rank != 0)
                Publish(&lines[(rank + 1) % ranks], i);
        }
    }
    std::vector<rondo_line> lines;
};

// A ring whose ranks all run on streams of the thread that made them.
struct RingOnOneThread {
    RingOnOneThread()
    {
        for (int rank = 0; rank < kRanks; rank++) {
            streams.push_back(std::make_unique<Stream>());
            launches.push_back(
                std::make_unique<Launch>(1, [this, rank](rondo_lane *lane) { ring.Run(lane, rank, 500); }));
            EXPECT_EQ(launches[rank]->On(*streams[rank]), ncclSuccess);
        }
    }
    static constexpr int kRanks = 8;
    Ring ring{kRanks};
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Launch>> launches;
};

TEST(Engine, OneThreadHoldsManyRanks)
{
    RingOnOneThread ring;
    ASSERT_EQ(Device()->synchronize(0, *ring.streams[3]),
              ncclSuccess); // the others' only driver is this call
    EXPECT_EQ(ring.launches[3]->finished(), 1);
    for (auto &stream : ring.streams)
        ASSERT_EQ(Device()->synchronize(0, *stream), ncclSuccess);
    for (auto &launch : ring.launches)
        EXPECT_EQ(launch->finished(), 1);
}

TEST(Engine, OneThreadHoldsManyRanksByQuery)
{
    RingOnOneThread ring;
    while (!IsDone(*ring.streams[5]))
        ;
    for (auto &stream : ring.streams)
        ASSERT_EQ(Device()->synchronize(0, *stream), ncclSuccess);
}

TEST(Engine, ManyThreadsWithStreamsOfTheirOwn)
{
    constexpr int kRanks = 8;
    Ring ring(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; rank++) {
        threads.emplace_back([&ring, rank] {
            Stream stream;
            for (int round = 0; round < 50; round++) {
                Launch launch(1, [&ring, rank, round](rondo_lane *lane) {
                    int ranks = (int)ring.lines.size();
                    for (int i = round * 20 + 1; i <= round * 20 + 20; i++) {
                        if (rank == 0)
                            Publish(&ring.lines[1], i);
                        LaneWait(lane, &ring.lines[rank], i);
                        if (rank != 0)
                            Publish(&ring.lines[(rank + 1) % ranks], i);
                    }
                });
                EXPECT_EQ(launch.On(stream), ncclSuccess);
                EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess);
                EXPECT_EQ(launch.finished(), 1);
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
}

TEST(Engine, MoreThreadsThanDoorbells)
{
    constexpr int kThreads = RONDO_DOORBELLS + 40;
    std::vector<rondo_line> lines(kThreads);
    rondo_line common = {};
    std::vector<std::thread> threads;
    std::atomic<int> asleep{0};
    for (int i = 0; i < kThreads; i++) {
        threads.emplace_back([&, i] {
            bool reached = false;
            asleep++;
            EXPECT_EQ(Device()->wait_line(&lines[i], 1, UINT64_MAX, &reached), ncclSuccess);
            EXPECT_TRUE(reached);
            EXPECT_EQ(Device()->wait_line(&common, 1, UINT64_MAX, &reached), ncclSuccess);
            EXPECT_TRUE(reached);
        });
    }
    EXPECT_TRUE(Eventually([&] { return asleep == kThreads; }));
    for (rondo_line &line : lines)
        Publish(&line, 1);
    usleep(10000);
    Publish(&common, 1);
    for (std::thread &thread : threads)
        thread.join();
}

TEST(Engine, QueryNeverBlocksWhileALaneWaits)
{
    Stream stream;
    rondo_line line = {};
    Launch launch(
        3, [&](rondo_lane *lane) { LaneWait(lane, &line, 1); }, 2);
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    for (int i = 0; i < 1000; i++)
        ASSERT_FALSE(IsDone(stream));
    Publish(&line, 1);
    EXPECT_TRUE(Eventually([&] { return IsDone(stream); }));
    EXPECT_EQ(launch.finished(), 1);
}

TEST(Engine, LaunchesOfAnyNumberOfBlocks)
{
    Stream stream;
    for (unsigned blocks = 0; blocks <= 96; blocks++) {
        for (unsigned roles = 0; roles <= 2; roles++) {
            rondo_line line = {};
            std::atomic<uint64_t> ran{0}, met{0};
            std::atomic<bool> early{false};
            Launch launch(
                blocks,
                [&](rondo_lane *lane) {
                    ran++;
                    if (lane->block >= blocks || lane->role >= roles)
                        early = true;
                    if (ran == (uint64_t)blocks * roles)
                        Publish(&line, 1); // all are there at the same time
                    else
                        LaneWait(lane, &line, 1);
                    met++;
                },
                roles);
            launch.on_finished = [&] {
                if (met != (uint64_t)blocks * roles || launch.finished() != 0)
                    early = true;
            };
            ASSERT_EQ(launch.On(stream), ncclSuccess);
            ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
            ASSERT_EQ(met, (uint64_t)blocks * roles);
            ASSERT_EQ(launch.finished(), 1);
            ASSERT_FALSE(early);
        }
    }
}

TEST(Engine, OnlyListsWithWorksGetALane)
{
    rondo_block blocks[3] = {{{0, 0}, {0, 1}}, {{0, 0}, {0, 0}}, {{0, 0}, {2, 0}}};
    rondo_kernel_args args = {};
    args.block = blocks;
    args.blocks = 3;
    static std::atomic<int> seen;
    seen = 0;
    rondo_strand_set_kernel(
        [](rondo_lane *lane, const rondo_kernel_args *) { seen += 1 << (lane->block * 2 + lane->role); });
    rondo_launch launch = {&args, 3, [](void *) {}, nullptr};
    Stream stream;
    ASSERT_EQ(Device()->launch(0, stream, &launch), ncclSuccess);
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    EXPECT_EQ(seen, (1 << 1) + (1 << 4));
}

TEST(Engine, StopWakesSleepingLanes)
{
    Stream stream;
    rondo_line never = {};
    std::atomic<int> stopped{0};
    Launch launch(
        5, [&](rondo_lane *lane) { stopped += !LaneWait(lane, &never, 1); }, 2);
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    std::thread stopper([&] {
        usleep(30000);
        launch.Stop();
    });
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    stopper.join();
    EXPECT_EQ(stopped, 10);
    EXPECT_EQ(launch.finished(), 1);
}

TEST(Engine, TheWorkerGoesOnWhenNobodyWaits)
{
    Stream stream;
    for (int pause : {0, 100, 30000}) { // while it naps, and after it fell asleep
        rondo_line line = {};
        Launch launch(2, [&](rondo_lane *lane) { LaneWait(lane, &line, 1); });
        ASSERT_EQ(launch.On(stream), ncclSuccess);
        usleep(pause);
        Publish(&line, 1);
        EXPECT_TRUE(Eventually([&] { return launch.finished() == 1; })) << pause;
        usleep(pause);
    }
}

TEST(Engine, HostFunctionsRunInOrderOffTheCallersBack)
{
    static std::atomic<int> position;
    static std::atomic<bool> may_end;
    position = 0;
    may_end = false;
    Stream stream;
    int after = 0;
    // It waits for something its program does later: so it must run on another thread than this one.
    ASSERT_EQ(Cpu()->host_function(
                  0, stream,
                  [](void *) {
                      while (!may_end)
                          usleep(100);
                      position = 1;
                  },
                  nullptr),
              ncclSuccess);
    Launch launch(1, [&](rondo_lane *) { after = position; });
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    EXPECT_FALSE(IsDone(stream));
    Stream other; // other streams go on meanwhile
    Launch free_launch(1, [](rondo_lane *) {});
    ASSERT_EQ(free_launch.On(other), ncclSuccess);
    ASSERT_EQ(Device()->synchronize(0, other), ncclSuccess);
    may_end = true;
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    EXPECT_EQ(after, 1);
}

TEST(Engine, HostFunctionsRunWhenNobodyWaits)
{
    static std::atomic<int> ran;
    ran = 0;
    Stream stream;
    for (int i = 0; i < 10; i++)
        ASSERT_EQ(Cpu()->host_function(
                      0, stream, [](void *) { ran++; }, nullptr),
                  ncclSuccess);
    EXPECT_TRUE(Eventually([] { return ran == 10; }));
    EXPECT_EQ(Cpu()->host_function(0, stream, nullptr, nullptr), ncclInvalidArgument);
}

TEST(Engine, ABlockedHostFunctionHoldsUpNoOtherStream)
{
    static std::atomic<bool> may_end;
    may_end = false;
    Stream blocked, lanes;
    rondo_line line = {};
    Launch launch(1, [&](rondo_lane *lane) { LaneWait(lane, &line, 1); });
    ASSERT_EQ(launch.On(lanes), ncclSuccess);
    usleep(20000); // the worker has it
    ASSERT_EQ(Cpu()->host_function(
                  0, blocked,
                  [](void *) {
                      while (!may_end)
                          usleep(100);
                  },
                  nullptr),
              ncclSuccess);
    usleep(20000); // and is in the function now
    Publish(&line, 1);
    ASSERT_EQ(Device()->synchronize(0, lanes), ncclSuccess);
    may_end = true;
    ASSERT_EQ(Device()->synchronize(0, blocked), ncclSuccess);
}

TEST(Engine, CallsInsideAHostFunctionAreRefused)
{
    static ncclResult_t results[5];
    static Stream *inside;
    Stream stream;
    inside = &stream;
    ASSERT_EQ(Cpu()->host_function(
                  0, stream,
                  [](void *) {
                      bool done;
                      rondo_kernel_args args = {};
                      rondo_launch launch = {&args, 0, [](void *) {}, nullptr};
                      results[0] = Device()->synchronize(0, *inside);
                      results[1] = Device()->query(0, *inside, &done);
                      results[2] = Device()->launch(0, *inside, &launch);
                      results[3] = Cpu()->device_synchronize(0);
                      results[4] = Cpu()->device_reset(0);
                  },
                  nullptr),
              ncclSuccess);
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    for (ncclResult_t result : results)
        EXPECT_EQ(result, ncclInvalidUsage);
}

TEST(Engine, PassengersTakeOver)
{
    // The first thread drives the stream but waits only for its beginning; the second waits for all of it.
    Stream stream;
    rondo_line first = {}, second = {};
    Launch one(1, [&](rondo_lane *lane) { LaneWait(lane, &first, 1); });
    Launch two(1, [&](rondo_lane *lane) { LaneWait(lane, &second, 1); });
    ASSERT_EQ(one.On(stream), ncclSuccess);
    std::thread driver([&] { EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess); });
    usleep(20000);
    ASSERT_EQ(two.On(stream), ncclSuccess);
    std::vector<std::thread> passengers;
    for (int i = 0; i < 4; i++)
        passengers.emplace_back([&] { EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess); });
    usleep(20000);
    Publish(&first, 1);
    driver.join();
    EXPECT_EQ(one.finished(), 1);
    EXPECT_EQ(two.finished(), 0);
    Publish(&second, 1);
    for (std::thread &passenger : passengers)
        passenger.join();
    EXPECT_EQ(two.finished(), 1);
}

TEST(Engine, ThousandsOfStreams)
{
    constexpr int kStreams = 2000;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Launch>> launches;
    rondo_line line = {};
    int threads = ThreadCount();
    for (int i = 0; i < kStreams; i++) {
        streams.push_back(std::make_unique<Stream>(i % 2));
        launches.push_back(std::make_unique<Launch>(1, [&](rondo_lane *lane) { LaneWait(lane, &line, 1); }));
        ASSERT_EQ(launches[i]->On(*streams[i]), ncclSuccess);
    }
    EXPECT_LE(ThreadCount(), threads + 1);
    Publish(&line, 1);
    for (auto &stream : streams)
        ASSERT_EQ(Device()->synchronize(0, *stream), ncclSuccess);
    for (auto &launch : launches)
        EXPECT_EQ(launch->finished(), 1);
}

TEST(Engine, RandomStreamsThreadsAndEvents)
{
    constexpr int kStreams = 6, kThreads = 4, kSteps = 1500;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < kStreams; i++)
        streams.push_back(std::make_unique<Stream>(i % 2));
    std::atomic<int> ran{0}, made{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++) {
        threads.emplace_back([&, t] {
            unsigned seed = t;
            std::vector<std::unique_ptr<Launch>> launches;
            std::vector<std::unique_ptr<rondo_line>> lines;
            rondo_event *event;
            ASSERT_EQ(Device()->event_create(0, &event), ncclSuccess);
            for (int step = 0; step < kSteps; step++) {
                void *stream = *streams[rand_r(&seed) % kStreams];
                bool done;
                switch (rand_r(&seed) % 8) {
                case 0:
                case 1: { // a pair of lanes that meet
                    lines.push_back(std::make_unique<rondo_line>());
                    rondo_line *line = lines.back().get();
                    launches.push_back(std::make_unique<Launch>(
                        1,
                        [&ran, line](rondo_lane *lane) {
                            if (lane->role == 0)
                                LaneWait(lane, line, 1);
                            else
                                Publish(line, 1);
                            ran++;
                        },
                        2));
                    made += 2;
                    EXPECT_EQ(launches.back()->On(stream), ncclSuccess);
                    break;
                }
                case 2:
                    made++;
                    EXPECT_EQ(Cpu()->host_function(
                                  0, stream, [](void *count) { (*static_cast<std::atomic<int> *>(count))++; },
                                  &ran),
                              ncclSuccess);
                    break;
                case 3:
                    EXPECT_EQ(Device()->event_record(event, 0, stream), ncclSuccess);
                    break;
                case 4:
                    EXPECT_EQ(Device()->stream_wait(0, stream, event), ncclSuccess);
                    break;
                case 5:
                    EXPECT_EQ(Device()->query(0, rand_r(&seed) % 2 ? stream : nullptr, &done), ncclSuccess);
                    break;
                case 6:
                    EXPECT_EQ(rand_r(&seed) % 2 ? Device()->synchronize(0, stream)
                                                : Cpu()->event_synchronize(event),
                              ncclSuccess);
                    break;
                case 7:
                    EXPECT_EQ(Device()->event_record(event, 0, nullptr), ncclSuccess); // legacy
                    break;
                }
            }
            EXPECT_EQ(Cpu()->device_synchronize(0), ncclSuccess);
            for (auto &launch : launches)
                EXPECT_EQ(launch->finished(), 1);
            Device()->event_destroy(event);
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    ASSERT_EQ(Cpu()->device_synchronize(0), ncclSuccess);
    EXPECT_EQ(ran, made);
}

TEST(Engine, WaitLineDrivesAndKeepsItsDeadline)
{
    Stream stream;
    rondo_line line = {}, answer = {};
    bool reached = true;
    Launch launch(1, [&](rondo_lane *lane) {
        LaneWait(lane, &line, 1);
        Publish(&answer, 5);
    });
    ASSERT_EQ(Device()->wait_line(&answer, 5, rondo_clock_ns() + 5000000, &reached), ncclSuccess);
    EXPECT_FALSE(reached);
    ASSERT_EQ(Device()->wait_line(&answer, 5, 0, &reached), ncclSuccess);
    EXPECT_FALSE(reached);
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    Publish(&line, 1);
    ASSERT_EQ(Device()->wait_line(&answer, 5, UINT64_MAX, &reached), ncclSuccess);
    EXPECT_TRUE(reached);
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
}

TEST(Engine, AnIdleProcessUsesNoCpu)
{
    Stream stream;
    rondo_line never = {};
    Launch launch(4, [&](rondo_lane *lane) { LaneWait(lane, &never, 1); });
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    std::thread waits([&] { EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess); });
    EXPECT_LT(SecondsWhenIdle(), 0.010);
    launch.Stop();
    waits.join();
    EXPECT_LT(SecondsWhenIdle(), 0.010);
}

TEST(Engine, ThreadsMayEndWithWorkLeft)
{
    rondo_line line = {};
    Launch launch(1, [&](rondo_lane *lane) { LaneWait(lane, &line, 1); });
    std::thread([&] { EXPECT_EQ(launch.On((void *)2), ncclSuccess); }).join();
    Publish(&line, 1);
    EXPECT_TRUE(Eventually([&] { return launch.finished() == 1; }));
}

// Limits of address space make fibers fail; their launch ends with a fault instead.
TEST(Engine, LackOfMemoryIsAFaultOfTheLaunch)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's own memory does not fit under the limit";
#endif
    EXPECT_EQ(InChild([] {
                  execl("/proc/self/exe", "self", "--gtest_filter=Starved.*",
                        "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
                  return 1;
              }),
              0);
}

// Run by the test above, in a process of its own.
TEST(Starved, DISABLED_Launch)
{
    Stream stream;
    Launch launch(
        96, [](rondo_lane *) {}, 2);
    rondo_switchboard *board = Device()->switchboard();
    ASSERT_NE(board, nullptr);
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ASSERT_EQ(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    rlimit limit = {(rlim_t)pages * 4096 + (2 << 20), RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    ASSERT_EQ(launch.On(stream), ncclSuccess);
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    EXPECT_EQ(launch.finished(), 1);
    EXPECT_EQ(launch.fault()->code, (uint32_t)ncclSystemError);
    limit.rlim_cur = RLIM_INFINITY;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    ASSERT_EQ(launch.On(stream), ncclSuccess); // and it works again
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    EXPECT_EQ(launch.finished(), 2);
}

} // namespace
