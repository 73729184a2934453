/*
 * arena.h - the memory of the devices: one sparse, sealed memfd a device, and host memory that is known as
 * such.
 *
 * An arena is made at the device's first allocation and lives as long as the process. Its seals forbid
 * changing the size, so that no process that maps it can make another's access fail. Released memory goes
 * back to the system at once and comes zeroed if it is allocated again. All functions lock by themselves.
 */
#ifndef RONDO_CPU_ARENA_H
#define RONDO_CPU_ARENA_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As the slots of the same names in device.h; is_lasting: of allocate_lasting. */
ncclResult_t rondo_arena_allocate(int device, size_t bytes, bool is_lasting, void **pointer_out);
ncclResult_t rondo_arena_release(void *pointer);
ncclResult_t rondo_arena_name(const void *pointer, struct rondo_memory_name *name_out);
ncclResult_t rondo_arena_export(int device, int *fd_out);
ncclResult_t rondo_arena_map(int fd, uint64_t arena_bytes, void **base_out);
ncclResult_t rondo_arena_unmap(void *base, uint64_t arena_bytes);
ncclResult_t rondo_arena_info(int device, uint64_t *free_out, uint64_t *total_out);
ncclResult_t rondo_pinned_allocate(size_t bytes, void **pointer_out);
ncclResult_t rondo_pinned_release(void *pointer);
ncclResult_t rondo_pointer_query(const void *pointer, struct rondo_pointer_info *info_out);

/* Release every allocation of the device that is not lasting. */
void rondo_arena_reset(int device);

/* A memfd of bytes that can change neither size nor seals, mapped. Used for arenas and the switchboard; what
 * names it in messages. */
ncclResult_t rondo_sealed_create(const char *what, uint64_t bytes, int *fd_out, void **base_out);

/* Map a descriptor that a peer sent, after checking that it is such a memfd of exactly bytes. */
ncclResult_t rondo_sealed_map(const char *what, int fd, uint64_t bytes, void **base_out);

/* Duplicate, close-on-exec. */
ncclResult_t rondo_sealed_export(const char *what, int fd, int *fd_out);

#ifdef __cplusplus
}
#endif
#endif
