/*
 * peer.h - what every rank tells every other when a communicator is made.
 */
#ifndef RONDO_TRANSPORT_PEER_H
#define RONDO_TRANSPORT_PEER_H

#include "device/device.h"

#include <stdint.h>

/* Of struct rondo_peer and of all that ranks share afterwards: any change of a layout raises it. */
#define RONDO_PEER_VERSION 5u

#define RONDO_SETTING_TEXT 48

/* Fixed size, exchanged as it is between equal builds. */
struct rondo_peer {
    int32_t rank;
    int32_t device;
    uint64_t host;    /* rondo_host_hash() */
    uint64_t process; /* rondo_process_nonce() */
    int32_t pid;
    uint32_t service;       /* abstract name of the process's descriptor service, 0: none */
    uint64_t local_mailbox; /* address of the mailbox in its own process */
    struct rondo_memory_name mailbox;
    char busid[16];
    uint64_t slot_bytes, channels; /* as asked for by this rank's environment and configuration; 0: no wish */
    uint64_t direct_bytes;         /* RONDO_DIRECT_BYTES; UINT64_MAX: no wish */
    uint32_t version;              /* RONDO_PEER_VERSION; equal on all ranks */
    uint32_t settings;             /* RONDO_SETTING_*: must agree */
    char hostname[32];
    uint64_t algorithms, protocols; /* what NCCL_ALGO and NCCL_PROTO allow, in bits; must agree, */
    uint64_t named;                 /* as has what NCCL_ALGO has entries for (struct rondo_choices), */
    char algorithms_text[RONDO_SETTING_TEXT], protocols_text[RONDO_SETTING_TEXT]; /* and in words, cut */
};

#define RONDO_SETTING_PRECISE 1u
#define RONDO_SETTING_DETERMINISTIC 2u

#endif
