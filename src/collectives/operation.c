/* operation.c - the rows of operations.def. */
#include "collectives/operation.h"

const struct rondo_facts *rondo_operation_facts(enum rondo_operation operation)
{
    static const struct rondo_facts unknown = {.name = "unknown operation"};
    static const struct rondo_facts facts[RONDO_OP_NUM] = {
        [RONDO_OP_NONE] = {.name = "None"},
#define RONDO_OPERATION(id, name, travel, root, reduces, send, recv, send_blocks, recv_blocks) \
    [RONDO_OP_##id] = {#name,                                                                  \
                       RONDO_TRAVEL_##travel,                                                  \
                       RONDO_ROOT_##root,                                                      \
                       reduces,                                                                \
                       RONDO_USERS_##send,                                                     \
                       RONDO_USERS_##recv,                                                     \
                       send_blocks,                                                            \
                       recv_blocks},
#include "device/operations.def"
#undef RONDO_OPERATION
    };

    return (unsigned)operation < RONDO_OP_NUM ? &facts[operation] : &unknown;
}

const char *rondo_operation_name(enum rondo_operation operation)
{
    return rondo_operation_facts(operation)->name;
}

bool rondo_operation_is_message(enum rondo_operation operation)
{
    return rondo_operation_facts(operation)->root == RONDO_ROOT_PEER;
}
