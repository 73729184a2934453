/*
 * ordinals.h - which devices there are, and how they present themselves.
 *
 * RONDO_CPU_DEVICES physical devices; CUDA_VISIBLE_DEVICES hides and reorders them, as it does for GPUs. What
 * identifies a device (bus id, UUID) belongs to the physical one, so that processes masked to one device each
 * stay distinct.
 */
#ifndef RONDO_CPU_ORDINALS_H
#define RONDO_CPU_ORDINALS_H

#include "device/device.h"

#define RONDO_CPU_MAX_DEVICES 1024

#ifdef __cplusplus
extern "C" {
#endif

/* Visible devices; constant for a process. */
int rondo_cpu_device_count(void);

/* ncclInvalidArgument, with the range in the text, unless 0 <= device < count. */
ncclResult_t rondo_cpu_device_check(int device);

/* Bytes of memory of one device; constant. */
uint64_t rondo_cpu_device_capacity(void);

ncclResult_t rondo_cpu_device_properties(int device, struct rondo_device_properties *properties_out);

/* The list of CUDA_VISIBLE_DEVICES (NULL: not set) applied to `physical` devices; writes at most that many
 * ordinals and returns how many. Cut at the first entry that is malformed, unknown or a repetition. For
 * tests; pure but for the host's hash. */
int rondo_cpu_visible(const char *list, int physical, int *ordinals_out);

#ifdef __cplusplus
}
#endif
#endif
