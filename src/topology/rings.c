/*
 * rings.c - the order of the ranks on each ring, from who shares a host and a process with whom.
 *
 * Three nested walks in ascending order: hosts by their lowest rank, in each its processes likewise, in each
 * its ranks. Quadratic, and therefore without memory of its own: nothing here can fail.
 */
#include "topology/rings.h"

#include "places.h"

#include <stdbool.h>
#include <string.h>

static bool is_same_process(const struct rondo_place *a, const struct rondo_place *b)
{
    return a->host == b->host && a->process == b->process;
}

/* Append the ranks of the process whose lowest rank is `first`; returns the new length. */
static int append_process(const struct rondo_place *places, int ranks, int first, int32_t *order, int length)
{
    for (int rank = first; rank < ranks; rank++) {
        if (is_same_process(&places[first], &places[rank]))
            order[length++] = rank;
    }
    return length;
}

static int append_host(const struct rondo_place *places, int ranks, int first, int32_t *order, int length)
{
    for (int rank = first; rank < ranks; rank++) {
        if (is_same_host(&places[first], &places[rank]) && is_lowest(places, rank, is_same_process))
            length = append_process(places, ranks, rank, order, length);
    }
    return length;
}

void rondo_rings_build(const struct rondo_place *places, int ranks, int channels, int32_t *order)
{
    int length = 0;

    if (ranks <= 0 || channels <= 0)
        return;
    for (int rank = 0; rank < ranks; rank++) {
        if (is_lowest(places, rank, is_same_host))
            length = append_host(places, ranks, rank, order, length);
    }
    for (int channel = 1; channel < channels; channel++)
        memcpy(order + (size_t)channel * (size_t)ranks, order, (size_t)ranks * sizeof(*order));
}
