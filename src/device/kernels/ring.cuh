/*
 * ring.cuh - the ring collectives: schedule.h says what happens to which part, the protocol does it.
 *
 * Ends move parts by their protocol, and a Folder over them reduces parts (ends.cuh). Data movement has no
 * type: its parts are bytes. All return false when stopped.
 */
#ifndef RONDO_KERNELS_RING_CUH
#define RONDO_KERNELS_RING_CUH

#include "kernels/ends.cuh"

namespace RONDO_KERNELS
{

/* One work's ring, as this rank sees it. */
struct ring {
    const int32_t *order;
    uint32_t n, position;

    RONDO_MEMBER explicit ring(const job &j)
        : order(j.args->order + (uint64_t)j.work->channel * (uint32_t)j.args->ranks),
          n((uint32_t)j.args->ranks), position((uint32_t)j.args->position[j.work->channel])
    {
    }

    RONDO_MEMBER uint32_t position_of(int32_t rank) const
    {
        uint32_t at = 0;

        while (at < n - 1 && order[at] != rank)
            at++;
        return at;
    }
};

template <class Folder> RONDO_OUTLINE bool ring_all_reduce(const job &j, Folder &folder)
{
    const struct rondo_work &w = *j.work;
    const ring r(j);
    uint64_t bytes = folder.spans.element_bytes();
    uint64_t loops = rondo_ring_loops(w.count, r.n, w.chunk);

    for (uint64_t loop = 0; loop < loops; loop++) {
        for (uint32_t s = 0; s < RONDO_ALL_REDUCE_STEPS(r.n); s++) {
            struct rondo_step step = rondo_all_reduce_step(r.position, r.n, s);
            struct rondo_part part = rondo_ring_chunk(w.count, r.n, w.chunk, loop, step.part);

            if (!folder.part(step.action, own_at(w, part.first, bytes), keep_at(w, part.first, bytes),
                             part.count))
                return false;
        }
    }
    return true;
}

template <class Folder> RONDO_OUTLINE bool ring_reduce_scatter(const job &j, Folder &folder)
{
    const struct rondo_work &w = *j.work;
    const ring r(j);
    uint64_t bytes = folder.spans.element_bytes();

    for (uint64_t i = 0; i < rondo_pieces(w.count, w.chunk); i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        for (uint32_t s = 0; s < r.n; s++) {
            struct rondo_step step = rondo_reduce_scatter_step(r.position, r.n, s);
            uint64_t block = (uint64_t)r.order[step.part] * w.stride;

            if (!folder.part(step.action, own_at(w, block + part.first, bytes), keep_at(w, part.first, bytes),
                             part.count))
                return false;
        }
    }
    return true;
}

template <class Folder> RONDO_OUTLINE bool ring_reduce(const job &j, Folder &folder)
{
    const struct rondo_work &w = *j.work;
    const ring r(j);
    uint64_t bytes = folder.spans.element_bytes();
    enum rondo_action action = rondo_reduce_action(r.position, r.n, r.position_of(w.root));

    for (uint64_t i = 0; i < rondo_pieces(w.count, w.chunk); i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        if (!folder.part(action, own_at(w, part.first, bytes), keep_at(w, part.first, bytes), part.count))
            return false;
    }
    return true;
}

/* The own block goes to its place in recv on the way, unless it lies there already. */
template <class Ends> RONDO_OUTLINE bool ring_all_gather(const job &j, Ends &ends, uint64_t bytes)
{
    const struct rondo_work &w = *j.work;
    const ring r(j);

    for (uint64_t i = 0; i < rondo_pieces(w.count, w.chunk); i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        for (uint32_t s = 0; s < r.n; s++) {
            struct rondo_step step = rondo_all_gather_step(r.position, r.n, s);
            uint64_t block = (uint64_t)r.order[step.part] * w.stride;

            if (!move_part(ends, step.action, own_at(w, part.first, bytes),
                           keep_at(w, block + part.first, bytes), part.count * bytes))
                return false;
        }
    }
    return true;
}

template <class Ends> RONDO_OUTLINE bool ring_broadcast(const job &j, Ends &ends, uint64_t bytes)
{
    const struct rondo_work &w = *j.work;
    const ring r(j);
    enum rondo_action action = rondo_broadcast_action(r.position, r.n, r.position_of(w.root));

    for (uint64_t i = 0; i < rondo_pieces(w.count, w.chunk); i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        if (!move_part(ends, action, own_at(w, part.first, bytes), keep_at(w, part.first, bytes),
                       part.count * bytes))
            return false;
    }
    return true;
}

} // namespace RONDO_KERNELS

#endif
