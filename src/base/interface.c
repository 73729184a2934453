/* interface.c - the network interfaces of this host, and which of them to use. */
#include "interface_rules.h"

#include "base/error.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTERFACES_MAX 256

/* The default order; an interface belongs to the first class whose prefix fits, and to OTHERS when none does.
 */
static const char *const class_prefixes[] = {"ib", "", "docker", "lo", "virbr"};
#define CLASSES (int)(sizeof(class_prefixes) / sizeof(class_prefixes[0]))
#define CLASS_OTHERS 1

static int class_of(const char *name)
{
    for (int class = 0; class < CLASSES; class ++)
        if (class != CLASS_OTHERS && strncmp(name, class_prefixes[class], strlen(class_prefixes[class])) == 0)
            return class;
    return CLASS_OTHERS;
}

/* Whether name is one of the names in list, each a prefix or, with is_exact, the whole. */
static bool is_listed(const char *name, const char *list, bool is_exact)
{
    while (*list) {
        size_t bytes = strcspn(list, ",");

        if (bytes > 0 && strncmp(name, list, bytes) == 0 && (!is_exact || name[bytes] == '\0'))
            return true;
        list += bytes;
        list += *list == ',';
    }
    return false;
}

int rondo_interface_pick(const struct rondo_interface *all, int count, const char *rule, int family,
                         struct rondo_interface *out, int max)
{
    bool has_rule = rule && *rule;
    bool excludes = has_rule && *rule == '^';
    const char *list = has_rule ? rule + excludes : "";
    bool is_exact = *list == '=';
    bool by_class = !has_rule || excludes;
    int picked = 0;

    list += is_exact;
    for (int class = 0; class < (by_class ? CLASSES : 1); class ++) {
        for (int i = 0; i < count && picked < max; i++) {
            if (family != AF_UNSPEC && all[i].address.any.sa_family != family)
                continue;
            if (by_class && class_of(all[i].name) != class)
                continue;
            if (has_rule && is_listed(all[i].name, list, is_exact) == excludes)
                continue;
            out[picked++] = all[i];
        }
    }
    return picked;
}

/* Take over an address that peers can be given: of a running interface, and not one whose meaning depends on
 * the host (IPv6 link-local). */
static bool convert(const struct ifaddrs *entry, struct rondo_interface *out)
{
    union rondo_address address = {0};

    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP))
        return false;
    if (entry->ifa_addr->sa_family == AF_INET)
        memcpy(&address.in4, entry->ifa_addr, sizeof(address.in4));
    else if (entry->ifa_addr->sa_family == AF_INET6)
        memcpy(&address.in6, entry->ifa_addr, sizeof(address.in6));
    else
        return false;
    if (address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.in6.sin6_addr))
        return false;
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s", entry->ifa_name);
    out->address = address;
    return true;
}

static ncclResult_t list_interfaces(struct rondo_interface *all, int *count_out)
{
    struct ifaddrs *entries;
    int count = 0;

    if (getifaddrs(&entries) != 0)
        return rondo_fail(ncclSystemError, "list the network interfaces: %s", rondo_error_system(errno));
    for (struct ifaddrs *entry = entries; entry && count < INTERFACES_MAX; entry = entry->ifa_next)
        if (convert(entry, &all[count]))
            count++;
    freeifaddrs(entries);
    *count_out = count;
    return ncclSuccess;
}

static ncclResult_t report_none(const struct rondo_interface *all, int count, const char *rule, int family)
{
    char names[512] = "none";
    size_t used = 0;

    for (int i = 0; i < count && used < sizeof(names); i++) {
        char text[RONDO_ADDRESS_TEXT];

        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s %s", i > 0 ? ", " : "",
                                 all[i].name, rondo_address_text(&all[i].address, text));
    }
    return rondo_fail(ncclInvalidUsage,
                      "no network interface fits NCCL_SOCKET_IFNAME=\"%s\"%s; this host has: %s; correct the "
                      "variable or unset it",
                      rule ? rule : "",
                      family == AF_INET    ? " in family AF_INET"
                      : family == AF_INET6 ? " in family AF_INET6"
                                           : "",
                      names);
}

ncclResult_t rondo_interface_find(const char *rule, int family, struct rondo_interface *out, int max,
                                  int *count_out)
{
    struct rondo_interface *all = calloc(INTERFACES_MAX, sizeof(*all));
    ncclResult_t rc;
    int count = 0, picked;

    if (!all)
        return rondo_fail(ncclSystemError, "list the network interfaces: out of memory");
    rc = list_interfaces(all, &count);
    if (rc != ncclSuccess)
        goto free_all;
    picked = rondo_interface_pick(all, count, rule, family, out, max);
    if (picked == 0)
        rc = report_none(all, count, rule, family);
    else
        *count_out = picked;
free_all:
    free(all);
    return rc;
}
