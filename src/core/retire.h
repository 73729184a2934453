/*
 * retire.h - mailboxes whose rank has gone but which peers may still address.
 *
 * A rank that has closed its communicator never touches its peers' mailboxes again and says so by advancing
 * `departed` in each of them, last of all. A mailbox goes back to the device when that count says that all
 * peers are past it.
 */
#ifndef RONDO_CORE_RETIRE_H
#define RONDO_CORE_RETIRE_H

#include "device/device.h"

#include <stdint.h>

/* Give a mailbox back once `expected` peers have departed: at once if they have, else during a later reap. A
 * mailbox of dead peers stays until the process ends; expected leaves out those known to be dead. */
void rondo_mailbox_retire(const struct rondo_device_ops *ops, void *mailbox, uint64_t expected);

/* Give back whatever can be. Any thread. */
void rondo_mailbox_reap(void);

#endif
