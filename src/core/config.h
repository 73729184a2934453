/*
 * config.h - the settings of one communicator: what the caller's ncclConfig_t says, then what the environment
 * says.
 *
 * Callers were compiled against any version of the interface since 2.14, whose struct was shorter; a field
 * that the caller's version did not have is taken as not set, because an old initializer may have left its
 * bytes as they were.
 */
#ifndef RONDO_CORE_CONFIG_H
#define RONDO_CORE_CONFIG_H

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct rondo_config {
    bool is_blocking;
    uint64_t channels;   /* wish for struct rondo_peer, 0: none */
    uint64_t slot_bytes; /* likewise */
    char name[64];       /* "" without one */
};

/* Read config (NULL: all defaults) and the environment. Fields that are set and have no effect are logged,
 * INFO. ncclInvalidArgument: not initialised by NCCL_CONFIG_INITIALIZER, or a field out of its range; the
 * message names it. */
ncclResult_t rondo_config_read(const ncclConfig_t *config, struct rondo_config *config_out);

#endif
