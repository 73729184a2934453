// cpu_stream_test.cpp - streams and events: order within a stream, between streams, and what handles are
// worth.
#include "cpu_support.h"

#include "base/error.h"

#include <gtest/gtest.h>

#include <mutex>

namespace
{

void *const kNull = nullptr;
void *const kLegacy = reinterpret_cast<void *>(1);
void *const kPerThread = reinterpret_cast<void *>(2);

// A launch that waits until the test opens it, and one that notes when it ran.
struct Gate {
    rondo_line line = {};
    Launch launch{1, [this](rondo_lane *lane) { LaneWait(lane, &line, 1); }};
    ~Gate()
    {
        Open();
        EXPECT_TRUE(Eventually([this] { return launched == launch.finished(); }));
    }
    void On(void *stream, int device = 0)
    {
        ASSERT_EQ(launch.On(stream, device), ncclSuccess) << rondo_error_last();
        launched++;
    }
    void Open()
    {
        Publish(&line, 1);
    }
    int launched = 0;
};

class Order
{
  public:
    Launch *Note(int what)
    {
        launches_.push_back(std::make_unique<Launch>(1, [this, what](rondo_lane *) {
            std::lock_guard<std::mutex> hold(lock_);
            seen_.push_back(what);
        }));
        return launches_.back().get();
    }
    std::vector<int> seen()
    {
        std::lock_guard<std::mutex> hold(lock_);
        return seen_;
    }

