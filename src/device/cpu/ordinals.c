/* ordinals.c - which devices there are, and how they present themselves. */
#include "cpu/ordinals.h"

#include "base/error.h"
#include "base/host.h"
#include "base/param.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int ordinals[RONDO_CPU_MAX_DEVICES]; /* physical ordinal of each visible device */
static int count;
static uint64_t capacity;

/* Distinct per device and host, equal in all processes of the host. */
static void make_uuid(int physical, unsigned char uuid_out[16])
{
    struct {
        uint64_t host;
        uint64_t ordinal;
    } key = {rondo_host_hash(), (uint64_t)physical};
    uint64_t halves[2] = {rondo_hash(&key, sizeof(key), 1), rondo_hash(&key, sizeof(key), 2)};

    memcpy(uuid_out, halves, sizeof(halves));
}

/* "GPU-01234567-89ab-...", as tools print it. */
static void write_uuid(int physical, char text_out[41])
{
    unsigned char uuid[16];
    char *at = text_out + sprintf(text_out, "GPU-");

    make_uuid(physical, uuid);
    for (int i = 0; i < 16; i++)
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
}

/* The one device whose UUID starts with the entry; -1 if there is none, or more than one. */
static int find_uuid(const char *entry, size_t length, int physical)
{
    int found = -1;
    char text[41];

    for (int i = 0; i < physical; i++) {
        write_uuid(i, text);
        if (length > 4 && length < sizeof(text) && strncasecmp(text, entry, length) == 0) {
            if (found >= 0)
                return -1;
            found = i;
        }
    }
    return found;
}

static int parse_entry(const char *entry, size_t length, int physical)
{
    char digits[8];

    if (length > 4 && strncasecmp(entry, "GPU-", 4) == 0)
        return find_uuid(entry, length, physical);
    if (length == 0 || length >= sizeof(digits) || strspn(entry, "0123456789") != length)
        return -1;
    memcpy(digits, entry, length);
    digits[length] = 0;
    int ordinal = atoi(digits);
    return ordinal < physical ? ordinal : -1;
}

int rondo_cpu_visible(const char *list, int physical, int *ordinals_out)
{
    int visible = 0;

    if (!list) {
        for (int i = 0; i < physical; i++)
            ordinals_out[i] = i;
        return physical;
    }
    while (visible < physical) {
        while (isspace((unsigned char)*list))
            list++;
        size_t length = strcspn(list, ", \t\n");
        int ordinal = parse_entry(list, length, physical);
        for (int i = 0; i < visible && ordinal >= 0; i++)
            ordinal = ordinals_out[i] == ordinal ? -1 : ordinal;
        if (ordinal < 0)
            break;
        ordinals_out[visible++] = ordinal;
        list += length;
        list += strspn(list, " \t\n");
        if (*list != ',')
            break;
        list++;
    }
    return visible;
}

static void decide(void)
{
    uint64_t host = rondo_host_memory_total();
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    /* getenv, not a parameter: set but empty means no device, which the table of parameters does not tell
     * from unset. */
    count = rondo_cpu_visible(getenv("CUDA_VISIBLE_DEVICES"), (int)rondo_param_int(RONDO_PARAM_CPU_DEVICES),
                              ordinals);
    capacity = (uint64_t)rondo_param_int(RONDO_PARAM_CPU_DEVICE_MEMORY);
    if (capacity == 0)
        capacity = host ? host / 4 * 3 : (uint64_t)1 << 32;
    if (capacity > (uint64_t)1 << 44) /* an arena is one mapping; leave room for many in 47 bits of address */
        capacity = (uint64_t)1 << 44;
    capacity = (capacity + page - 1) & ~(page - 1);
}

int rondo_cpu_device_count(void)
{
    pthread_once(&once, decide);
    return count;
}

uint64_t rondo_cpu_device_capacity(void)
{
    pthread_once(&once, decide);
    return capacity;
}

ncclResult_t rondo_cpu_device_check(int device)
{
    int visible = rondo_cpu_device_count();

    if (device >= 0 && device < visible)
        return ncclSuccess;
    if (visible == 0)
        return rondo_fail(ncclInvalidArgument,
                          "use device %d: no device is visible; CUDA_VISIBLE_DEVICES hides them all", device);
    return rondo_fail(ncclInvalidArgument,
                      "use device %d: this process has devices 0 to %d; RONDO_CPU_DEVICES and "
                      "CUDA_VISIBLE_DEVICES set how many",
                      device, visible - 1);
}

ncclResult_t rondo_cpu_device_properties(int device, struct rondo_device_properties *properties_out)
{
    ncclResult_t rc = rondo_cpu_device_check(device);
    struct rondo_device_properties properties = {.memory_bytes = capacity, .major = 9, .minor = 0};

    if (rc != ncclSuccess)
        return rc;
    int place = ordinals[device] + 1; /* bus 00 is the host's own */
    snprintf(properties.name, sizeof(properties.name), "Rondo CPU device %d", ordinals[device]);
    snprintf(properties.busid, sizeof(properties.busid), "%04x:%02x:00.0", (unsigned)place >> 8,
             (unsigned)place & 0xff);
    make_uuid(ordinals[device], properties.uuid);
    *properties_out = properties;
    return ncclSuccess;
}
