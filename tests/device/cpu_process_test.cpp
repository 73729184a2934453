// cpu_process_test.cpp - several processes: shared memory, doorbells, fork.
//
// The process that runs these tests never uses the device itself: a child of one that has is refused, which
// is one of the things tested.
#include "cpu_support.h"

#include "base/error.h"
#include "base/host.h"

#include <gtest/gtest.h>

namespace
{

// What the two processes tell each other.
struct Offer {
    rondo_memory_name name;
    char text[16];
};

TEST(Processes, AnotherProcessReachesAllocationsByOffset)
{
    EXPECT_TRUE(InTwoChildren([](int which, int socket) {
        Offer mine = {}, theirs = {};
        void *pointer, *base;
        int fd;
        if (Device()->allocate(which, 5000, &pointer) != ncclSuccess ||
            Device()->allocate(which, 5000, &pointer) != ncclSuccess)
            return 1;
        char *at = static_cast<char *>(pointer);
        snprintf(at + 100, 16, "from %d", which);
        if (Device()->name_memory(at + 4999, &mine.name) != ncclSuccess || mine.name.bytes != 5000 ||
            mine.name.process != rondo_process_nonce() || mine.name.device != which)
            return 2;
        if (Device()->export_arena(which, &fd) != ncclSuccess ||
            write(socket, &mine, sizeof(mine)) != sizeof(mine))
            return 3;
        SendFd(socket, fd);
        if (read(socket, &theirs, sizeof(theirs)) != sizeof(theirs) ||
            theirs.name.process == mine.name.process)
            return 4;
        if (Device()->map_arena(ReceiveFd(socket), theirs.name.arena_bytes, &base) != ncclSuccess)
            return 5;
        char *there = static_cast<char *>(base) + theirs.name.offset;
        if (strcmp(there + 100, which == 0 ? "from 1" : "from 0") != 0)
            return 6;
        __atomic_store_n(there, 'x', __ATOMIC_RELEASE); // and what is written there arrives here
        if (!Eventually([&] { return __atomic_load_n(at, __ATOMIC_ACQUIRE) == 'x'; }))
            return 7;
        return Device()->unmap_arena(base, theirs.name.arena_bytes) == ncclSuccess ? 0 : 8;
    }));
}

// A word that carries its own flag, whose waiters are at the line.
uint32_t *FlagBeside(rondo_line *line)
{
    return (uint32_t *)line->pad;
}

// What is waited for: the lines' values, or flags.
enum class By { VALUE, FLAG };

void Signal(By by, rondo_line *line, int i, rondo_switchboard *board)
{
    if (by == By::VALUE)
        rondo_line_publish(line, i, board);
    else
        StoreFlag(line, FlagBeside(line), i, board);
}

bool Await(By by, rondo_lane *lane, rondo_line *line, int i)
{
    return by == By::VALUE ? LaneWait(lane, line, i) : LaneWaitFlag(lane, line, FlagBeside(line), i);
}

// Line `which` is polled by process `which`.
int PingPong(By by, Shared<rondo_line> &lines, int which, int socket, int count, uint64_t pause_every)
{
    rondo_switchboard *board = SwapBoards(socket);
    Stream stream;
    Launch launch(1, [&](rondo_lane *lane) {
        for (int i = 1; i <= count; i++) {
            if (which == 0)
                Signal(by, &lines[1], i, board);
            if (!Await(by, lane, &lines[which], i))
                return;
            if (pause_every != 0 && i % pause_every == 0) // long enough for the other side to fall asleep
                usleep(300);
            if (which == 1)
                Signal(by, &lines[0], i, board);
        }
    });
    if (launch.On(stream) != ncclSuccess || Device()->synchronize(0, stream) != ncclSuccess)
        return 1;
    return launch.finished() == 1 && Device()->unmap_switchboard(board) == ncclSuccess ? 0 : 2;
}

class Wakes : public testing::TestWithParam<By>
{
};

INSTANTIATE_TEST_SUITE_P(Processes, Wakes, testing::Values(By::VALUE, By::FLAG),
                         [](const testing::TestParamInfo<By> &by) {
                             return by.param == By::VALUE ? "Value" : "Flag";
                         });

TEST_P(Wakes, NoneIsLost)
{
    Shared<rondo_line> lines(2);
    EXPECT_TRUE(InTwoChildren(
        [&](int which, int socket) { return PingPong(GetParam(), lines, which, socket, 20000, 0); }));
}

TEST_P(Wakes, NoneIsLostWhenEveryWaitSleeps)
{
    Shared<rondo_line> lines(2);
    EXPECT_TRUE(InTwoChildren([&](int which, int socket) {
        setenv("RONDO_SPIN_NS", "0", 1);
        return PingPong(GetParam(), lines, which, socket, 10000, 0);
    }));
}

TEST_P(Wakes, ASleepingPeerIsWoken)
{
    Shared<rondo_line> lines(2);
    EXPECT_TRUE(InTwoChildren(
        [&](int which, int socket) { return PingPong(GetParam(), lines, which, socket, 300, 10); }));
}

TEST(Processes, AStopOfAnotherProcessWakesSleepers)
{
    Shared<rondo_rank_page> pages(2);
    Shared<rondo_line> never(2);
    EXPECT_TRUE(InTwoChildren([&](int which, int socket) {
        rondo_switchboard *board = SwapBoards(socket);
        if (which == 1) {
            usleep(50000);
            rondo_line_publish(&pages[0].stop, 5, board);
            char byte;
            return read(socket, &byte, 1) == 1 ? 0 : 1;
        }
        bool reached[2] = {true, true};
        rondo_kernel_args args = {};
        rondo_block block = {{0, 0}, {1, 1}};
        args.blocks = 1;
        args.block = &block;
        args.page = &pages[0];
        static Shared<rondo_line> *line;
        static bool *result;
        line = &never;
        result = reached;
        rondo_strand_set_kernel([](rondo_lane *lane, const rondo_kernel_args *) {
            rondo_line *own = &(*line)[lane->role];
            result[lane->role] = lane->role == 0 ? lane->ops->wait(lane, own, 1)
                                                 : lane->ops->wait_flag(lane, own, FlagBeside(own), 1);
        });
        rondo_launch launch = {&args, 1, [](void *) {}, nullptr};
        Stream stream;
        if (Device()->launch(0, stream, &launch) != ncclSuccess ||
            Device()->synchronize(0, stream) != ncclSuccess)
            return 1;
        return !reached[0] && !reached[1] && write(socket, "x", 1) == 1 ? 0 : 2;
    }));
}

// Every call in a child of a process that had used the device fails with a text; none touches what the parent
// has.
int UseAfterFork(void *stream, void *memory, rondo_event *event)
{
    void *pointer;
    bool done;
    int device, fd;
    rondo_memory_name name;
    rondo_pointer_info info;
    rondo_kernel_args args = {};
    rondo_launch launch = {&args, 0, [](void *) {}, nullptr};
    uint64_t left, total;
    ncclResult_t results[] = {Device()->allocate(0, 8, &pointer),
                              Device()->release(memory),
                              Device()->name_memory(memory, &name),
                              Device()->export_arena(0, &fd),
                              Device()->export_switchboard(&fd),
                              Device()->query_pointer(memory, &info),
                              Device()->launch(0, stream, &launch),
                              Device()->synchronize(0, stream),
                              Device()->query(0, stream, &done),
                              Device()->event_record(event, 0, stream),
                              Device()->event_query(event, &done),
                              Device()->stream_wait(0, stream, event),
                              Device()->get_current(&device),
                              Device()->stream_create(0, &pointer),
                              Device()->stream_device(stream, &device),
                              Device()->stream_destroy(stream),
                              Cpu()->stream_create_with_priority(0, 0, 0, &pointer),
                              Cpu()->device_synchronize(0),
                              Cpu()->device_reset(0),
                              Cpu()->memory_info(0, &left, &total),
                              Cpu()->host_allocate(8, &pointer),
                              Cpu()->event_synchronize(event)};
    Device()->event_destroy(event);
    if (Device()->switchboard())
        return 100;
    int index = 0;
    for (ncclResult_t result : results) {
        index++;
        if (result != ncclUnhandledCudaError || !strstr(rondo_error_last(), "fork"))
            return index;
    }
    return 0;
}

TEST(Processes, AForkedChildIsRefusedAndHarmless)
{
    EXPECT_EQ(InChild([] {
                  void *memory;
                  rondo_event *event;
                  Stream stream;
                  rondo_line line = {};
                  Launch launch(2, [&](rondo_lane *lane) { LaneWait(lane, &line, 1); });
                  if (Device()->allocate(0, 4096, &memory) != ncclSuccess ||
                      Device()->event_create(0, &event) != ncclSuccess || launch.On(stream) != ncclSuccess)
                      return 101;
                  *static_cast<int *>(memory) = 42;
                  pid_t child = fork();
                  if (child == 0) // with its destructors
                      exit(UseAfterFork(stream, memory, event));
                  int status;
                  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
                      return WIFEXITED(status) ? WEXITSTATUS(status) : 102;
                  Publish(&line, 1);
                  if (Device()->synchronize(0, stream) != ncclSuccess || launch.finished() != 1)
                      return 103;
                  return *static_cast<int *>(memory) == 42 && Device()->release(memory) == ncclSuccess ? 0
                                                                                                       : 104;
              }),
              0);
}

TEST(Processes, AChildForkedBeforeTheFirstUseMayUseIt)
{
    EXPECT_EQ(InChild([] {
                  Stream stream;
                  Launch launch(1, [](rondo_lane *) {});
                  return launch.On(stream) == ncclSuccess && Device()->synchronize(0, stream) == ncclSuccess
                             ? 0
                             : 1;
              }),
              0);
}

TEST(Processes, ExitDoesNotHangOnWorkThatNeverEnds)
{
    EXPECT_EQ(InChild([] {
                  static rondo_line never;
                  static Launch launch(8, [](rondo_lane *lane) { LaneWait(lane, &never, 1); });
                  static Stream stream;
                  if (launch.On(stream) != ncclSuccess)
                      exit(1);
                  usleep(20000); // the worker has it now
                  exit(launch.finished());
                  return 2;
              }),
              0);
}

} // namespace
