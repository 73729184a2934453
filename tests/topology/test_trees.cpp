// The promises of trees.h, from the neighbours of all ranks together: for every number of hosts up to 64 and
// some large ones, and for ranks spread over them in several ways.
#include "topology/trees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace
{

using Tree = std::vector<rondo_tree_node>;

Tree Build(const std::vector<rondo_place> &places, int tree)
{
    Tree nodes(places.size());

    for (int rank = 0; rank < (int)places.size(); rank++)
        rondo_tree_build(places.data(), (int)places.size(), rank, tree, &nodes[rank]);
    return nodes;
}

int Children(const rondo_tree_node &node)
{
    int count = 0;

    while (count < RONDO_TREE_CHILDREN && node.child[count] >= 0)
        count++;
    return count;
}

// Children that other hosts have below a rank.
int Foreign(const std::vector<rondo_place> &places, const Tree &nodes, int rank)
{
    int count = 0;

    for (int c = 0; c < Children(nodes[rank]); c++)
        count += places[nodes[rank].child[c]].host != places[rank].host;
    return count;
}

// Both ends of every edge name each other, there is one root, and everybody reaches it in few steps.
void ExpectTree(const std::vector<rondo_place> &places, const Tree &nodes)
{
    int ranks = (int)nodes.size(), roots = 0;
    uint32_t levels = rondo_tree_levels(places.data(), ranks);

    for (int rank = 0; rank < ranks; rank++) {
        const rondo_tree_node &node = nodes[rank];
        for (int c = Children(node); c < RONDO_TREE_CHILDREN; c++)
            ASSERT_EQ(node.child[c], -1) << "a gap among the children";
        for (int c = 0; c < Children(node); c++) {
            ASSERT_LT(node.child[c], ranks);
            ASSERT_EQ(nodes[node.child[c]].parent, rank);
            ASSERT_EQ(nodes[node.child[c]].as_child, (uint32_t)c);
        }
        roots += node.parent < 0;
        if (node.parent >= 0) {
            ASSERT_EQ(nodes[node.parent].child[node.as_child], rank);
        }
        uint32_t way = 1;
        for (int at = rank; nodes[at].parent >= 0; at = nodes[at].parent)
            ASSERT_LE(++way, levels) << "rank " << rank << " is too far from the root, or goes in circles";
    }
    ASSERT_EQ(roots, 1);
}

// In a host a chain of ascending ranks, and one rank that is joined to others.
void ExpectChains(const std::vector<rondo_place> &places, const Tree &nodes)
{
    std::map<uint64_t, std::vector<int>> hosts;

    for (int rank = 0; rank < (int)nodes.size(); rank++)
        hosts[places[rank].host].push_back(rank);
    for (const auto &[host, chain] : hosts)
        for (size_t i = 0; i < chain.size(); i++) {
            const rondo_tree_node &node = nodes[chain[i]];
            if (i > 0) {
                ASSERT_EQ(node.parent, chain[i - 1]);
            }
            if (i + 1 < chain.size()) {
                ASSERT_EQ(node.child[0], chain[i + 1]);
            }
            ASSERT_LE(Foreign(places, nodes, chain[i]), i == 0 ? 2 : 0);
        }
}

// Hosts with others below them in both trees.
int InteriorTwice(const std::vector<rondo_place> &places, const Tree &first, const Tree &second)
{
    int count = 0;

    for (int rank = 0; rank < (int)places.size(); rank++)
        count += Foreign(places, first, rank) > 0 && Foreign(places, second, rank) > 0;
    return count;
}

void ExpectPromises(const std::vector<rondo_place> &places)
{
    Tree first = Build(places, 0), second = Build(places, 1);

    for (const Tree *tree : {&first, &second}) {
        ASSERT_NO_FATAL_FAILURE(ExpectTree(places, *tree));
        ASSERT_NO_FATAL_FAILURE(ExpectChains(places, *tree));
    }
    ASSERT_EQ(InteriorTwice(places, first, second), 0);
}

// per_host ranks on each of so many hosts: one host after the other, or dealt round.
std::vector<rondo_place> Places(int hosts, int per_host, bool is_dealt)
{
    std::vector<rondo_place> places((size_t)hosts * per_host);

    for (int rank = 0; rank < (int)places.size(); rank++)
        places[rank].host = 1000 + (uint64_t)(is_dealt ? rank % hosts : rank / per_host);
    return places;
}

TEST(Trees, OneRankOnEachHost)
{
    for (int hosts = 1; hosts <= 64; hosts++) {
        SCOPED_TRACE(hosts);
        ASSERT_NO_FATAL_FAILURE(ExpectPromises(Places(hosts, 1, false)));
    }
}

TEST(Trees, DepthIsTheLogarithmOfTheHosts)
{
    for (int hosts : {1, 2, 3, 4, 5, 8, 9, 64, 65, 128, 200, 513}) {
        SCOPED_TRACE(hosts);
        std::vector<rondo_place> places = Places(hosts, 1, false);
        uint32_t logarithm = 0;
        while (1 << logarithm < hosts)
            logarithm++;
        EXPECT_EQ(rondo_tree_levels(places.data(), hosts), 1 + logarithm);
        ASSERT_NO_FATAL_FAILURE(ExpectPromises(places));
    }
}

TEST(Trees, SomeRanksOnEachHost)
{
    for (int hosts = 1; hosts <= 20; hosts++)
        for (int per_host : {2, 3, 8})
            for (bool is_dealt : {false, true}) {
                SCOPED_TRACE(testing::Message()
                             << hosts << " hosts of " << per_host << " ranks, dealt " << is_dealt);
                std::vector<rondo_place> places = Places(hosts, per_host, is_dealt);
                uint32_t between = rondo_tree_levels(places.data(), hosts * per_host) - (uint32_t)per_host;
                ASSERT_EQ(between, rondo_tree_levels(Places(hosts, 1, false).data(), hosts) - 1);
                ASSERT_NO_FATAL_FAILURE(ExpectPromises(places));
            }
}

TEST(Trees, AnyPlacement)
{
    std::mt19937 random(1);

    for (int round = 0; round < 200; round++) {
        std::vector<rondo_place> places(1 + random() % 60);
        uint64_t hosts = 1 + random() % places.size();
        for (rondo_place &place : places)
            place = {random() % hosts, random() % 3};
        SCOPED_TRACE(round);
        ASSERT_NO_FATAL_FAILURE(ExpectPromises(places));
    }
}

// On one host both are the chain of all ranks.
TEST(Trees, OneHostIsAChain)
{
    for (int ranks = 1; ranks <= 64; ranks++) {
        std::vector<rondo_place> places = Places(1, ranks, false);
        ASSERT_EQ(rondo_tree_levels(places.data(), ranks), (uint32_t)ranks);
        for (int tree = 0; tree < RONDO_TREES; tree++) {
            Tree nodes = Build(places, tree);
            for (int rank = 0; rank < ranks; rank++) {
                ASSERT_EQ(nodes[rank].parent, rank - 1);
                ASSERT_EQ(Children(nodes[rank]), rank + 1 < ranks ? 1 : 0);
            }
        }
    }
}

// The two roots are different hosts as soon as there are two.
TEST(Trees, RootsDiffer)
{
    for (int hosts = 2; hosts <= 64; hosts++) {
        std::vector<rondo_place> places = Places(hosts, 1, false);
        Tree first = Build(places, 0), second = Build(places, 1);
        for (int rank = 0; rank < hosts; rank++)
            ASSERT_FALSE(first[rank].parent < 0 && second[rank].parent < 0) << hosts << " hosts";
    }
}

} // namespace
