// direct_places.h - what goes from which rank to which in the collectives that go directly.
#ifndef RONDO_TESTS_COLLECTIVES_DIRECT_PLACES_H
#define RONDO_TESTS_COLLECTIVES_DIRECT_PLACES_H

#include "plan_world.h"

#include <algorithm>
#include <utility>
#include <vector>

const rondo_operation kOperations[] = {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER,
                                       RONDO_OP_BROADCAST,  RONDO_OP_REDUCE,     RONDO_OP_ALL_TO_ALL,
                                       RONDO_OP_GATHER,     RONDO_OP_SCATTER};

inline bool IsDirect(const rondo_work &work)
{
    return work.kind >= RONDO_WORK_DIRECT_ALL_REDUCE && work.kind <= RONDO_WORK_DIRECT_SCATTER;
}

// Where element 0 of what rank `to` gets from rank `from` lies, in the one's input and in the other's output.
struct Place {
    bool moves;
    uint64_t source, target, count;
};

inline Place PlaceOf(rondo_operation operation, int to, int from, int root, uint64_t count, uint64_t ranks)
{
    uint64_t own = (uint64_t)to * count, peers = (uint64_t)from * count;
    switch (operation) {
    case RONDO_OP_ALL_GATHER:
        return {true, 0, peers, count};
    case RONDO_OP_GATHER:
        return {to == root, 0, peers, count};
    case RONDO_OP_ALL_TO_ALL:
        return {true, own, peers, count};
    case RONDO_OP_SCATTER:
        return {from == root, own, 0, count};
    case RONDO_OP_BROADCAST:
        return {from == root, 0, 0, count};
    case RONDO_OP_REDUCE_SCATTER:
        return {true, own, 0, count};
    default:
        (void)ranks;
        return {true, 0, 0, count};
    }
}

// Runs [first, first + count) that must be [begin, begin + total) in any order, without gap or overlap.
inline void ExpectCovers(std::vector<std::pair<uint64_t, uint64_t>> runs, uint64_t begin, uint64_t total)
{
    std::sort(runs.begin(), runs.end());
    uint64_t next = begin;
    for (auto [first, count] : runs) {
        if (count == 0)
            continue;
        ASSERT_EQ(first, next);
        next += count;
    }
    ASSERT_EQ(next, begin + total);
}

#endif