  private:
    std::mutex lock_;
    std::vector<int> seen_;
    std::vector<std::unique_ptr<Launch>> launches_;
};

using List = std::vector<int>;

bool IsDone(void *stream, int device = 0)
{
    bool done = false;
    EXPECT_EQ(Device()->query(device, stream, &done), ncclSuccess) << rondo_error_last();
    return done;
}

TEST(Streams, RunInOrder)
{
    Stream stream;
    Gate gate;
    Order order;
    gate.On(stream);
    List expected;
    for (int i = 0; i < 100; i++) {
        ASSERT_EQ(order.Note(i)->On(stream), ncclSuccess);
        expected.push_back(i);
    }
    EXPECT_FALSE(IsDone(stream));
    EXPECT_EQ(order.seen(), List{});
    gate.Open();
    ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    EXPECT_EQ(order.seen(), expected);
    EXPECT_TRUE(IsDone(stream));
}

TEST(Streams, AnIdleStreamRunsWhatNeedsNoWaitAtOnce)
{
    Stream stream;
    Order order;
    ASSERT_EQ(order.Note(1)->On(stream), ncclSuccess);
    EXPECT_EQ(order.seen(), List{1});
    Launch yields(3, [](rondo_lane *lane) {
        for (int i = 0; i < 10; i++)
            lane->ops->yield(lane);
    });
    ASSERT_EQ(yields.On(stream), ncclSuccess);
    EXPECT_EQ(yields.finished(), 1);
}

TEST(Streams, AreIndependent)
{
    Stream blocked, other;
    Gate gate;
    Order order;
    gate.On(blocked);
    ASSERT_EQ(order.Note(1)->On(other), ncclSuccess);
    ASSERT_EQ(Device()->synchronize(0, other), ncclSuccess);
    EXPECT_EQ(order.seen(), List{1});
    EXPECT_FALSE(IsDone(blocked));
}

// Which of two streams' work waits for the other's: first has a gate, then second gets a launch.
struct Pair {
    int first, second; // 0 null, 1 legacy, 2 per thread, 3 blocking, 4 non-blocking
    bool waits;
};

class LegacyRules : public ::testing::TestWithParam<Pair>
{
};

TEST_P(LegacyRules, SecondWaitsForFirst)
{
    Stream blocking(RONDO_STREAM_BLOCKING), non_blocking(RONDO_STREAM_NON_BLOCKING);
    void *streams[] = {kNull, kLegacy, kPerThread, blocking, non_blocking};
    Gate gate;
    Order order;
    gate.On(streams[GetParam().first]);
    ASSERT_EQ(order.Note(1)->On(streams[GetParam().second]), ncclSuccess);
    EXPECT_EQ(order.seen().empty(), GetParam().waits);
    EXPECT_EQ(IsDone(streams[GetParam().second]), !GetParam().waits);
    gate.Open();
    ASSERT_EQ(Device()->synchronize(0, streams[GetParam().second]), ncclSuccess);
    EXPECT_EQ(order.seen(), List{1});
    if (GetParam().waits) {
        EXPECT_EQ(gate.launch.finished(), 1);
    }
    ASSERT_EQ(Cpu()->device_synchronize(0), ncclSuccess);
}

INSTANTIATE_TEST_SUITE_P(Matrix, LegacyRules,
                         ::testing::Values(Pair{0, 1, true}, Pair{1, 0, true}, Pair{0, 2, true},
                                           Pair{0, 3, true}, Pair{0, 4, false}, Pair{2, 0, true},
                                           Pair{2, 3, false}, Pair{2, 4, false}, Pair{3, 0, true},
                                           Pair{3, 2, false}, Pair{3, 4, false}, Pair{4, 0, false},
                                           Pair{4, 2, false}, Pair{4, 3, false}, Pair{1, 3, true},
                                           Pair{3, 1, true}, Pair{4, 4, true}, Pair{2, 2, true}));

TEST(Legacy, OrdersAcrossAChainOfStreams)
{
    Stream a(RONDO_STREAM_BLOCKING), b(RONDO_STREAM_BLOCKING);
    Gate gate;
    Order order;
    gate.On(a);
    order.Note(1)->On(a);
    order.Note(2)->On(kNull); // after both of a
    order.Note(3)->On(b);     // after the legacy one
    order.Note(4)->On(kNull);
    order.Note(5)->On(a);
    EXPECT_EQ(order.seen(), List{});
    gate.Open();
    ASSERT_EQ(Device()->synchronize(0, a), ncclSuccess);
    EXPECT_EQ(order.seen(), (List{1, 2, 3, 4, 5}));
}

TEST(Legacy, StreamsOfOtherDevicesAreUnordered)
{
    Stream other(RONDO_STREAM_BLOCKING, 1);
    Gate gate;
    Order order;
    gate.On(kNull);
    ASSERT_EQ(order.Note(1)->On(other, 1), ncclSuccess);
    EXPECT_EQ(order.seen(), List{1});
    ASSERT_EQ(order.Note(2)->On(kNull, 1), ncclSuccess);
    EXPECT_EQ(order.seen(), (List{1, 2}));
}

TEST(Legacy, PerThreadStreamsBelongToTheThread)
{
    Gate gate;
    gate.On(kPerThread);
    std::thread([] {
        Order order;
        EXPECT_EQ(order.Note(1)->On(kPerThread), ncclSuccess);
        EXPECT_EQ(order.seen(), List{1});
        Gate left; // work of a thread that ends goes on
        left.On(kPerThread);
        left.Open();
    }).join();
    EXPECT_FALSE(IsDone(kPerThread));
}

TEST(Handles, UnknownAndDestroyedOnesAreRefused)
{
    void *stream;
    bool done;
    int device, priority;
    unsigned flags;
    rondo_event *event;
    ASSERT_EQ(Cpu()->stream_create_with_priority(1, RONDO_STREAM_NON_BLOCKING, -2, &stream), ncclSuccess);
    ASSERT_EQ(Cpu()->stream_info(stream, &device, &flags, &priority), ncclSuccess);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(flags, RONDO_STREAM_NON_BLOCKING);
    EXPECT_EQ(priority, -2);
    device = -1;
    ASSERT_EQ(Device()->stream_device(stream, &device), ncclSuccess);
    EXPECT_EQ(device, 1);
    ASSERT_EQ(Device()->stream_destroy(stream), ncclSuccess);
    ASSERT_EQ(Device()->event_create(0, &event), ncclSuccess);
    Device()->event_destroy(event);
    Stream reuses_the_place;
    Launch launch(1, [](rondo_lane *) {});
    for (void *bad : {stream, (void *)event, (void *)&done, (void *)3, (void *)-1, (void *)0x10}) {
        EXPECT_EQ(launch.On(bad), ncclInvalidArgument) << bad;
        EXPECT_EQ(Device()->query(0, bad, &done), ncclInvalidArgument) << bad;
        EXPECT_EQ(Device()->synchronize(0, bad), ncclInvalidArgument) << bad;
        EXPECT_EQ(Device()->stream_destroy(bad), ncclInvalidArgument) << bad;
        EXPECT_EQ(Cpu()->stream_info(bad, &device, &flags, &priority), ncclInvalidArgument) << bad;
        EXPECT_EQ(Device()->stream_device(bad, &device), ncclInvalidArgument) << bad;
        rondo_event *bad_event = static_cast<rondo_event *>(bad);
        EXPECT_EQ(Device()->event_record(bad_event, 0, nullptr), ncclInvalidArgument) << bad;
        EXPECT_EQ(Device()->event_query(bad_event, &done), ncclInvalidArgument) << bad;
        EXPECT_EQ(Cpu()->event_synchronize(bad_event), ncclInvalidArgument) << bad;
        EXPECT_EQ(Device()->stream_wait(0, nullptr, bad_event), ncclInvalidArgument) << bad;
        Device()->event_destroy(bad_event);
    }
    EXPECT_EQ(Device()->stream_destroy(kNull), ncclInvalidArgument);
    EXPECT_EQ(Device()->stream_destroy(kLegacy), ncclInvalidArgument);
    EXPECT_EQ(Device()->stream_destroy(kPerThread), ncclInvalidArgument);
    EXPECT_EQ(Cpu()->stream_create_with_priority(0, 7, 0, &stream), ncclInvalidArgument);
    EXPECT_EQ(launch.On(reuses_the_place, 1), ncclInvalidArgument) << "a stream of another device";
    EXPECT_EQ(launch.finished(), 0);
}

TEST(Handles, TheLibrarysOwnStreamIsOrderedWithNoOther)
{
    void *stream = nullptr, *unset = nullptr;
    int device = -1;
    for (int bad : {-1, 4096})
        EXPECT_EQ(Device()->stream_create(bad, &unset), ncclInvalidArgument) << bad;
    EXPECT_EQ(unset, nullptr);
    ASSERT_EQ(Device()->stream_create(1, &stream), ncclSuccess);
    ASSERT_EQ(Device()->stream_device(stream, &device), ncclSuccess);
    EXPECT_EQ(device, 1);
    ASSERT_EQ(Device()->stream_destroy(stream), ncclSuccess);

    ASSERT_EQ(Device()->stream_create(0, &stream), ncclSuccess);
    {
        Gate legacy;
        legacy.On(kLegacy); // a blocking stream would wait for it
        Launch launch(1, [](rondo_lane *) {});
        ASSERT_EQ(launch.On(stream), ncclSuccess);
        ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
        EXPECT_EQ(launch.finished(), 1);
        legacy.Open();
    }
    ASSERT_EQ(Device()->synchronize(0, kLegacy), ncclSuccess);
    ASSERT_EQ(Device()->stream_destroy(stream), ncclSuccess);
}

TEST(Handles, ADestroyedStreamStillDrains)
{
    void *stream;
    Gate gate;
    Order order;
    ASSERT_EQ(Cpu()->stream_create_with_priority(0, RONDO_STREAM_NON_BLOCKING, 0, &stream), ncclSuccess);
    gate.On(stream);
    Launch *last = order.Note(1);
    ASSERT_EQ(last->On(stream), ncclSuccess);
    ASSERT_EQ(Device()->stream_destroy(stream), ncclSuccess);
    EXPECT_EQ(order.seen(), List{});
    gate.Open();
    EXPECT_TRUE(Eventually([&] { return last->finished() == 1; }));
    EXPECT_EQ(order.seen(), List{1});
}

class Event
{
  public:
    explicit Event(bool has_timing = true)
    {
        EXPECT_EQ(Cpu()->event_create_timed(0, has_timing, &event_), ncclSuccess);
    }
    ~Event()
    {
        Device()->event_destroy(event_);
    }
    operator rondo_event *() const
    {
        return event_;
    }
    bool IsDone() const
    {
        bool done = false;
        EXPECT_EQ(Device()->event_query(event_, &done), ncclSuccess);
        return done;
    }

