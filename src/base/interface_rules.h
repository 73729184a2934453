/*
 * interface_rules.h - NCCL_SOCKET_IFNAME's rules as a pure function.
 */
#ifndef RONDO_BASE_INTERFACE_RULES_H
#define RONDO_BASE_INTERFACE_RULES_H

#include "base/interface.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Pick from the count interfaces of a host those that rule and family admit, best first; at most max, their
 * number is returned. A rule is [^][=]name,name,...: names are prefixes, or whole names with =; ^ excludes
 * them.
 *
 *   rule names interfaces     those, in the host's order: the user's word alone counts
 *   rule excludes, or none    the rest, in the default order: ib*, others, docker*, lo*, virbr*
 *
 * An empty rule is none. Pure.
 */
int rondo_interface_pick(const struct rondo_interface *all, int count, const char *rule, int family,
                         struct rondo_interface *out, int max);

#ifdef __cplusplus
}
#endif
#endif
