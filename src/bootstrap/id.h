/*
 * id.h - what is in a unique id.
 *
 *     bytes    0 ..   7   magic: an id of a root of its own, or the fixed one of NCCL_COMM_ID
 *              8 ..  11   version of this layout
 *             12 ..  15   zero
 *             16 ..  43   the root's address
 *             44 ..  59   the job's secret
 *             60 ..  63   when it was made: milliseconds of the wall clock, cut to 32 bits; zero: not said
 *             64 .. 127   zero
 */
#ifndef RONDO_BOOTSTRAP_ID_H
#define RONDO_BOOTSTRAP_ID_H

#include "base/address.h"
#include "base/auth.h"

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct rondo_id {
    bool is_fixed; /* from NCCL_COMM_ID: rank 0 starts the root, and the others wait for it */
    union rondo_address root;
    struct rondo_secret secret;
    uint32_t made_ms; /* of a root's own id; for rondo_id_age, 0 of a fixed one */
};

/* Note that the id is made now. */
void rondo_id_stamp(struct rondo_id *id);

/* Seconds since an id was made, as far as the hosts' clocks agree; negative: not known. */
double rondo_id_age(uint32_t made_ms);

void rondo_id_write(const struct rondo_id *id, ncclUniqueId *out);

/* ncclInvalidArgument: not an id of ours; the message says why. */
ncclResult_t rondo_id_read(const ncclUniqueId *bytes, struct rondo_id *id_out);

/* The id that text, a value of NCCL_COMM_ID, means. Its secret comes from secret_file, or, when that is NULL,
 * is a public constant; that is warned of once. ncclInvalidArgument: text does not parse. ncclInvalidUsage:
 * the file is unsafe or empty. */
ncclResult_t rondo_id_fixed(const char *text, const char *secret_file, struct rondo_id *id_out);

#endif