  private:
    rondo_event *event_ = nullptr;
};

TEST(Events, OrderOneStreamAfterAnother)
{
    Stream a, b;
    Event event;
    Gate gate;
    Order order;
    gate.On(a);
    order.Note(1)->On(a);
    ASSERT_EQ(Device()->event_record(event, 0, a), ncclSuccess);
    order.Note(9)->On(a);
    ASSERT_EQ(Device()->stream_wait(0, b, event), ncclSuccess);
    order.Note(2)->On(b);
    EXPECT_FALSE(event.IsDone());
    EXPECT_FALSE(IsDone(b));
    gate.Open();
    ASSERT_EQ(Device()->synchronize(0, b), ncclSuccess); // drives a, which b needs
    EXPECT_TRUE(event.IsDone());
    List seen = order.seen();
    EXPECT_EQ(seen[0], 1);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 2), 1);
    ASSERT_EQ(Device()->synchronize(0, a), ncclSuccess);
    EXPECT_EQ(order.seen().size(), 3u);
}

TEST(Events, NeverRecordedIsDone)
{
    Stream stream;
    Event event;
    Order order;
    EXPECT_TRUE(event.IsDone());
    ASSERT_EQ(Device()->stream_wait(0, stream, event), ncclSuccess);
    ASSERT_EQ(Cpu()->event_synchronize(event), ncclSuccess);
    order.Note(1)->On(stream);
    EXPECT_EQ(order.seen(), List{1});
}

