/* reserve.c - descriptors put aside for connections that are to come. */
#include "reserve.h"

#include "base/error.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

ncclResult_t rondo_reserve_take(struct rondo_reserve *reserve, int count)
{
    while (reserve->count < count) {
        int fd = eventfd(0, EFD_CLOEXEC);
        int error = errno, found = reserve->count;

        if (fd < 0) {
            rondo_reserve_release(reserve, found);
            return rondo_fail(
                ncclSystemError,
                "open descriptors for connections to other ranks: %d are needed and %d are left: %s", count,
                found, rondo_error_system(error));
        }
        reserve->fds[reserve->count++] = fd;
    }
    return ncclSuccess;
}

void rondo_reserve_release(struct rondo_reserve *reserve, int count)
{
    for (int i = 0; i < count && reserve->count > 0; i++)
        close(reserve->fds[--reserve->count]);
}
