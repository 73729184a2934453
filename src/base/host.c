/* host.c - which host and process this is. */
#include "base/host.h"

#include "base/auth.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/param.h"

#include "memory_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_once_t name_once = PTHREAD_ONCE_INIT;
static char full_name[HOST_NAME_MAX + 1];
static char short_name[HOST_NAME_MAX + 1];
static uint64_t host_hash; /* 0: not known yet */

static void read_name(void)
{
    if (gethostname(full_name, sizeof(full_name)) != 0 || full_name[0] == '\0')
        strcpy(full_name, "localhost");
    full_name[sizeof(full_name) - 1] = '\0';
    strcpy(short_name, full_name);
    short_name[strcspn(short_name, ".")] = '\0';
}

const char *rondo_host_name(void)
{
    pthread_once(&name_once, read_name);
    return short_name;
}

uint64_t rondo_hash(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *next = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ next[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* A file or an object that is not there, or is forbidden, is so for every process of the host; any other
 * failure is this process's own, and a hash without it would make it a stranger to its neighbours. */
static bool is_own_failure(int error)
{
    return error != ENOENT && error != ENOTDIR && error != EACCES && error != EPERM;
}

static uint64_t refuse(const char *path)
{
    rondo_fail(ncclSystemError, "tell which host this is by %s: %s", path, rondo_error_system(errno));
    return 0;
}

static uint64_t compute_hash(void)
{
    static const char boot_path[] = "/proc/sys/kernel/random/boot_id", net_path[] = "/proc/self/ns/net";
    const char *replacement = rondo_param_string(RONDO_PARAM_HOSTID);
    char boot_id[64] = "";
    struct stat space;
    uint64_t hash;
    int fd;

    if (replacement)
        return rondo_hash(replacement, strlen(replacement), 0);
    rondo_host_name();
    hash = rondo_hash(full_name, strlen(full_name), 0);
    fd = open(boot_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && is_own_failure(errno))
        return refuse(boot_path);
    if (fd >= 0) {
        ssize_t got = read(fd, boot_id, sizeof(boot_id));
        int error = errno;

        close(fd);
        errno = error;
        if (got < 0)
            return refuse(boot_path);
        hash = rondo_hash(boot_id, (size_t)got, hash);
    }
    if (stat(net_path, &space) == 0) {
        hash = rondo_hash(&space.st_dev, sizeof(space.st_dev), hash);
        hash = rondo_hash(&space.st_ino, sizeof(space.st_ino), hash);
    } else if (is_own_failure(errno)) {
        return refuse(net_path);
    }
    return hash ? hash : 1;
}

uint64_t rondo_host_hash(void)
{
    int saved = errno;
    uint64_t hash = __atomic_load_n(&host_hash, __ATOMIC_RELAXED);

    if (hash == 0) { /* threads that come here at once compute the same */
        hash = compute_hash();
        __atomic_store_n(&host_hash, hash, __ATOMIC_RELAXED);
    }
    errno = saved;
    return hash;
}

static uint64_t make_nonce(pid_t pid)
{
    uint64_t nonce = 0;

    if (rondo_random_bytes(&nonce, sizeof(nonce)) != ncclSuccess) {
        /* No generator: time and process still tell the processes of one host apart. */
        uint64_t now = rondo_clock_ns();

        nonce = rondo_hash(&now, sizeof(now), (uint64_t)pid);
    }
    return nonce ? nonce : 1;
}

uint64_t rondo_process_nonce(void)
{
    /* The pid whose nonce is stored; negative while that process makes it. A forked child finds its parent's,
     * of either sign, and makes its own. Released after nonce; acquired before nonce is read. */
    static pid_t owner;
    static uint64_t nonce;
    pid_t self = getpid();

    for (;;) {
        pid_t seen = __atomic_load_n(&owner, __ATOMIC_ACQUIRE);

        if (seen == self)
            return __atomic_load_n(&nonce, __ATOMIC_RELAXED);
        if (seen == -self) {
            sched_yield(); /* another thread of this process makes it */
        } else if (__atomic_compare_exchange_n(&owner, &seen, -self, false, __ATOMIC_ACQUIRE,
                                               __ATOMIC_RELAXED)) {
            __atomic_store_n(&nonce, make_nonce(self), __ATOMIC_RELAXED);
            __atomic_store_n(&owner, self, __ATOMIC_RELEASE);
        }
    }
}

int rondo_host_cpus(void)
{
    /* The kernel refuses a set smaller than its own: grow until it fits. */
    for (int most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        size_t bytes = CPU_ALLOC_SIZE((size_t)most);
        int count = 0;

        if (!set)
            break;
        if (sched_getaffinity(0, bytes, set) == 0)
            count = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    return 1;
}

uint64_t rondo_host_memory_total(void)
{
    return rondo_memory_limit_read("").total;
}

uint64_t rondo_host_memory_available(void)
{
    return rondo_memory_limit_read("").available;
}
