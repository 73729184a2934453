/*
 * sealed.c - shared memory that no process can shrink under another: a memfd with its size sealed.
 *
 * It has no name in any file system, so nothing is left behind however the processes end.
 */
#include "cpu/arena.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ftruncate for a process that is to live: beyond RLIMIT_FSIZE the kernel would send SIGXFSZ. */
static int set_size(int fd, uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(fd, (off_t)bytes);
}

ncclResult_t rondo_sealed_create(const char *what, uint64_t bytes, int *fd_out, void **base_out)
{
    ncclResult_t rc;
    int fd = memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return rondo_fail(ncclSystemError, "memfd_create for %s: %s", what, rondo_error_system(errno));
    if (set_size(fd, bytes) != 0) {
        rc = rondo_fail(ncclSystemError, "size %s to %llu bytes: %s", what, (unsigned long long)bytes,
                        rondo_error_system(errno));
        goto close_fd;
    }
    if (fcntl(fd, F_ADD_SEALS, SEALS) != 0) {
        rc = rondo_fail(ncclSystemError, "seal %s: %s", what, rondo_error_system(errno));
        goto close_fd;
    }
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        rc =
            rondo_fail(ncclSystemError, "map %s of %llu bytes: %s; see ulimit -v and RONDO_CPU_DEVICE_MEMORY",
                       what, (unsigned long long)bytes, rondo_error_system(errno));
        goto close_fd;
    }
    *fd_out = fd;
    *base_out = base;
    return ncclSuccess;

close_fd:
    close(fd);
    return rc;
}

ncclResult_t rondo_sealed_map(const char *what, int fd, uint64_t bytes, void **base_out)
{
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0)
        return rondo_fail(ncclInvalidArgument, "map a peer's %s: descriptor %d is no memfd: %s", what, fd,
                          rondo_error_system(errno));
    if ((seals & SEALS) != SEALS)
        return rondo_fail(ncclInvalidArgument,
                          "map a peer's %s: its size is not sealed (seals 0x%x), so it is none of Rondo's",
                          what, seals);
    if (fstat(fd, &status) != 0)
        return rondo_fail(ncclSystemError, "stat a peer's %s: %s", what, rondo_error_system(errno));
    if (status.st_size <= 0 || (uint64_t)status.st_size != bytes)
        return rondo_fail(ncclInvalidArgument,
                          "map a peer's %s: it has %lld bytes where the peer announced %llu", what,
                          (long long)status.st_size, (unsigned long long)bytes);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return rondo_fail(ncclSystemError, "map a peer's %s of %llu bytes: %s", what,
                          (unsigned long long)bytes, rondo_error_system(errno));
    *base_out = base;
    return ncclSuccess;
}

ncclResult_t rondo_sealed_export(const char *what, int fd, int *fd_out)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy < 0)
        return rondo_fail(ncclSystemError, "duplicate the descriptor of %s: %s", what,
                          rondo_error_system(errno));
    *fd_out = copy;
    return ncclSuccess;
}
