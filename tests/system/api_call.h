/*
 * api_call.h - every operation of the interface as a test sees it: buffers, the call, and what must come
 * out.
 */
#ifndef RONDO_TESTS_API_CALL_H
#define RONDO_TESTS_API_CALL_H

#include "forked_job.h"
#include "guarded.h"

#include <memory>
#include <vector>

enum Operation {
    ALL_REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    BCAST,
    REDUCE,
    ALL_TO_ALL,
    GATHER,
    SCATTER,
    SEND_RECV,  /* each rank to its right neighbour */
    SEND_PAIRS, /* every pair, sizes differing by pair */
    NUM_OPERATIONS
};

extern const char *const operation_names[NUM_OPERATIONS];
bool operation_reduces(Operation operation);
bool operation_has_root(Operation operation);
bool operation_has_in_place(Operation operation);

struct Call {
    Operation operation;
    ncclDataType_t type;
    ncclRedOp_t redop;
    bool in_place;
    size_t count; /* as the API means it */
    int root;
    Guarded::Side side;
    size_t offset;     /* bytes the buffers start behind a page, START only */
    int device_memory; /* whose buffers are in device memory: 0 nobody's, 1 everybody's, 2 those of odd ranks */
    uint64_t seed;
};

/* The buffers of one rank for one call. */
struct Buffers {
    std::unique_ptr<Guarded> send, recv; /* in place: send is null and the call uses recv */
    const void *send_argument;
    void *recv_argument;
};

Buffers make_buffers(const Call &call, int rank, int ranks);

/* The API call(s); inside a group when the caller opened one (SEND_RECV and SEND_PAIRS open their own,
 * nested). */
ncclResult_t issue(const Call &call, const LocalRank &local, int ranks, const Buffers &buffers);

/* Compare every element and the surroundings; "" or what differs. */
std::string verify(const Call &call, int rank, int ranks, const Buffers &buffers);

std::string describe(const Call &call);

#endif
