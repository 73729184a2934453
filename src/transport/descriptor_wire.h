/*
 * descriptor_wire.h - how a process asks another for the descriptors of its memory.
 *
 * A sequenced-packet Unix socket at the abstract name "@rondo-XXXXXXXX": one request, one reply, closed. Both
 * ends check the other's user by SO_PEERCRED; the token is the server's process nonce, which peers know from
 * the bootstrap.
 */
#ifndef RONDO_TRANSPORT_DESCRIPTOR_WIRE_H
#define RONDO_TRANSPORT_DESCRIPTOR_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define RONDO_DESCRIPTOR_MAGIC 0x32656c6f646e6f72u

enum {
    RONDO_DESCRIPTOR_ARENA,
    RONDO_DESCRIPTOR_BOARD,
    RONDO_DESCRIPTOR_DEATH,
    RONDO_DESCRIPTOR_LIFE,
    RONDO_DESCRIPTOR_NUM
};

struct rondo_descriptor_request {
    uint64_t magic;
    uint64_t token;
    int32_t device; /* whose arena */
    uint32_t unused;
};

/* Carries RONDO_DESCRIPTOR_NUM descriptors in the order of the enum, or none and the reason. */
struct rondo_descriptor_reply {
    uint64_t magic;
    uint64_t token;
    uint64_t pid_namespace; /* inode; 0: unknown */
    uint32_t code;          /* ncclResult_t */
    char text[484]; /* holds the answer of a third process, which the second passes on */
};

/* The address of a service; returns its length. */
static inline socklen_t rondo_descriptor_address(uint32_t service, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    int length =
        snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "rondo-%08x", (unsigned)service);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* What makes two process ids comparable. */
static inline uint64_t rondo_pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint64_t)status.st_ino : 0;
}

#endif
