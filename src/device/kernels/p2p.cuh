/*
 * p2p.cuh - send and recv, in bytes, and works without a peer.
 *
 * Both sides cut a message into slots of chunk bytes. A message of 0 bytes is one empty slot, so that it
 * still meets its partner.
 */
#ifndef RONDO_KERNELS_P2P_CUH
#define RONDO_KERNELS_P2P_CUH

#include "kernels/ends.cuh"

namespace RONDO_KERNELS
{

template <class Ends> RONDO_OUTLINE bool p2p_send(const job &j, Ends &ends)
{
    const struct rondo_work &w = *j.work;
    uint64_t slots = w.count ? rondo_pieces(w.count, w.chunk) : 1;

    for (uint64_t i = 0; i < slots; i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        if (!ends.send(own_at(w, part.first, 1), nullptr, part.count))
            return false;
    }
    return true;
}

template <class Ends> RONDO_OUTLINE bool p2p_recv(const job &j, Ends &ends)
{
    const struct rondo_work &w = *j.work;
    uint64_t slots = w.count ? rondo_pieces(w.count, w.chunk) : 1;

    for (uint64_t i = 0; i < slots; i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        if (!ends.take(keep_at(w, part.first, 1), part.count))
            return false;
    }
    return true;
}

/* Works without a peer go in pieces of this many elements; between them a stop is seen and others get to run.
 */
constexpr uint64_t COPY_PIECE = 1 << 18;

RONDO_OUTLINE bool copy_alone(const job &j, uint64_t bytes)
{
    const struct rondo_work &w = *j.work;

    for (uint64_t i = 0; w.send != w.recv && i < rondo_pieces(w.count, COPY_PIECE); i++) {
        struct rondo_part part = rondo_piece(w.count, COPY_PIECE, i);

        copy_bytes(keep_at(w, part.first, bytes), nullptr, own_at(w, part.first, bytes), part.count * bytes);
        if (!may_go_on(j))
            return false;
    }
    return true;
}

template <class Spans> RONDO_OUTLINE bool reduce_alone(const job &j, Spans spans, uint64_t scalar)
{
    const struct rondo_work &w = *j.work;
    uint64_t bytes = spans.element_bytes();

    for (uint64_t i = 0; i < rondo_pieces(w.count, COPY_PIECE); i++) {
        struct rondo_part part = rondo_piece(w.count, COPY_PIECE, i);

        spans.alone(keep_at(w, part.first, bytes), own_at(w, part.first, bytes), part.count, scalar);
        if (!may_go_on(j))
            return false;
    }
    return true;
}

} // namespace RONDO_KERNELS

#endif
