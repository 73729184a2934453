/*
 * operation.h - what is known of an operation before anybody calls it, from operations.def.
 */
#ifndef RONDO_COLLECTIVES_OPERATION_H
#define RONDO_COLLECTIVES_OPERATION_H

#include "device/work.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rondo_travel { RONDO_TRAVEL_NONE, RONDO_TRAVEL_RING, RONDO_TRAVEL_PAIRS };
enum rondo_root { RONDO_ROOT_NONE, RONDO_ROOT_RANK, RONDO_ROOT_PEER };
enum rondo_users { RONDO_USERS_NONE, RONDO_USERS_ALL, RONDO_USERS_ROOT }; /* of a buffer */

/* A row of operations.def, where the columns are explained. */
struct rondo_facts {
    const char *name;
    enum rondo_travel travel;
    enum rondo_root root;
    bool reduces;
    enum rondo_users send, recv;
    bool send_blocks, recv_blocks;
};

/* Never NULL: a value that is no operation has a name, and nothing else. Pure. */
const struct rondo_facts *rondo_operation_facts(enum rondo_operation operation);

/* "AllReduce" and so on; static text. */
const char *rondo_operation_name(enum rondo_operation operation);

/* Whether it is a send or a receive. Pure. */
bool rondo_operation_is_message(enum rondo_operation operation);

#ifdef __cplusplus
}
#endif

#endif
