/*
 * mailbox.h - the part of a rank's device memory that its peers map: its page, then its connections.
 */
#ifndef RONDO_TRANSPORT_MAILBOX_H
#define RONDO_TRANSPORT_MAILBOX_H

#include "transport/layout.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a rank's mailbox for a layout: its page, its connections, its bounce areas. All of them must be
 * zero before peers may see the mailbox; untouched ones need no memory. Pure. */
uint64_t rondo_mailbox_bytes(const struct rondo_layout *layout);

/* Where a channel's bounce area begins in it, 128-byte aligned; rondo_layout_bounce_bytes() are there.
 * channel < layout->channels. Pure. */
uint64_t rondo_mailbox_bounce(const struct rondo_layout *layout, uint32_t channel);

#ifdef __cplusplus
}
#endif

#endif
