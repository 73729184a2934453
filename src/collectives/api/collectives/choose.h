/*
 * choose.h - which algorithm and which protocol an operation takes. Pure: no I/O, no environment, no device.
 *
 * All ranks of a communicator must come to one choice, so it depends on nothing but the operation, its size,
 * and what the ranks have agreed on.
 */
#ifndef RONDO_COLLECTIVES_CHOOSE_H
#define RONDO_COLLECTIVES_CHOOSE_H

#include "collectives/operation.h"
#include "device/protocol.h"

#include "nccl.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rondo_algorithm {
    RONDO_ALGORITHM_RING,   /* with RONDO_DETERMINISTIC, along the ranks */
    RONDO_ALGORITHM_DIRECT, /* each rank and each other one, at once */
    RONDO_ALGORITHM_TREE,   /* up to a root and down again */
    RONDO_ALGORITHM_NUM
};

/* What NCCL_ALGO and NCCL_PROTO leave to each operation. The default allows everything. */
struct rondo_choices {
    uint64_t algorithms; /* RONDO_CHOICE_ALGORITHM_BITS for each operation in their order, by algorithm */
    uint64_t protocols;  /* RONDO_CHOICE_PROTOCOL_BITS likewise */
    uint32_t named;      /* 1 << operation: NCCL_ALGO has an entry for it by its name */
    const char *algorithm_text, *protocol_text; /* the variables' values for messages; NULL: unset */
};

/* Messages come last among operations and have no algorithm. */
#define RONDO_CHOICE_ALGORITHM_BITS 8
#define RONDO_CHOICE_PROTOCOL_BITS 4

/* Read the values of NCCL_ALGO and NCCL_PROTO, NULL when unset. Each is a list of names, separated by commas,
 * that are allowed; ^ before it: all but those. `function:list` is for one function alone, `;` stands between
 * such entries, and the first entry without a function is for all functions that have none of their own.
 * Names are those of NCCL, and Direct, in any case; blanks are not skipped. The texts must live as long as
 * the choices. ncclInvalidUsage: something is no name, a list is empty, or a message is given an algorithm;
 * the text says which and lists the names. */
ncclResult_t rondo_choices_parse(const char *algorithms, const char *protocols,
                                 struct rondo_choices *choices_out);

/* What going directly would be for an operation, by what all ranks agree on: when each rank reads its peers'
 * memory where it lies (Simple), and when each writes into its peers' slots (LL, LL128). */
enum rondo_direct_use { RONDO_DIRECT_IMPOSSIBLE, RONDO_DIRECT_POSSIBLE, RONDO_DIRECT_FASTER };
struct rondo_direct_uses {
    enum rondo_direct_use pulled, oneshot;
    const char
        *obstacle; /* what makes pulled impossible, or both, to follow `Direct: `; NULL: nothing does */
};

struct rondo_choice {
    enum rondo_algorithm algorithm; /* RING, and no meaning, for messages and what is made of them */
    enum rondo_protocol protocol;
};

/* For an operation that moves bytes in all (of a message: its bytes; with a block for each rank: all blocks)
 * among 2 ranks or more. All-to-all, gather and scatter can also be made of messages, which count as Ring
 * where NCCL_ALGO has an entry by their name; entries for all functions never forbid them that.
 * ncclInvalidUsage: what the variables allow does not exist for this operation; the text names the variable,
 * its value, what is possible, and what is in the way of what was asked for. no_tree: what makes it
 * impossible to go by tree, to follow `Tree: `; NULL: nothing does. It goes by tree only where no ring is
 * allowed and going directly is not either, or not by an allowed protocol. */
ncclResult_t rondo_choose(const struct rondo_choices *choices, enum rondo_operation operation, uint64_t bytes,
                          uint32_t ranks, struct rondo_direct_uses direct, const char *no_tree,
                          struct rondo_choice *choice_out);

/* Their words for the variables. Pure; they must be ones of the enumerations. */
const char *rondo_algorithm_name(enum rondo_algorithm algorithm);
const char *rondo_protocol_name(enum rondo_protocol protocol);

#ifdef __cplusplus
}
#endif

#endif
