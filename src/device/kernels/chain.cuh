/*
 * chain.cuh - reductions that fold ranks 0 .. n-1 in order for every element (RONDO_DETERMINISTIC).
 *
 * A ring whose order is the ranks' carries items: partial sums up to rank n-1, results from there on to who
 * needs them. schedule.h has the order of jobs and why it ends. No element's fold depends on where items are
 * cut.
 */
#ifndef RONDO_KERNELS_CHAIN_CUH
#define RONDO_KERNELS_CHAIN_CUH

#include "kernels/ring.cuh"

namespace RONDO_KERNELS
{

/* One item: where it lies in the buffers, and how far its result travels. */
struct chain_item {
    uint64_t own, keep, count; /* elements */
    uint32_t last;             /* last rank that the result passes on to; n - 1: it stays there */
    bool keeps;                /* whether this rank wants it */
};

/* All-reduce and reduce: consecutive pieces. Reduce-scatter: the piece of block 0, of block 1, ..; then the
 * next pieces. */
RONDO_INLINE uint64_t chain_items(const struct rondo_work &w, uint32_t n)
{
    return rondo_pieces(w.count, w.chunk) * (w.kind == RONDO_WORK_CHAIN_REDUCE_SCATTER ? n : 1);
}

RONDO_INLINE chain_item chain_item_at(const struct rondo_work &w, uint32_t rank, uint32_t n, uint64_t t)
{
    bool scatters = w.kind == RONDO_WORK_CHAIN_REDUCE_SCATTER;
    uint32_t block = scatters ? (uint32_t)(t % n) : 0;
    struct rondo_part piece = rondo_piece(w.count, w.chunk, scatters ? t / n : t);
    chain_item item = {block * w.stride + piece.first, piece.first, piece.count, n - 2, true};

    if (w.kind != RONDO_WORK_CHAIN_ALL_REDUCE) {
        item.last = scatters ? block : (uint32_t)w.root;
        item.keeps = rank == item.last;
    }
    return item;
}

template <class Folder>
RONDO_INLINE bool chain_job(const struct rondo_work &w, Folder &folder, enum rondo_action action,
                            const chain_item &item)
{
    uint64_t bytes = folder.spans.element_bytes();

    return folder.part(action, own_at(w, item.own, bytes),
                       item.keeps ? keep_at(w, item.keep, bytes) : nullptr, item.count);
}

template <class Folder> RONDO_OUTLINE bool chain_reduction(const job &j, Folder &folder)
{
    const struct rondo_work &w = *j.work;
    uint32_t n = (uint32_t)j.args->ranks, rank = (uint32_t)j.args->rank;
    uint64_t items = chain_items(w, n), lag = rondo_chain_lag(n, Folder::window);

    for (uint64_t t = 0; t < items + lag; t++) {
        if (t < items) {
            chain_item item = chain_item_at(w, rank, n, t);

            if (!chain_job(w, folder, rondo_chain_partial(rank, n, item.last), item))
                return false;
        }
        if (t >= lag) {
            chain_item item = chain_item_at(w, rank, n, t - lag);

            if (!chain_job(w, folder, rondo_chain_result(rank, n, item.last), item))
                return false;
        }
    }
    return true;
}

} // namespace RONDO_KERNELS

#endif