TEST(Events, ASecondRecordLeavesEarlierWaitsAlone)
{
    Stream a, b, c;
    Event event;
    Gate first, second;
    Order order;
    first.On(a);
    ASSERT_EQ(Device()->event_record(event, 0, a), ncclSuccess);
    ASSERT_EQ(Device()->stream_wait(0, c, event), ncclSuccess);
    order.Note(1)->On(c);
    second.On(b);
    ASSERT_EQ(Device()->event_record(event, 0, b), ncclSuccess); // replaces
    first.Open();
    ASSERT_EQ(Device()->synchronize(0, c), ncclSuccess);
    EXPECT_EQ(order.seen(), List{1});
    EXPECT_FALSE(event.IsDone());
    second.Open();
    ASSERT_EQ(Cpu()->event_synchronize(event), ncclSuccess);
    EXPECT_TRUE(event.IsDone());
}

TEST(Events, DestroyingOneTakesNothingFromWhoWaits)
{
    Stream a, b;
    Gate gate;
    Order order;
    gate.On(a);
    {
        Event event;
        ASSERT_EQ(Device()->event_record(event, 0, a), ncclSuccess);
        ASSERT_EQ(Device()->stream_wait(0, b, event), ncclSuccess);
    }
    order.Note(1)->On(b);
    EXPECT_EQ(order.seen(), List{});
    gate.Open();
    ASSERT_EQ(Device()->synchronize(0, b), ncclSuccess);
    EXPECT_EQ(order.seen(), List{1});
}

TEST(Events, LongChainsOfWaitingStreams)
{
    constexpr int kStreams = 3000;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Event>> events;
    Gate gate;
    Order order;
    List expected;
    for (int i = 0; i < kStreams; i++) {
        streams.push_back(std::make_unique<Stream>());
        events.push_back(std::make_unique<Event>());
        if (i == 0)
            gate.On(*streams[0]);
        else
            EXPECT_EQ(Device()->stream_wait(0, *streams[i], *events[i - 1]), ncclSuccess);
        order.Note(i)->On(*streams[i]);
        ASSERT_EQ(Device()->event_record(*events[i], 0, *streams[i]), ncclSuccess);
        expected.push_back(i);
    }
    gate.Open();
    ASSERT_EQ(Cpu()->event_synchronize(*events.back()), ncclSuccess);
    EXPECT_EQ(order.seen(), expected);
}

TEST(Events, ElapsedTime)
{
    Stream stream;
    Event start, end, untimed(false), unrecorded;
    float ms = -1;
    Gate gate;
    ASSERT_EQ(Device()->event_record(start, 0, stream), ncclSuccess);
    gate.On(stream);
    ASSERT_EQ(Device()->event_record(end, 0, stream), ncclSuccess);
    ASSERT_EQ(Device()->event_record(untimed, 0, stream), ncclSuccess);
    EXPECT_EQ(Cpu()->event_elapsed(start, end, &ms), ncclInProgress);
    EXPECT_EQ(Cpu()->event_elapsed(start, unrecorded, &ms), ncclInvalidUsage);
    EXPECT_EQ(Cpu()->event_elapsed(start, untimed, &ms), ncclInvalidUsage);
    EXPECT_EQ(ms, -1);
    usleep(20000);
    gate.Open();
    ASSERT_EQ(Cpu()->event_synchronize(end), ncclSuccess);
    ASSERT_EQ(Cpu()->event_elapsed(start, end, &ms), ncclSuccess);
    EXPECT_GE(ms, 19);
    ASSERT_EQ(Cpu()->event_elapsed(end, start, &ms), ncclSuccess);
    EXPECT_LE(ms, -19);
}

TEST(Transfers, CopyAndFillInOrder)
{
    Stream stream;
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{65536}, size_t{65537}, size_t{5000001}}) {
        std::vector<char> from(bytes + 1, 1), to(bytes + 1, 2);
        Gate gate;
        gate.On(stream);
        ASSERT_EQ(Cpu()->fill_async(0, stream, from.data(), 0x107, bytes), ncclSuccess);
        ASSERT_EQ(Cpu()->copy_async(0, stream, to.data(), from.data(), bytes), ncclSuccess);
        EXPECT_EQ(to[0], 2);
        gate.Open();
        ASSERT_EQ(Device()->synchronize(0, stream), ncclSuccess);
        EXPECT_EQ(std::count(to.begin(), to.end(), 7), (long)bytes);
        EXPECT_EQ(to[bytes], 2);
        EXPECT_EQ(from[bytes], 1);
    }
}

