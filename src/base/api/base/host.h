/*
 * host.h - which host and process this is, and fork detection.
 */
#ifndef RONDO_BASE_HOST_H
#define RONDO_BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Hash of what makes processes able to share memory and see each other's death: boot id, host name, and
 * network namespace (abstract Unix sockets live in one). NCCL_HOSTID replaces it when set. Constant for a
 * process. 0, with a recorded error: what it is made of cannot be read now, for lack of descriptors or
 * memory. */
uint64_t rondo_host_hash(void);

/* Host name cut at the first dot; constant. */
const char *rondo_host_name(void);

/* Random and constant for this process; a forked child gets another. */
uint64_t rondo_process_nonce(void);

/* CPUs this process may run on, at least 1. */
int rondo_host_cpus(void);

/* Bytes of memory this process may use: the least of MemTotal and the memory limits of its control groups;
 * and what of it is available now. 0 when unknown. */
uint64_t rondo_host_memory_total(void);
uint64_t rondo_host_memory_available(void);

/* FNV-1a over bytes, chained through seed (0 starts). Not for secrets. */
uint64_t rondo_hash(const void *data, size_t bytes, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
