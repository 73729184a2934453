/*
 * fingerprint.c - what both ends of a connection must agree on, in 64 bits that travel with every slot.
 *
 * The words that must agree are hashed and no others: what may differ between ranks (handles of reductions,
 * scalars, the type of bytes that only move) stays out. The number is in, so that two equal calls in another
 * order differ.
 */
#include "collectives/plan.h"

#include <stddef.h>

/* Takes every word to another hash, for one hash, and every hash to another, for one word: each step can be
 * undone. So tasks that differ in one word have different ones (but for 0, which becomes 1). The factor is
 * 2^64 over the golden ratio, made odd (Knuth, The Art of Computer Programming 3, 6.4). Not base/host.h's hash, which
 * goes by bytes: this is a good part of what planning a small call costs. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

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
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        hash = mix(hash, words[i]);
    return hash != 0 ? hash : 1;
}