TEST(Transfers, NullIsNoMemory)
{
    Stream stream;
    char byte = 1;
    EXPECT_EQ(Cpu()->copy_async(0, stream, nullptr, &byte, 1), ncclInvalidArgument);
    EXPECT_EQ(Cpu()->copy_async(0, stream, &byte, nullptr, 1), ncclInvalidArgument);
    EXPECT_EQ(Cpu()->fill_async(0, stream, nullptr, 0, 1), ncclInvalidArgument);
}

// memcpy and memset must not get NULL even for no bytes, so the sanitizer looks here: on an idle stream, and behind
// work that is still queued.
TEST(Transfers, NoBytesNeedNoMemory)
{
    Stream stream;
    char byte = 1;
    for (bool is_queued : {false, true}) {
        Gate gate;
        if (is_queued)
            gate.On(stream);
        EXPECT_EQ(Cpu()->copy_async(0, stream, nullptr, nullptr, 0), ncclSuccess);
        EXPECT_EQ(Cpu()->copy_async(0, stream, &byte, nullptr, 0), ncclSuccess);
        EXPECT_EQ(Cpu()->copy_async(0, stream, nullptr, &byte, 0), ncclSuccess);
        EXPECT_EQ(Cpu()->fill_async(0, stream, nullptr, 0, 0), ncclSuccess);
        if (is_queued)
            gate.Open();
        EXPECT_EQ(Device()->synchronize(0, stream), ncclSuccess);
    }
}

TEST(Transfers, SmallOnesOnAnIdleStreamAreDoneAtOnce)
{
    Stream stream;
    std::vector<char> from(65536, 3), to(65536, 4);
    ASSERT_EQ(Cpu()->copy_async(0, stream, to.data(), from.data(), to.size()), ncclSuccess);
    EXPECT_EQ(to, from);
}

TEST(Transfers, LargeOnesAreDoneWithoutAnybodyWaiting)
{
    Stream stream;
    std::vector<char> from(20 << 20, 3), to(20 << 20, 4);
    ASSERT_EQ(Cpu()->copy_async(0, stream, to.data(), from.data(), to.size()), ncclSuccess);
    Event event;
    ASSERT_EQ(Device()->event_record(event, 0, stream), ncclSuccess);
    EXPECT_TRUE(Eventually([&] { return event.IsDone(); }));
    EXPECT_EQ(to, from);
}

TEST(Devices, SynchronizeWaitsForAllStreams)
{
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Launch>> launches;
    rondo_line line = {};
    for (int i = 0; i < 20; i++) {
        streams.push_back(std::make_unique<Stream>(i % 2));
        launches.push_back(std::make_unique<Launch>(2, [&](rondo_lane *lane) { LaneWait(lane, &line, 1); }));
        ASSERT_EQ(launches[i]->On(*streams[i]), ncclSuccess);
    }
    std::thread opener([&] {
        usleep(20000);
        Publish(&line, 1);
    });
    ASSERT_EQ(Cpu()->device_synchronize(0), ncclSuccess);
    for (auto &launch : launches)
        EXPECT_EQ(launch->finished(), 1);
    opener.join();
}

TEST(Devices, ResetForgetsStreamsAndEndsTheWorker)
{
    int before = ThreadCount();
    void *stream;
    bool done;
    ASSERT_EQ(Cpu()->device_reset(0), ncclSuccess);
    before = std::min(before, ThreadCount());
    ASSERT_EQ(Cpu()->stream_create_with_priority(0, 0, 0, &stream), ncclSuccess);
    {
        Gate gate;
        gate.On(stream);
        gate.Open();
    }
    ASSERT_EQ(Cpu()->device_reset(0), ncclSuccess);
    EXPECT_EQ(ThreadCount(), before);
    EXPECT_EQ(Device()->query(0, stream, &done), ncclInvalidArgument);
    Launch launch(4, [](rondo_lane *) {}); // and it can all be used again
    ASSERT_EQ(launch.On(kNull), ncclSuccess);
    ASSERT_EQ(Device()->synchronize(0, kNull), ncclSuccess);
    EXPECT_EQ(launch.finished(), 1);
}

TEST(Devices, CaptureIsNeverOn)
{
    uint64_t id = 7;
    ASSERT_EQ(Device()->capture_state(0, nullptr, &id), ncclSuccess);
    EXPECT_EQ(id, 0u);
    EXPECT_EQ(Device()->capture_state(0, (void *)3, &id), ncclInvalidArgument);
}

} // namespace
