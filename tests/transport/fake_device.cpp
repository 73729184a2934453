#include "fake_device.h"

#include "base/error.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace
{

std::atomic<int> mappings{0};
std::atomic<int> calls_left{-1};
std::atomic<bool> has_failed{false};

bool Fails()
{
    int left = calls_left.load();
    if (left < 0)
        return false;
    if (calls_left.fetch_sub(1) != 0)
        return false;
    has_failed = true;
    return true;
}

struct Region {
    int fd;
    unsigned char *base;
};

// One a device, then the switchboard. A forked child makes its own.
Region &Get(int index)
{
    static std::mutex lock;
    static Region regions[fake::kDevices + 1];
    static pid_t owner;
    std::lock_guard<std::mutex> guard(lock);
    if (owner != getpid()) {
        for (Region &region : regions)
            region = {-1, nullptr};
        owner = getpid();
    }
    Region &region = regions[index];
    if (!region.base) {
        size_t bytes = index < fake::kDevices ? fake::kArenaBytes : sizeof(rondo_switchboard);
        region.fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (ftruncate(region.fd, (off_t)bytes) != 0 || fcntl(region.fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
            _exit(99);
        region.base = (unsigned char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0);
    }
    return region;
}

ncclResult_t Map(int fd, size_t bytes, void **base_out)
{
    struct stat status;
    if (Fails())
        return rondo_fail(ncclSystemError, "map: failed by the test");
    if (fstat(fd, &status) != 0 || (size_t)status.st_size != bytes)
        return rondo_fail(ncclInvalidArgument, "map: not a region of %zu bytes", bytes);
    void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return rondo_fail(ncclSystemError, "map");
    mappings++;
    *base_out = base;
    return ncclSuccess;
}

ncclResult_t Unmap(void *base, size_t bytes)
{
    mappings--;
    munmap(base, bytes);
    return ncclSuccess;
}

ncclResult_t Export(int index, int *fd_out)
{
    if (Fails())
        return rondo_fail(ncclSystemError, "export: failed by the test");
    *fd_out = fcntl(Get(index).fd, F_DUPFD_CLOEXEC, 0);
    if (*fd_out < 0)
        return rondo_fail(ncclSystemError, "export: %s", rondo_error_system(errno));
    return ncclSuccess;
}

ncclResult_t ExportArena(int device, int *fd_out)
{
    if (device < 0 || device >= fake::kDevices)
        return rondo_fail(ncclInvalidArgument, "export the arena of device %d: there are %d", device,
                          fake::kDevices);
    return Export(device, fd_out);
}

ncclResult_t ExportBoard(int *fd_out)
{
    return Export(fake::kDevices, fd_out);
}

ncclResult_t MapArena(int fd, uint64_t bytes, void **base_out)
{
    return Map(fd, bytes, base_out);
}

ncclResult_t UnmapArena(void *base, uint64_t bytes)
{
    return Unmap(base, bytes);
}

ncclResult_t MapBoard(int fd, rondo_switchboard **board_out)
{
    void *base = nullptr;
    ncclResult_t rc = Map(fd, sizeof(rondo_switchboard), &base);
    if (rc == ncclSuccess)
        *board_out = (rondo_switchboard *)base;
    return rc;
}

ncclResult_t UnmapBoard(rondo_switchboard *board)
{
    return Unmap(board, sizeof(*board));
}

rondo_switchboard *Board()
{
    return (rondo_switchboard *)Get(fake::kDevices).base;
}

rondo_device_ops MakeTable()
{
    rondo_device_ops ops = {};
    ops.abi = RONDO_DEVICE_ABI;
    ops.name = "fake";
    ops.export_arena = ExportArena;
    ops.export_switchboard = ExportBoard;
    ops.map_arena = MapArena;
    ops.unmap_arena = UnmapArena;
    ops.map_switchboard = MapBoard;
    ops.unmap_switchboard = UnmapBoard;
    ops.switchboard = Board;
    return ops;
}

} // namespace

namespace fake
{

void Prepare()
{
    for (int index = 0; index <= kDevices; index++)
        Get(index);
}

unsigned char *Arena(int device)
{
    return Get(device).base;
}

int LiveMappings()
{
    return mappings;
}

void FailAfter(int calls)
{
    has_failed = false;
    calls_left = calls;
}

bool HasFailed()
{
    return has_failed;
}

} // namespace fake

// Takes the place of the library's own.
extern "C" ncclResult_t rondo_device_select(const rondo_device_ops **ops_out)
{
    static const rondo_device_ops ops = MakeTable();
    *ops_out = &ops;
    return ncclSuccess;
}
