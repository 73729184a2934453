/* config.c - the settings of one communicator, by the compatibility rule of ncclConfig_t. */
#include "config.h"

#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "device/work.h"
#include "transport/layout.h"

#include <stdio.h>
#include <string.h>

#define UNDEF NCCL_CONFIG_UNDEF_INT

/* struct field.usual: this version reads the field. No field has it as its default. */
#define SERVED (-2)

/* Every number in the struct: since which version, and what is accepted when it is set. */
struct field {
    const char *name;
    size_t offset;
    unsigned since; /* caller's version below this: not set */
    int low, high;
    int usual; /* SERVED, or the default of a field without effect: UNDEF where the library chooses */
};

#define FIELD(member, since, low, high, usual)                           \
    {                                                                    \
#member, offsetof(ncclConfig_t, member), since, low, high, usual \
    }

static const struct field fields[] = {
    FIELD(blocking, NCCL_VERSION(2, 14, 0), 0, 1, SERVED),
    FIELD(cgaClusterSize, NCCL_VERSION(2, 17, 0), 0, INT_MAX, 4),
    FIELD(minCTAs, NCCL_VERSION(2, 17, 0), 1, INT_MAX, SERVED),
    FIELD(maxCTAs, NCCL_VERSION(2, 17, 0), 1, INT_MAX, SERVED),
    FIELD(splitShare, NCCL_VERSION(2, 14, 0), 0, 1, 0), /* in no older struct's padding: size alone decides */
    FIELD(trafficClass, NCCL_VERSION(2, 26, 0), INT_MIN, INT_MAX, UNDEF),
    FIELD(collnetEnable, NCCL_VERSION(2, 27, 0), 0, 1, 0),
    FIELD(CTAPolicy, NCCL_VERSION(2, 27, 0), 0, 3, NCCL_CTA_POLICY_DEFAULT),
    FIELD(shrinkShare, NCCL_VERSION(2, 27, 0), 0, 1, 0),
    FIELD(nvlsCTAs, NCCL_VERSION(2, 27, 0), 1, INT_MAX, UNDEF),
    FIELD(nChannelsPerNetPeer, NCCL_VERSION(2, 28, 0), 1, 64, UNDEF),
    FIELD(nvlinkCentricSched, NCCL_VERSION(2, 28, 0), 0, 1, 0),
    FIELD(graphUsageMode, NCCL_VERSION(2, 29, 0), 0, 2, 2),
    FIELD(numRmaCtx, NCCL_VERSION(2, 29, 0), 0, INT_MAX, 1),
    FIELD(maxP2pPeers, NCCL_VERSION(2, 30, 0), 1, INT_MAX, UNDEF),
    FIELD(graphStreamOrdering, NCCL_VERSION(2, 30, 5), 0, 1, 1),
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static int *field_in(ncclConfig_t *config, const struct field *field)
{
    return (int *)(void *)((char *)config + field->offset);
}

/* The caller's struct, whatever its age, as one of ours. */
static ncclResult_t import_config(const ncclConfig_t *theirs, ncclConfig_t *ours)
{
    static const ncclConfig_t unset = NCCL_CONFIG_INITIALIZER;
    size_t bytes = theirs->size;

    *ours = unset;
    if (bytes < offsetof(ncclConfig_t, blocking))
        return rondo_fail(
            ncclInvalidArgument,
            "read a communicator's configuration: its size field is %zu; start from NCCL_CONFIG_INITIALIZER",
            bytes);
    memcpy(ours, theirs, bytes < sizeof(*ours) ? bytes : sizeof(*ours));
    if (ours->magic != NCCL_API_MAGIC)
        return rondo_fail(ncclInvalidArgument,
                          "read a communicator's configuration: its magic field is 0x%x, not 0x%x; start "
                          "from NCCL_CONFIG_INITIALIZER",
                          ours->magic, NCCL_API_MAGIC);
    for (size_t i = 0; i < FIELDS; i++) {
        if (ours->version < fields[i].since)
            *field_in(ours, &fields[i]) = UNDEF;
    }
    if (ours->version < NCCL_VERSION(2, 17, 0))
        ours->netName = NULL;
    if (ours->version < NCCL_VERSION(2, 27, 0))
        ours->commName = NULL;
    return ncclSuccess;
}

static ncclResult_t check_config(ncclConfig_t *config)
{
    for (size_t i = 0; i < FIELDS; i++) {
        int value = *field_in(config, &fields[i]);

        if (value != UNDEF && (value < fields[i].low || value > fields[i].high))
            return rondo_fail(ncclInvalidArgument,
                              "read a communicator's configuration: %s is %d, outside %d..%d", fields[i].name,
                              value, fields[i].low, fields[i].high);
    }
    /* As the interface has it, the values are compared as they are: a maxCTAs that is not set is less than
     * any minCTAs. */
    if (config->minCTAs > config->maxCTAs)
        return rondo_fail(
            ncclInvalidArgument, "read a communicator's configuration: minCTAs is %d but maxCTAs is %d%s",
            config->minCTAs, config->maxCTAs, config->maxCTAs == UNDEF ? " (not set); set both" : "");
    return ncclSuccess;
}

/* Tell whoever looks for the reason of a missing effect. */
static void log_ignored(ncclConfig_t *config)
{
    char list[512] = "";
    size_t used = 0;

    if (!rondo_log_enabled(RONDO_LOG_INFO, RONDO_LOG_INIT))
        return;
    if (config->netName)
        used += (size_t)snprintf(list, sizeof(list), " netName=%.64s", config->netName);
    for (size_t i = 0; i < FIELDS && used < sizeof(list); i++) {
        int value = *field_in(config, &fields[i]);

        if (fields[i].usual != SERVED && value != UNDEF && value != fields[i].usual)
            used += (size_t)snprintf(list + used, sizeof(list) - used, " %s=%d", fields[i].name, value);
    }
    if (used > 0)
        rondo_log(RONDO_LOG_INFO, RONDO_LOG_INIT,
                  "a communicator's configuration sets what has no effect in this version:%s", list);
}

/* Channels between least and most (0: no such bound); 0, no wish, where the default fits. The environment
 * wins. */
static uint64_t channels_wish(const ncclConfig_t *config)
{
    int64_t least = rondo_param_int(RONDO_PARAM_MIN_CTAS);
    int64_t most = rondo_param_int(RONDO_PARAM_MAX_CTAS);

    if (least == 0 && config->minCTAs != UNDEF)
        least = config->minCTAs;
    if (most == 0 && config->maxCTAs != UNDEF)
        most = config->maxCTAs;
    if (most != 0 && most < RONDO_CHANNELS)
        return (uint64_t)most;
    if (least > RONDO_CHANNELS)
        return (uint64_t)(most != 0 && most < least ? most : least);
    return 0;
}

ncclResult_t rondo_config_read(const ncclConfig_t *config, struct rondo_config *config_out)
{
    static const ncclConfig_t unset = NCCL_CONFIG_INITIALIZER;
    ncclConfig_t ours = unset;
    struct rondo_config result = {.is_blocking = true};
    int64_t blocking = rondo_param_int(RONDO_PARAM_COMM_BLOCKING);
    ncclResult_t rc;

    if (config) {
        rc = import_config(config, &ours);
        if (rc == ncclSuccess)
            rc = check_config(&ours);
        if (rc != ncclSuccess)
            return rc;
        log_ignored(&ours);
    }
    if (blocking >= 0)
        result.is_blocking = blocking != 0;
    else if (ours.blocking != UNDEF)
        result.is_blocking = ours.blocking != 0;
    result.channels = channels_wish(&ours);
    result.slot_bytes = (uint64_t)rondo_param_int(RONDO_PARAM_BUFFSIZE) / RONDO_SLOTS;
    if (ours.commName)
        snprintf(result.name, sizeof(result.name), "%s", ours.commName);
    *config_out = result;
    return ncclSuccess;
}
