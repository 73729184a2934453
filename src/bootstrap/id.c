/* id.c - unique ids, and where the secret of a fixed one comes from. */
#include "id.h"

#include "base/error.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC_OWN UINT64_C(0x31646f646e6f52) /* "Rondo" and a kind */
#define MAGIC_FIXED UINT64_C(0x32646f646e6f52)
#define LAYOUT_VERSION 2
#define SECRET_FILE_MOST 4096

struct layout {
    uint64_t magic;
    uint32_t version;
    uint32_t zero;
    union rondo_address root;
    struct rondo_secret secret;
    uint32_t made_ms;
    unsigned char rest[64];
};

static_assert(sizeof(struct layout) == sizeof(ncclUniqueId), "an id fills an ncclUniqueId");

/* Only the fields of an address that mean something, so that equal ids are equal bytes. */
static union rondo_address clean_address(const union rondo_address *address)
{
    union rondo_address clean = {0};

    if (address->any.sa_family == AF_INET) {
        clean.in4.sin_family = AF_INET;
        clean.in4.sin_port = address->in4.sin_port;
        clean.in4.sin_addr = address->in4.sin_addr;
    } else {
        clean.in6.sin6_family = AF_INET6;
        clean.in6.sin6_port = address->in6.sin6_port;
        clean.in6.sin6_addr = address->in6.sin6_addr;
        clean.in6.sin6_scope_id = address->in6.sin6_scope_id;
    }
    return clean;
}

static uint32_t wall_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

void rondo_id_stamp(struct rondo_id *id)
{
    id->made_ms = wall_clock_ms() | 1;
}

double rondo_id_age(uint32_t made_ms)
{
    int32_t age = (int32_t)(wall_clock_ms() - made_ms);

    return made_ms == 0 || age < 0 ? -1 : age / 1e3;
}

void rondo_id_write(const struct rondo_id *id, ncclUniqueId *out)
{
    struct layout layout = {
        .magic = id->is_fixed ? MAGIC_FIXED : MAGIC_OWN,
        .version = LAYOUT_VERSION,
        .root = clean_address(&id->root),
        .secret = id->secret,
        .made_ms = id->made_ms,
    };

    memcpy(out, &layout, sizeof(layout));
    rondo_auth_wipe(&layout, sizeof(layout));
}

ncclResult_t rondo_id_read(const ncclUniqueId *bytes, struct rondo_id *id_out)
{
    static const unsigned char zeros[sizeof(((struct layout *)0)->rest)];
    struct layout layout;

    memcpy(&layout, bytes, sizeof(layout));
    if (layout.magic != MAGIC_OWN && layout.magic != MAGIC_FIXED)
        return rondo_fail(ncclInvalidArgument,
                          "the unique id was not made by this library's ncclGetUniqueId: "
                          "was it given to every rank, all 128 bytes of it?");
    if (layout.version != LAYOUT_VERSION)
        return rondo_fail(ncclInvalidArgument,
                          "the unique id has layout %u, this library reads %u: use one version on all ranks",
                          layout.version, LAYOUT_VERSION);
    if (layout.zero != 0 || memcmp(layout.rest, zeros, sizeof(zeros)) != 0 ||
        rondo_address_bytes(&layout.root) == 0 || layout.root.in4.sin_port == 0)
        return rondo_fail(ncclInvalidArgument,
                          "the unique id is damaged: its address or padding is not as it was made");
    *id_out = (struct rondo_id){.is_fixed = layout.magic == MAGIC_FIXED,
                                .root = layout.root,
                                .secret = layout.secret,
                                .made_ms = layout.made_ms};
    rondo_auth_wipe(&layout, sizeof(layout));
    return ncclSuccess;
}

/* Read an open secret file after looking at who else can. */
static ncclResult_t read_secret(int fd, const char *path, struct rondo_secret *secret_out)
{
    unsigned char text[SECRET_FILE_MOST + 1];
    struct stat about;
    size_t bytes = 0;
    ssize_t got;

    if (fstat(fd, &about) != 0)
        return rondo_fail(ncclSystemError, "look at RONDO_SECRET_FILE %s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return rondo_fail(ncclInvalidUsage, "RONDO_SECRET_FILE %s is not a regular file", path);
    if (about.st_uid != geteuid())
        return rondo_fail(ncclInvalidUsage,
                          "RONDO_SECRET_FILE %s belongs to user %u, not to user %u who runs this", path,
                          about.st_uid, geteuid());
    if (about.st_mode & (S_IRWXG | S_IRWXO))
        return rondo_fail(ncclInvalidUsage,
                          "RONDO_SECRET_FILE %s has mode %04o, so others can use it: chmod 0600 it", path,
                          about.st_mode & 07777);
    while (bytes < sizeof(text) && (got = read(fd, text + bytes, sizeof(text) - bytes)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return rondo_fail(ncclSystemError, "read RONDO_SECRET_FILE %s: %s", path, strerror(errno));
        bytes += (size_t)got;
    }
    if (bytes == 0 || bytes > SECRET_FILE_MOST)
        return rondo_fail(ncclInvalidUsage, "RONDO_SECRET_FILE %s has %s%d bytes; 1 to %d are accepted", path,
                          bytes == 0 ? "" : "more than ", bytes == 0 ? 0 : SECRET_FILE_MOST,
                          SECRET_FILE_MOST);
    rondo_auth_derive(text, bytes, secret_out);
    rondo_auth_wipe(text, bytes);
    return ncclSuccess;
}

static ncclResult_t open_secret(const char *path, struct rondo_secret *secret_out)
{
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* O_NONBLOCK: a FIFO must not hold us */
    ncclResult_t rc;

    if (fd < 0)
        return rondo_fail(ncclInvalidUsage, "open RONDO_SECRET_FILE %s: %s", path, strerror(errno));
    rc = read_secret(fd, path, secret_out);
    close(fd);
    return rc;
}

static void warn_once(const char *text)
{
    static int is_told;

    if (!__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED))
        rondo_log(RONDO_LOG_WARN, RONDO_LOG_BOOTSTRAP,
                  "NCCL_COMM_ID=%s without RONDO_SECRET_FILE: the ranks of this job are unauthenticated; "
                  "anyone who reaches that port can take part",
                  text);
}

ncclResult_t rondo_id_fixed(const char *text, const char *secret_file, struct rondo_id *id_out)
{
    static const char public_constant[] = "rondo: no secret";
    struct rondo_id id = {.is_fixed = true};
    ncclResult_t rc;

    rc = rondo_address_parse(text, &id.root);
    if (rc != ncclSuccess)
        return rondo_fail(rc, "NCCL_COMM_ID: %s", rondo_error_own());
    if (secret_file) {
        rc = open_secret(secret_file, &id.secret);
        if (rc != ncclSuccess)
            return rc;
    } else {
        rondo_auth_derive(public_constant, sizeof(public_constant), &id.secret);
        warn_once(text);
    }
    *id_out = id;
    return ncclSuccess;
}
