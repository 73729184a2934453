// cpu_select_test.cpp - which row serves a process, and the row of a process without a CUDA runtime. Each
// case is a process.
#include "cpu_support.h"

#include "base/error.h"

#include <atomic>
#include <dlfcn.h>
#include <gtest/gtest.h>

namespace
{

const char kDriver[] = RONDO_FAKE_DRIVER; // paths of fake_driver.c's two forms
const char kHostcuda[] = RONDO_FAKE_HOSTCUDA;

const char *Clear(const char *device)
{
    for (const char *name : {"RONDO_DEVICE", "FAKE_ABI", "FAKE_GPUS"})
        unsetenv(name);
    if (device)
        setenv("RONDO_DEVICE", device, 1);
    return device;
}

// 0: this name and this way of completing calls were chosen.
int Expect(const char *name, bool is_synchronous)
{
    const rondo_device_ops *ops = nullptr, *again = nullptr;
    if (rondo_device_select(&ops) != ncclSuccess || rondo_device_select(&again) != ncclSuccess)
        return 1;
    return ops == again && strcmp(ops->name, name) == 0 && ops->is_synchronous == is_synchronous ? 0 : 2;
}

// 0: refused, every time, with texts that contain the words.
int ExpectRefusal(std::initializer_list<const char *> words)
{
    for (int i = 0; i < 2; i++) {
        const rondo_device_ops *ops = nullptr;
        if (rondo_device_select(&ops) != ncclInvalidUsage || ops)
            return 1;
        for (const char *word : words) {
            if (!strstr(rondo_error_last(), word))
                return 2;
        }
    }
    return 0;
}

TEST(Select, RowsByName)
{
    EXPECT_EQ(InChild([] { return Clear("cpu"), Expect("cpu", true); }), 0);
    EXPECT_EQ(InChild([] {
                  return Clear("cuda"), ExpectRefusal({"RONDO_DEVICE=cuda", "RONDO_DEVICE=cpu"});
              }),
              0);
    EXPECT_EQ(InChild([] { return Clear("tpu"), ExpectRefusal({"RONDO_DEVICE=tpu"}); }), 0);
}

TEST(Select, ARealDriverIsRefusedUnlessTheCpuIsAskedFor)
{
    auto load = [] { return dlopen(kDriver, RTLD_NOW | RTLD_LOCAL) != nullptr; };
    EXPECT_EQ(InChild([&] {
                  return Clear(nullptr), setenv("FAKE_GPUS", "2", 1),
                         load() ? ExpectRefusal({"2 devices"}) : 9;
              }),
              0);
    EXPECT_EQ(
        InChild([&] { return Clear("cpu"), setenv("FAKE_GPUS", "2", 1), load() ? Expect("cpu", true) : 9; }),
        0);
    EXPECT_EQ(InChild([&] {
                  return Clear(nullptr), setenv("FAKE_GPUS", "0", 1), load() ? Expect("cpu", true) : 9;
              }),
              0);
    EXPECT_EQ(InChild([&] { return Clear(nullptr), load() ? Expect("cpu", true) : 9; }), 0); // cuInit fails
}

TEST(Select, HostcudasInstanceIsUsedWhenItIsThere)
{
    std::string own = "has " + std::to_string(RONDO_DEVICE_ABI);
    for (int visibility : {RTLD_LOCAL, RTLD_GLOBAL}) {
        auto load = [&] { return dlopen(kHostcuda, RTLD_NOW | visibility) != nullptr; };
        EXPECT_EQ(InChild([&] { return Clear(nullptr), load() ? Expect("fake", false) : 9; }), 0);
        EXPECT_EQ(InChild([&] { return Clear("cpu"), load() ? Expect("fake", false) : 9; }), 0);
        EXPECT_EQ(InChild([&] {
                      Clear(nullptr);
                      if (!load() || Expect("fake", false) != 0)
                          return 9;
                      return strcmp(rondo_error_last(), "a text of hostcuda's"); // its texts arrive here
                  }),
                  0);
        EXPECT_EQ(InChild([&] {
                      return Clear(nullptr), setenv("FAKE_ABI", "77", 1),
                             load() ? ExpectRefusal({"ABI 77", own.c_str()}) : 9;
                  }),
                  0);
    }
}

// From here on: the row of a process without a CUDA runtime.
const rondo_device_ops *Sole()
{
    const rondo_device_ops *ops = nullptr;
    Clear("cpu");
    if (rondo_device_select(&ops) != ncclSuccess)
        abort();
    return ops;
}

TEST(Sole, RanksOfOneThreadRunSideBySideOnStreamNull)
{
    EXPECT_EQ(InChild([] {
                  const rondo_device_ops *ops = Sole();
                  rondo_line lines[2] = {};
                  std::atomic<int> ended{0}; // a worker may drive either launch
                  auto body = [&](int rank) {
                      return [&, rank](rondo_lane *lane) {
                          Publish(&lines[1 - rank], 1);
                          LaneWait(lane, &lines[rank], 1);
                          ended++;
                      };
                  };
                  Launch one(1, body(0)), two(1, body(1));
                  Launch *both[] = {&one, &two};
                  for (Launch *launch : both) {
                      rondo_launch what = launch->Describe();
                      if (ops->launch(0, nullptr, &what) != ncclSuccess)
                          return 1;
                  }
                  bool done = false;
                  if (ops->synchronize(0, nullptr) != ncclSuccess ||
                      ops->query(0, nullptr, &done) != ncclSuccess || !done)
                      return 2;
                  return one.finished() == 1 && two.finished() == 1 && ended == 2 ? 0 : 3;
              }),
              0);
}

TEST(Sole, LaunchesOfOneRankStayInOrder)
{
    EXPECT_EQ(InChild([] {
                  const rondo_device_ops *ops = Sole();
                  rondo_line line = {};
                  std::vector<int> order;
                  Launch first(1, [&](rondo_lane *lane) {
                      LaneWait(lane, &line, 1);
                      order.push_back(1);
                  });
                  Launch second(1, [&](rondo_lane *) { order.push_back(2); });
                  Launch other(1, [&](rondo_lane *) { order.push_back(3); });
                  rondo_launch whats[] = {first.Describe(), second.Describe(), other.Describe()};
                  rondo_kernel_args args = *whats[1].args; // the second is of the first one's rank
                  args.page = first.page();
                  whats[1].args = &args;
                  bool done = true;
                  for (rondo_launch &what : whats) {
                      if (ops->launch(0, nullptr, &what) != ncclSuccess)
                          return 1;
                  }
                  if (ops->query(0, nullptr, &done) != ncclSuccess || done)
                      return 2;
                  Publish(&line, 1);
                  if (ops->synchronize(0, nullptr) != ncclSuccess)
                      return 3;
                  return order == std::vector<int>{3, 1, 2} ? 0 : 4;
              }),
              0);
}

TEST(Sole, StreamsAreRefusedWithAReason)
{
    EXPECT_EQ(InChild([] {
                  const rondo_device_ops *ops = Sole();
                  void *stream = reinterpret_cast<void *>(0x1000);
                  bool done;
                  uint64_t id = 1;
                  int current = -1, owner = -2;
                  rondo_event *event;
                  Launch launch(1, [](rondo_lane *) {});
                  rondo_launch what = launch.Describe();
                  if (ops->event_create(0, &event) != ncclSuccess)
                      return 1;
                  for (ncclResult_t result :
                       {ops->launch(0, stream, &what), ops->synchronize(0, stream),
                        ops->query(0, stream, &done), ops->event_record(event, 0, stream),
                        ops->stream_wait(0, stream, event), ops->capture_state(0, stream, &id),
                        ops->stream_device(stream, &owner)}) {
                      if (result != ncclInvalidArgument || !strstr(rondo_error_last(), "NULL"))
                          return 2;
                  }
                  if (ops->stream_destroy(stream) != ncclInvalidArgument)
                      return 6;
                  if (ops->stream_create(0, &stream) != ncclInvalidUsage ||
                      !strstr(rondo_error_last(), "lib/hostcuda"))
                      return 7;
                  if (ops->get_current(&current) != ncclSuccess ||
                      ops->stream_device(nullptr, &owner) != ncclSuccess || owner != current)
                      return 8;
                  if (ops->event_record(event, 0, nullptr) != ncclSuccess ||
                      ops->event_query(event, &done) != ncclSuccess || !done ||
                      ops->stream_wait(0, nullptr, event) != ncclSuccess ||
                      ops->capture_state(0, nullptr, &id) != ncclSuccess || id != 0)
                      return 3;
                  ops->event_destroy(event);
                  for (int device : {-1, 4096}) {
                      if (ops->launch(device, nullptr, &what) != ncclInvalidArgument ||
                          ops->synchronize(device, nullptr) != ncclInvalidArgument ||
                          ops->query(device, nullptr, &done) != ncclInvalidArgument)
                          return 4;
                  }
                  return launch.finished() == 0 ? 0 : 5;
              }),
              0);
}

} // namespace
