/*
 * trees.c - the binary trees between hosts, by arithmetic on a host's number, and the chains inside.
 *
 * Hosts have numbers in the order of their lowest ranks, and places in each tree. The lowest bit that is set
 * in a place says how far above the leaves it is: odd places are leaves, and the parent of a place is the one
 * with the next higher bit as its lowest, where that exists. An even number of hosts has places from 0 on,
 * where 0 is the root, above the highest power of two; in the second tree they are in reverse. An odd number
 * has places from 1 on, and the highest power of two is the root; in the second tree each host is a place
 * lower, and the first is the last. Either way nobody has an even place, one with others below it, in both.
 */
#include "topology/trees.h"

#include "places.h"

#include <stdbool.h>

/* Of so many hosts in one of the trees: the place of one; and back. */
static int place_of(int host, int hosts, int tree)
{
    if (hosts % 2 == 0)
        return tree == 0 ? host : hosts - 1 - host;
    return tree == 0 ? host + 1 : host == 0 ? hosts : host;
}

static int host_at(int place, int hosts, int tree)
{
    if (hosts % 2 == 0)
        return tree == 0 ? place : hosts - 1 - place;
    return tree == 0 ? place - 1 : place % hosts;
}

/* -1: that host is the root. */
static int host_above(int host, int hosts, int tree)
{
    int place = place_of(host, hosts, tree), first = hosts % 2;
    int bit = place & -place, without = place - bit, above = without | bit << 1;

    if (place == 0)
        return -1;
    if (above >= hosts + first)
        above = without;
    return above < first ? -1 : host_at(above, hosts, tree);
}

/* Hosts whose lowest rank is below this one. */
static int count_hosts(const struct rondo_place *places, int rank)
{
    int hosts = 0;

    for (int lower = 0; lower < rank; lower++)
        hosts += is_lowest(places, lower, is_same_host);
    return hosts;
}

/* The next rank of the same host from here on, in steps of 1 or -1; -1: there is none. */
static int find_neighbour(const struct rondo_place *places, int ranks, int rank, int step)
{
    for (int other = rank + step; other >= 0 && other < ranks; other += step) {
        if (is_same_host(&places[other], &places[rank]))
            return other;
    }
    return -1;
}

/* Visit the hosts: the parent's lowest rank, those of the children, and how many of the parent's children
 * come before this host. */
static void join_hosts(const struct rondo_place *places, int ranks, int rank, int tree, uint32_t count,
                       struct rondo_tree_node *node)
{
    int hosts = count_hosts(places, ranks), own = count_hosts(places, rank);
    int above = host_above(own, hosts, tree);

    for (int head = 0, host = 0; head < ranks; head++) {
        if (!is_lowest(places, head, is_same_host))
            continue;
        int above_it = host_above(host, hosts, tree);
        if (host == above) {
            node->parent = head;
            node->as_child += find_neighbour(places, ranks, head, 1) >= 0;
        }
        if (above >= 0 && above_it == above && host < own)
            node->as_child++;
        if (above_it == own && count < RONDO_TREE_CHILDREN)
            node->child[count++] = head;
        host++;
    }
}

void rondo_tree_build(const struct rondo_place *places, int ranks, int rank, int tree,
                      struct rondo_tree_node *node_out)
{
    struct rondo_tree_node node = {.parent = find_neighbour(places, ranks, rank, -1), .child = {-1, -1, -1}};
    int next = find_neighbour(places, ranks, rank, 1);
    uint32_t count = 0;

    if (next >= 0)
        node.child[count++] = next;
    if (node.parent < 0)
        join_hosts(places, ranks, rank, tree, count, &node);
    *node_out = node;
}

uint32_t rondo_tree_levels(const struct rondo_place *places, int ranks)
{
    int hosts = count_hosts(places, ranks);
    uint32_t longest = 0, levels = 0;

    for (int head = 0; head < ranks; head++) {
        uint32_t chain = 0;
        if (!is_lowest(places, head, is_same_host))
            continue;
        for (int rank = head; rank >= 0; rank = find_neighbour(places, ranks, rank, 1))
            chain++;
        longest = chain > longest ? chain : longest;
    }
    while (((hosts - 1) >> levels) > 0)
        levels++;
    return longest + levels;
}
