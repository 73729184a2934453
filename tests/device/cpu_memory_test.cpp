// cpu_memory_test.cpp - device memory: allocations, what comes back to the system, and sharing with another
// process.
#include "cpu_support.h"

#include "base/error.h"
#include "base/host.h"

extern "C" {
#include "cpu/arena.h"
}

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <map>
#include <random>

namespace
{

constexpr uint64_t kCapacity = 64 << 20;

TEST(Sealed, ALimitOfFileSizesIsAnErrorNotASignal)
{
    rlimit usual{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
    rlimit small = usual;
    small.rlim_cur = 100 << 10;
    int fd = -1;
    void *base = nullptr;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    ncclResult_t rc = rondo_sealed_create("device memory", kCapacity, &fd, &base);
    setrlimit(RLIMIT_FSIZE, &usual);
    EXPECT_EQ(rc, ncclSystemError);
    EXPECT_NE(std::string(rondo_error_last()).find("RLIMIT_FSIZE is 102400 bytes, raise it (ulimit -f)"),
              std::string::npos)
        << rondo_error_last();
}

// A process with a capacity of its own: parameters are read once.
class Memory : public ::testing::Test
{
  protected:
    static void SetUpTestSuite()
    {
        setenv("RONDO_CPU_DEVICE_MEMORY", "67108864", 1);
        setenv("RONDO_CPU_DEVICES", "3", 1);
        unsetenv("CUDA_VISIBLE_DEVICES");
    }

    static uint64_t Blocks()
    {
        struct stat status = {};
        int fd = -1;
        EXPECT_EQ(Device()->export_arena(0, &fd), ncclSuccess);
        EXPECT_EQ(fstat(fd, &status), 0);
        close(fd);
        return (uint64_t)status.st_blocks * 512;
    }

    static char *Allocate(size_t bytes, int device = 0)
    {
        void *pointer = nullptr;
        EXPECT_EQ(Device()->allocate(device, bytes, &pointer), ncclSuccess) << rondo_error_last();
        return static_cast<char *>(pointer);
    }
};

TEST_F(Memory, RandomUseKeepsAllocationsApart)
{
    std::mt19937 random(11);
    std::map<char *, std::pair<size_t, unsigned char>> live;

    for (int i = 0; i < 3000; i++) {
        if (live.size() < 60 && random() % 2) {
            size_t bytes = random() % 8 ? random() % 9000 + 1 : random() % 500000 + 1;
            char *at = Allocate(bytes);
            ASSERT_EQ((uintptr_t)at % 512, 0u);
            for (size_t k = 0; k < bytes; k++)
                ASSERT_EQ(at[k], 0) << "not zero at byte " << k << " of " << bytes;
            auto next = live.lower_bound(at);
            if (next != live.end()) {
                ASSERT_LE(at + bytes, next->first);
            }
            if (next != live.begin()) {
                ASSERT_LE(std::prev(next)->first + std::prev(next)->second.first, at);
            }
            unsigned char fill = random() % 255 + 1;
            memset(at, fill, bytes);
            live[at] = {bytes, fill};
        } else if (!live.empty()) {
            auto victim = std::next(live.begin(), random() % live.size());
            for (size_t k = 0; k < victim->second.first; k++)
                ASSERT_EQ((unsigned char)victim->first[k], victim->second.second);
            rondo_pointer_info info;
            ASSERT_EQ(Device()->query_pointer(victim->first + random() % victim->second.first, &info),
                      ncclSuccess);
            ASSERT_EQ(info.kind, RONDO_MEMORY_DEVICE);
            ASSERT_EQ(info.base, victim->first);
            ASSERT_EQ(info.bytes, victim->second.first);
            ASSERT_EQ(Device()->release(victim->first), ncclSuccess);
            live.erase(victim);
        }
    }
    for (auto &entry : live)
        ASSERT_EQ(Device()->release(entry.first), ncclSuccess);
    EXPECT_EQ(Blocks(), 0u) << "released memory did not go back to the system";
}

TEST_F(Memory, UntouchedMemoryCostsNothing)
{
    char *at = Allocate(32 << 20);
    uint64_t before = Blocks();
    at[5 << 20] = 1;
    EXPECT_LE(Blocks() - before, 2u << 20); // one page, or a huge one where the system uses those
    EXPECT_EQ(Device()->release(at), ncclSuccess);
}

TEST_F(Memory, OverCapacityIsRefusedWithBothFigures)
{
    void *pointer = reinterpret_cast<void *>(1);
    EXPECT_EQ(Device()->allocate(0, kCapacity + 1, &pointer), ncclUnhandledCudaError);
    EXPECT_NE(strstr(rondo_error_last(), "67108865"), nullptr) << rondo_error_last();
    EXPECT_NE(strstr(rondo_error_last(), "67108864"), nullptr) << rondo_error_last();
    EXPECT_EQ(Device()->allocate(0, SIZE_MAX, &pointer), ncclUnhandledCudaError);
    EXPECT_EQ(pointer, reinterpret_cast<void *>(1));
    char *all = Allocate(kCapacity);
    EXPECT_EQ(Device()->allocate(0, 1, &pointer), ncclUnhandledCudaError);
    char *other = Allocate(1, 1); // devices have memory of their own
    uint64_t left = 1, total = 0;
    EXPECT_EQ(Cpu()->memory_info(0, &left, &total), ncclSuccess);
    EXPECT_EQ(left, 0u);
    EXPECT_EQ(total, kCapacity);
    EXPECT_EQ(Device()->release(all), ncclSuccess);
    EXPECT_EQ(Device()->release(other), ncclSuccess);
}

TEST_F(Memory, ReleaseRefusesWhatIsNoAllocation)
{
    char *at = Allocate(1000), local;
    EXPECT_EQ(Device()->release(nullptr), ncclSuccess);
    EXPECT_EQ(Device()->release(&local), ncclInvalidArgument);
    EXPECT_EQ(Device()->release(at + 1), ncclInvalidArgument);
    EXPECT_EQ(Device()->release(at), ncclSuccess);
    EXPECT_EQ(Device()->release(at), ncclInvalidArgument);
}

TEST_F(Memory, SizeZeroIsNull)
{
    void *pointer = reinterpret_cast<void *>(1);
    EXPECT_EQ(Device()->allocate(0, 0, &pointer), ncclSuccess);
    EXPECT_EQ(pointer, nullptr);
    EXPECT_EQ(Cpu()->host_allocate(0, &pointer), ncclSuccess);
    EXPECT_EQ(pointer, nullptr);
}

TEST_F(Memory, UnknownDevicesAreRefused)
{
    void *pointer;
    int fd;
    for (int device : {-1, 3, 1024, INT32_MAX, INT32_MIN}) {
        EXPECT_EQ(Device()->allocate(device, 8, &pointer), ncclInvalidArgument);
        EXPECT_EQ(Device()->export_arena(device, &fd), ncclInvalidArgument);
        EXPECT_EQ(Device()->set_current(device), ncclInvalidArgument);
        EXPECT_EQ(Cpu()->device_synchronize(device), ncclInvalidArgument);
        EXPECT_EQ(Cpu()->device_reset(device), ncclInvalidArgument);
    }
}

TEST_F(Memory, HostMemoryIsKnownAsSuch)
{
    void *pointer;
    rondo_pointer_info info;
    ASSERT_EQ(Cpu()->host_allocate(100, &pointer), ncclSuccess);
    EXPECT_EQ((uintptr_t)pointer % 4096, 0u);
    ASSERT_EQ(Device()->query_pointer(static_cast<char *>(pointer) + 99, &info), ncclSuccess);
    EXPECT_EQ(info.kind, RONDO_MEMORY_HOST);
    EXPECT_EQ(info.base, pointer);
    EXPECT_EQ(info.bytes, 100u);
    EXPECT_EQ(Device()->release(pointer), ncclInvalidArgument);
    EXPECT_EQ(Cpu()->host_release(static_cast<char *>(pointer) + 1), ncclInvalidArgument);
    EXPECT_EQ(Cpu()->host_release(pointer), ncclSuccess);
    ASSERT_EQ(Device()->query_pointer(&info, &info), ncclSuccess);
    EXPECT_EQ(info.kind, RONDO_MEMORY_UNKNOWN);
}

TEST_F(Memory, ForgedDescriptorsAreRefused)
{
    void *base = nullptr;
    rondo_switchboard *board = nullptr;
    int arena, plain = memfd_create("plain", MFD_ALLOW_SEALING), zero = open("/dev/zero", O_RDWR), pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    ASSERT_EQ(ftruncate(plain, kCapacity), 0);
    ASSERT_EQ(Device()->export_arena(0, &arena), ncclSuccess);
    for (int fd : {plain, zero, pipes[0], -1, 9999}) {
        EXPECT_EQ(Device()->map_arena(fd, kCapacity, &base), ncclInvalidArgument) << fd;
        EXPECT_EQ(Device()->map_switchboard(fd, &board), ncclInvalidArgument) << fd;
    }
    ASSERT_EQ(fcntl(plain, F_ADD_SEALS, F_SEAL_SHRINK), 0); // not all of them
    EXPECT_EQ(Device()->map_arena(plain, kCapacity, &base), ncclInvalidArgument);
    EXPECT_EQ(Device()->map_arena(arena, kCapacity + 4096, &base), ncclInvalidArgument);
    EXPECT_EQ(Device()->map_arena(arena, 0, &base), ncclInvalidArgument);
    EXPECT_EQ(Device()->map_switchboard(arena, &board), ncclInvalidArgument); // sealed, but of another size
    EXPECT_EQ(base, nullptr);
    EXPECT_EQ(board, nullptr);
    EXPECT_NE(ftruncate(arena, 0), 0) << "an arena could be shrunk";
    EXPECT_NE(fcntl(arena, F_ADD_SEALS, F_SEAL_WRITE), 0) << "an arena could be sealed further";
    for (int fd : {arena, plain, zero, pipes[0], pipes[1]})
        close(fd);
}

TEST_F(Memory, ResetReleasesEverythingOfOneDevice)
{
    char *here = Allocate(100000), *there = Allocate(100000, 1);
    memset(here, 1, 100000);
    memset(there, 1, 100000);
    EXPECT_EQ(Cpu()->device_reset(0), ncclSuccess);
    EXPECT_EQ(Blocks(), 0u);
    EXPECT_EQ(Device()->release(here), ncclInvalidArgument);
    EXPECT_EQ(there[99999], 1);
    EXPECT_EQ(Device()->release(there), ncclSuccess);
}

TEST_F(Memory, ResetSparesWhatIsLasting)
{
    constexpr size_t kBytes = 10000;
    std::vector<char *> lasting;
    for (int i = 0; i < 5; i++) { // between allocations that go, sharing pages with them
        void *pointer = nullptr;
        Allocate(700);
        ASSERT_EQ(Device()->allocate_lasting(0, kBytes, &pointer), ncclSuccess);
        memset(pointer, i + 1, kBytes);
        lasting.push_back(static_cast<char *>(pointer));
        Allocate(kBytes);
    }
    ASSERT_EQ(Cpu()->device_reset(0), ncclSuccess);
    for (int i = 0; i < 20; i++)
        memset(Allocate(kBytes), 99, kBytes);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(std::count(lasting[i], lasting[i] + kBytes, i + 1), static_cast<ptrdiff_t>(kBytes));
        EXPECT_EQ(Device()->release(lasting[i]), ncclSuccess) << rondo_error_last();
    }
    ASSERT_EQ(Cpu()->device_reset(0), ncclSuccess);
    EXPECT_EQ(Blocks(), 0u);
}

TEST_F(Memory, MoreThanTheHostHasIsRefused)
{
    if (rondo_host_memory_available() == 0)
        GTEST_SKIP() << "the host does not say how much memory is available";
    void *pointer;
    EXPECT_EQ(Cpu()->host_allocate(SIZE_MAX / 4, &pointer), ncclUnhandledCudaError);
    EXPECT_NE(strstr(rondo_error_last(), "available"), nullptr) << rondo_error_last();
}

} // namespace
