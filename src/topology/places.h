/* places.h - who is where, as rings and trees look at it. */
#ifndef RONDO_TOPOLOGY_PLACES_H
#define RONDO_TOPOLOGY_PLACES_H

#include "topology/rings.h"

#include <stdbool.h>

static inline bool is_same_host(const struct rondo_place *a, const struct rondo_place *b)
{
    return a->host == b->host;
}

/* Whether no lower rank is at the same place. */
static inline bool is_lowest(const struct rondo_place *places, int rank,
                             bool (*is_same)(const struct rondo_place *, const struct rondo_place *))
{
    for (int lower = 0; lower < rank; lower++) {
        if (is_same(&places[lower], &places[rank]))
            return false;
    }
    return true;
}

#endif
