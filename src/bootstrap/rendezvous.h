/*
 * rendezvous.h - a rank's conversation with the root.
 */
#ifndef RONDO_BOOTSTRAP_RENDEZVOUS_H
#define RONDO_BOOTSTRAP_RENDEZVOUS_H

#include "id.h"
#include "mesh.h"

#define RONDO_BOOTSTRAP_VERSION \
    (NCCL_VERSION_CODE * 100u + RONDO_WIRE_VERSION) /* must be equal on all ranks */

/* The address on which a root, or a rank without a root to go by, listens: NCCL_SOCKET_IFNAME's and
 * NCCL_SOCKET_FAMILY's first choice. */
ncclResult_t rondo_rendezvous_interface(union rondo_address *address_out);

/* Open the mesh's gate, report to the root, and wait until it has answered for all ranks. On success the mesh
 * has its session and the addresses of the ranks it talks to first, and its gate serves. The mesh is
 * attached, and the loop's lock held. On failure rendezvous.is_unheard says whether the root should still be
 * told. */
ncclResult_t rondo_rendezvous_meet(struct rondo_bootstrap *mesh, const struct rondo_id *id,
                                   uint64_t deadline);

#endif
