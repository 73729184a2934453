/*
 * interface.h - the host's network interfaces, as NCCL_SOCKET_IFNAME orders them.
 */
#ifndef RONDO_BASE_INTERFACE_H
#define RONDO_BASE_INTERFACE_H

#include "base/address.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rondo_interface {
    char name[16];
    union rondo_address address; /* port 0 */
};

/* The usable interfaces in order of preference, by NCCL_SOCKET_IFNAME's rules (rule != NULL) or the default
 * order (ib*, then others, then docker*, lo*, virbr*), in family or any (AF_UNSPEC). At most max are
 * written. ncclInvalidUsage: none matches; the message lists the interfaces that exist. */
ncclResult_t rondo_interface_find(const char *rule, int family, struct rondo_interface *out, int max,
                                  int *count_out);

#ifdef __cplusplus
}
#endif
#endif
