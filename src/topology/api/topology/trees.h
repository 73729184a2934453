/*
 * trees.h - the two trees of an all-reduce: partial sums go up to a root, results come down again.
 *
 * In a host the ranks are a chain in ascending order, whose first is joined to other hosts. On one host that
 * chain is the whole of both trees: each rank then folds what one other sends, and no rank's work is that of
 * several. Between hosts each of the two is a binary tree, and they complement each other: a host that others
 * hang from in one has none below it in the other, so that two channels, one on either tree, load the hosts'
 * networks evenly. Depth: the longest chain, and the logarithm of the hosts.
 */
#ifndef RONDO_TOPOLOGY_TREES_H
#define RONDO_TOPOLOGY_TREES_H

#include "topology/rings.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDO_TREES 2

/* One in the own host and two in others. */
#define RONDO_TREE_CHILDREN 3

/* A rank's neighbours. Children: the next one in the host, if any, then those in other hosts, in order of the
 * hosts' lowest ranks; -1 behind the last. */
struct rondo_tree_node {
    int32_t parent;    /* -1: this rank is the root */
    uint32_t as_child; /* which of its parent's children this rank is; 0 for the root */
    int32_t child[RONDO_TREE_CHILDREN];
};

/* The neighbours of a rank in one of the trees (below RONDO_TREES). Both ends of every edge name each other.
 * Pure; quadratic in the ranks. */
void rondo_tree_build(const struct rondo_place *places, int ranks, int rank, int tree,
                      struct rondo_tree_node *node_out);

/* No way from a leaf to a root has more ranks than this. Equal on all ranks. Pure. */
uint32_t rondo_tree_levels(const struct rondo_place *places, int ranks);

#ifdef __cplusplus
}
#endif

#endif
