// Every placement of few ranks, and random placements of many, against the promises of rings.h.
#include "topology/rings.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace
{

std::vector<int32_t> Build(const std::vector<rondo_place> &places, int channels)
{
    std::vector<int32_t> order(places.size() * channels + 1, -7);
    rondo_rings_build(places.data(), (int)places.size(), channels, order.data());
    EXPECT_EQ(order.back(), -7) << "wrote past the end";
    order.pop_back();
    return order;
}

// The runs of equal keys along the ring must be one per key, start at the key's lowest rank, and be in order
// of it.
template <typename Key> void ExpectOneRunEach(const std::vector<int32_t> &ring, Key key)
{
    std::set<decltype(key(0))> seen;
    int32_t previous_first = -1;

    for (size_t i = 0; i < ring.size(); i++) {
        if (i > 0 && key(ring[i]) == key(ring[i - 1]))
            continue;
        ASSERT_TRUE(seen.insert(key(ring[i])).second) << "visited twice";
        for (int32_t rank : ring) {
            if (key(rank) == key(ring[i])) {
                ASSERT_GE(rank, ring[i]) << "does not start at its lowest rank";
            }
        }
        ASSERT_GT(ring[i], previous_first) << "not in order of the lowest rank";
        previous_first = ring[i];
    }
}

void ExpectPromises(const std::vector<rondo_place> &places)
{
    int ranks = (int)places.size();
    std::vector<int32_t> order = Build(places, 3);
    std::vector<int32_t> ring(order.begin(), order.begin() + ranks);

    for (int channel = 1; channel < 3; channel++)
        ASSERT_TRUE(std::equal(ring.begin(), ring.end(), order.begin() + channel * ranks));
    ASSERT_EQ(std::set<int32_t>(ring.begin(), ring.end()).size(), (size_t)ranks);
    for (int32_t rank : ring)
        ASSERT_TRUE(rank >= 0 && rank < ranks);
    ExpectOneRunEach(ring, [&](int32_t rank) { return places[rank].host; });

    std::map<uint64_t, std::vector<int32_t>> hosts;
    for (int32_t rank : ring)
        hosts[places[rank].host].push_back(rank);
    for (auto &[host, members] : hosts)
        ExpectOneRunEach(members, [&](int32_t rank) { return places[rank].process; });
    for (int i = 1; i < ranks; i++) {
        const rondo_place &a = places[ring[i - 1]], &b = places[ring[i]];
        if (a.host == b.host && a.process == b.process) {
            ASSERT_LT(ring[i - 1], ring[i]);
        }
    }
}

TEST(Rings, EveryPlacementOfUpToSixRanks)
{
    // A place is one of 2 hosts x 2 processes; the same process number on two hosts is two processes.
    for (int ranks = 1; ranks <= 6; ranks++) {
        for (unsigned code = 0; code < 1u << (2 * ranks); code++) {
            std::vector<rondo_place> places;
            for (int rank = 0; rank < ranks; rank++)
                places.push_back({code >> (2 * rank) & 1, code >> (2 * rank + 1) & 1});
            ASSERT_NO_FATAL_FAILURE(ExpectPromises(places)) << "ranks " << ranks << " code " << code;
        }
    }
}

TEST(Rings, RandomPlacementsOfManyRanks)
{
    std::mt19937 random(1);
    for (int round = 0; round < 50; round++) {
        std::vector<rondo_place> places(1 + random() % 200);
        unsigned hosts = 1 + random() % 20, processes = 1 + random() % 8;
        for (rondo_place &place : places)
            place = {random() % hosts * 0x9e3779b97f4a7c15u, random() % processes * 0xc2b2ae3d27d4eb4fu};
        ASSERT_NO_FATAL_FAILURE(ExpectPromises(places)) << "round " << round;
    }
}

TEST(Rings, OneProcessIsAscending)
{
    std::vector<rondo_place> places(64, rondo_place{5, 6});
    std::vector<int32_t> order = Build(places, 1);
    for (int i = 0; i < 64; i++)
        EXPECT_EQ(order[i], i);
}

TEST(Rings, RoundRobinOverTwoHostsIsSorted)
{
    std::vector<rondo_place> places;
    for (int rank = 0; rank < 8; rank++)
        places.push_back({(uint64_t)(rank % 2), (uint64_t)rank});
    EXPECT_EQ(Build(places, 1), (std::vector<int32_t>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(Rings, NothingToDo)
{
    int32_t untouched = 9;
    rondo_rings_build(nullptr, 0, 4, &untouched);
    rondo_place place{1, 1};
    rondo_rings_build(&place, 1, 0, &untouched);
    EXPECT_EQ(untouched, 9);
}

} // namespace
