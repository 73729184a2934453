/*
 * fingerprint.c - what both ends of a connection must agree on, in 64 bits that travel with every slot.
 *
 * The words that must agree are hashed and no others: what may differ between ranks (handles of reductions,
 * scalars, the type of bytes that only move) stays out. The number is in, so that two equal calls in another
 * order differ.
 */
#include "collectives/plan.h"

#include "base/host.h"

uint64_t rondo_fingerprint(const struct rondo_task *task)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);
    /* A receive is the other half of a send: one kind. */
    enum rondo_operation kind = task->operation == RONDO_OP_RECV ? RONDO_OP_SEND : task->operation;
    uint64_t words[] = {
        (uint64_t)kind,
        task->number,
        facts->reduces ? task->count : task->count * rondo_dtype_bytes(task->dtype),
        facts->reduces ? (uint64_t)task->dtype + 1 : 0,
        facts->reduces ? (uint64_t)task->redop + 1 : 0,
        facts->root == RONDO_ROOT_RANK ? (uint64_t)(uint32_t)task->root + 1 : 0,
    };
    uint64_t hash = rondo_hash(words, sizeof(words), 0);

    return hash != 0 ? hash : 1;
}
