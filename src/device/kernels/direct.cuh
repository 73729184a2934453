/*
 * direct.cuh - the direct collectives: every rank reads what it needs from its peers' memory, where it lies.
 *
 * pull.h has the arithmetic and direct_ends.cuh the messages. Nobody writes a peer's memory but lines, heads
 * and slots. Reductions fold the ranks in order 0 .. n-1, in the accumulator's type to the end.
 */
#ifndef RONDO_KERNELS_DIRECT_CUH
#define RONDO_KERNELS_DIRECT_CUH

#include "kernels/direct_ends.cuh"
#include "kernels/numeric.cuh"

namespace RONDO_KERNELS
{

/* This rank's input, on its way to the others. */
struct direct_input {
    const direct_ends &ends;

    RONDO_MEMBER bool is_bounced() const
    {
        return ends.work.flags & RONDO_WORK_BOUNCE_SEND;
    }

    RONDO_MEMBER bool has_reader(uint32_t r) const
    {
        return r != ends.own && rondo_pull_reads(&ends.pull, r, ends.own);
    }

    RONDO_MEMBER unsigned char *half(uint64_t i) const
    {
        uint64_t bytes = rondo_pull_chunks(&ends.pull) * ends.pull.chunk * ends.bytes;

        return ends.work.bounce + i % 2 * bytes;
    }

    /* All lanes: piece i into its half of the bounce area. */
    RONDO_MEMBER void copy_piece(uint64_t i) const
    {
        const struct rondo_pull &pull = ends.pull;

        if (pull.shape == RONDO_PULL_PARTS) { /* one run, whoever reads it */
            copy_bytes(half(i), nullptr, own_at(ends.work, i * pull.ranks * pull.chunk, ends.bytes),
                       rondo_pull_piece(&pull, i) * ends.bytes);
            return;
        }
        for (uint32_t r = 0; r < pull.ranks; r++) {
            struct rondo_part part = rondo_pull_source(&pull, i, r);

            if (!has_reader(r))
                continue;
            copy_bytes(half(i) + rondo_pull_offset(&pull, i, r) * ends.bytes, nullptr,
                       own_at(ends.work, part.first, ends.bytes), part.count * ends.bytes);
            if (pull.shape == RONDO_PULL_PLAIN)
                break; /* the same for all of them */
        }
    }

    /* Lane 0: wait until the half that piece i needs has been read. Of parts, the results of piece i - 2 have
     * said so. */
    RONDO_MEMBER bool is_free() const
    {
        for (uint32_t k = 1; k < ends.pull.ranks; k++) {
            uint32_t r = ends.behind(k);

            if (ends.pull.shape != RONDO_PULL_PARTS && has_reader(r) && !ends.consumed(r, 1))
                return false;
        }
        return true;
    }

    RONDO_MEMBER bool tell(const void *address, bool is_whole, uint64_t counted) const
    {
        for (uint32_t k = 1; k < ends.pull.ranks; k++) {
            uint32_t r = ends.behind(k);

            if (has_reader(r) && !ends.offer(r, address, is_whole, counted))
                return false;
        }
        return true;
    }

    RONDO_MEMBER bool has_any_reader() const
    {
        return has_reader(ends.behind(1)) || has_reader(ends.pull.root);
    }

    /* All lanes: let the readers have piece i; of an input that they can read, all at once. */
    RONDO_OUTLINED_MEMBER bool all_offer(uint64_t i) const
    {
        bool told = true;

        if (!has_any_reader() || (i > 0 && !is_bounced()))
            return true;
        if (is_bounced()) {
            if (!agree(lane_index() != 0 || is_free()))
                return false;
            copy_piece(i);
        }
        barrier();
        if (lane_index() == 0)
            told = is_bounced() ? tell(half(i), false, rondo_pull_piece(&ends.pull, i))
                                : tell(ends.work.send, true, rondo_pull_whole(&ends.pull));
        return agree(told);
    }
};

/* The inputs of the others, as this rank reads them. */
struct direct_inputs {
    const direct_ends &ends;

    RONDO_MEMBER bool is_whole(uint32_t r) const
    {
        return load_plain(&ends.work.peers[r].is_whole) != 0;
    }

    /* Lane 0: have rank r's piece i, and say in sources where. */
    RONDO_MEMBER bool have(uint32_t r, uint64_t i) const
    {
        const struct rondo_pull &pull = ends.pull;
        struct rondo_peer_ends &peer = ends.work.peers[r];

        if (i == 0 || !is_whole(r)) {
            const unsigned char *at = nullptr;
            struct rondo_offer offered;

            if (!ends.accept(r, rondo_pull_piece(&pull, i), rondo_pull_whole(&pull), at, offered))
                return false;
            store_plain(&peer.offered, at);
            store_plain(&peer.is_whole, offered.is_whole);
            store_plain(&peer.scalar, offered.scalar);
        }
        uint64_t offset =
            is_whole(r) ? rondo_pull_source(&pull, i, ends.own).first : rondo_pull_offset(&pull, i, ends.own);
        ends.set_source(r, load_plain(&peer.offered) + offset * ends.bytes, load_plain(&peer.scalar));
        return true;
    }

    /* Lane 0: piece i of rank r has been read. Of parts the slot is free before that (see the results). */
    RONDO_MEMBER void drop(uint32_t r, uint64_t i) const
    {
        bool is_parts = ends.pull.shape == RONDO_PULL_PARTS;

        if (!is_whole(r) || i == (is_parts ? 0 : ends.pull.pieces - 1))
            ends.release(r);
    }

    /* All lanes: copy this rank's share of piece i of rank r. */
    RONDO_OUTLINED_MEMBER bool all_copy(uint32_t r, uint64_t i, void *to) const
    {
        uint64_t count = rondo_pull_source(&ends.pull, i, ends.own).count;

        return ends.all_read(
            r, to, count, [&] { return have(r, i); }, [&] { drop(r, i); });
    }

    /* Lane 0: take all gates, or none. */
    RONDO_MEMBER bool enter_gates() const
    {
        for (uint32_t k = 1; k < ends.pull.ranks; k++) {
            if (ends.enter_gate(ends.behind(k)))
                continue;
            uint32_t closed = ends.behind(k);
            while (--k > 0)
                (void)ends.leave_gate(ends.behind(k));
            return ends.wait_for_stop(closed);
        }
        return true;
    }

    RONDO_MEMBER bool leave_gates() const
    {
        uint32_t revoked = ends.own;

        for (uint32_t k = 1; k < ends.pull.ranks; k++) {
            if (!ends.leave_gate(ends.behind(k)))
                revoked = ends.behind(k);
        }
        return revoked == ends.own || ends.wait_for_stop(revoked);
    }

    /* All lanes: open this rank's share of piece i of all ranks, once there is room for the result. */
    template <class Results> RONDO_OUTLINED_MEMBER bool all_open(uint64_t i, const Results &results) const
    {
        bool may = true;

        if (lane_index() == 0) {
            may = results.is_free();
            ends.set_source(ends.own,
                            own_at(ends.work, rondo_pull_source(&ends.pull, i, ends.own).first, ends.bytes),
                            ends.scalar);
            for (uint32_t k = 1; k < ends.pull.ranks && may; k++)
                may = have(ends.behind(k), i);
            may = may && enter_gates();
        }
        return agree(may);
    }

    RONDO_OUTLINED_MEMBER bool all_shut(uint64_t i) const
    {
        bool may = true;

        barrier();
        if (lane_index() == 0) {
            may = leave_gates();
            for (uint32_t k = 1; k < ends.pull.ranks && may; k++)
                drop(ends.behind(k), i);
        }
        return agree(may);
    }
};

/* All-gather, broadcast, all-to-all, gather, scatter. */
RONDO_INLINE bool direct_move_pieces(const direct_ends &ends)
{
    const direct_input input{ends};
    const direct_inputs inputs{ends};

    for (uint64_t i = 0; i < ends.pull.pieces; i++) {
        if (!may_go_on(ends.of) || !input.all_offer(i))
            return false;
        for (uint32_t k = 0; k < ends.pull.ranks; k++) {
            uint32_t r = ends.behind(k);
            void *to = keep_at(ends.work, rondo_pull_target(&ends.pull, i, r), ends.bytes);

            if (!rondo_pull_reads(&ends.pull, ends.own, r))
                continue;
            if (r != ends.own) {
                if (!inputs.all_copy(r, i, to))
                    return false;
                continue;
            }
            struct rondo_part part = rondo_pull_source(&ends.pull, i, r);
            const void *from = own_at(ends.work, part.first, ends.bytes);
            if (from != to)
                copy_bytes(to, nullptr, from, part.count * ends.bytes);
        }
    }
    return true;
}

RONDO_OUTLINE bool direct_move(const job &j, uint64_t bytes)
{
    const direct_ends ends(j, bytes, 0);

    return ends.all_end(direct_move_pieces(ends));
}

/* Of a reduce-scatter, whose results nobody else reads. */
struct direct_no_results {
    RONDO_MEMBER bool is_free() const
    {
        return true;
    }
};

template <class Spans> RONDO_INLINE bool direct_reduce_scatter(const direct_ends &ends, Spans spans)
{
    const direct_input input{ends};
    const direct_inputs inputs{ends};

    for (uint64_t i = 0; i < ends.pull.pieces; i++) {
        struct rondo_part piece = rondo_piece(ends.pull.count, ends.pull.chunk, i);

        if (!may_go_on(ends.of) || !input.all_offer(i) || !inputs.all_open(i, direct_no_results{}))
            return false;
        spans.combine(keep_at(ends.work, piece.first, ends.bytes), nullptr, ends.work.sources,
                      ends.pull.ranks, piece.count);
        if (!inputs.all_shut(i))
            return false;
    }
    return true;
}

/* The results of an all-reduce or reduce: part r of every piece is rank r's to make, and the others' to read.
 */
struct direct_results {
    const direct_ends &ends;

    RONDO_MEMBER bool keeps() const
    {
        return rondo_pull_keeps(&ends.pull, ends.own);
    }

    /* Whether this rank's results lie in its bounce area for the others. */
    RONDO_MEMBER bool is_bounced() const
    {
        return !keeps() || (ends.work.flags & RONDO_WORK_BOUNCE_RECV);
    }

    RONDO_MEMBER unsigned char *half(uint64_t i) const
    {
        uint64_t chunk = ends.pull.chunk * ends.bytes;

        return ends.work.bounce + (2 * rondo_pull_chunks(&ends.pull) + i % 2) * chunk;
    }

    RONDO_MEMBER void *kept(uint64_t i, uint32_t r) const
    {
        return keeps() ? keep_at(ends.work, rondo_pull_source(&ends.pull, i, r).first, ends.bytes) : nullptr;
    }

    /* All lanes: make this rank's result of piece i out of sources. */
    template <class Spans> RONDO_MEMBER void make(uint64_t i, Spans spans) const
    {
        void *keep = kept(i, ends.own);
        void *out = is_bounced() ? half(i) : keep;

        spans.combine(out, keep == out ? nullptr : keep, ends.work.sources, ends.pull.ranks,
                      rondo_pull_source(&ends.pull, i, ends.own).count);
    }

    /* Lane 0: wait until the half that result i needs has been read. Since then there have been the result
     * before and, where the input goes in pieces, one of them. */
    RONDO_MEMBER bool is_free() const
    {
        uint64_t since = ends.work.flags & RONDO_WORK_BOUNCE_SEND ? 2 : 1;

        for (uint32_t k = 1; k < ends.pull.ranks && is_bounced(); k++) {
            if (!ends.consumed(ends.behind(k), since))
                return false;
        }
        return true;
    }

    /* What an offer of rank `from`'s result says to rank `to`: 0 where `to` only learns that it is made. */
    RONDO_MEMBER uint64_t counted(uint64_t i, uint32_t from, uint32_t to) const
    {
        return rondo_pull_keeps(&ends.pull, to) ? rondo_pull_source(&ends.pull, i, from).count : 0;
    }

    /* All lanes; their inputs are shut, so lane 0 has seen them all make it. */
    RONDO_OUTLINED_MEMBER bool all_offer(uint64_t i) const
    {
        bool told = true;

        if (lane_index() == 0) {
            const void *at = is_bounced() ? half(i) : kept(i, ends.own);

            for (uint32_t k = 1; k < ends.pull.ranks && told; k++)
                told = ends.offer(ends.behind(k), at, false, counted(i, ends.own, ends.behind(k)));
        }
        return agree(told);
    }

    /* All lanes: read rank r's result of piece i, or learn that it is made. */
    RONDO_OUTLINED_MEMBER bool all_take(uint64_t i, uint32_t r) const
    {
        uint64_t count = counted(i, r, ends.own);
        auto have = [&] {
            const unsigned char *at = nullptr;
            struct rondo_offer offered;

            if (!ends.accept(r, count, count, at, offered))
                return false;
            ends.set_source(r, at, 0);
            return true;
        };

        return ends.all_read(r, kept(i, r), count, have, [&] { ends.release(r); });
    }
};

/*
 * All-reduce and reduce. In turn i a rank makes its result of piece i and takes the others' of piece i - 1,
 * which they have made a turn ago, so that nobody need wait when ranks are a little apart. To every peer it
 * offers, in this order,
 *
 *     piece 0, piece 1, result 0, piece 2, result 1, piece 3, ..      when its input goes in pieces
 *     the input, result 0, result 1, ..                               otherwise
 *
 * and every peer accepts them in this order: its own turns ask for the same. A result says as well that its
 * maker has read its part of that piece of all inputs, so input slots need not wait for that. Piece i + 1
 * goes where piece i - 1 was: it is written after the results i - 1 of all ranks have been taken.
 *
 * When a rank offers result i, all others have offered theirs of i - 1, so they have taken its piece i - 1
 * and its result i - 2: at most pieces i and i + 1 and results i - 1 and i are on their way to any of them.
 *
 * Why nobody gets stuck: take the lowest turn that any rank is in, i. Its ranks need piece i, offered in turn
 * i - 1, results i - 1, offered in turn i - 1 too, and that their own result i - 2, and what they offered
 * before it, has been consumed, which happens in turn i - 1. All ranks have done those.
 *
 * In place (recv is send) a rank writes two sorts of parts of its own input. Its own part of piece i it
 * writes while it makes result i, out of sources that it has read by then, element by element; no peer reads
 * that part, as each reads its own alone. Part r of piece i - 1 it writes after it has accepted rank r's
 * result of that piece; rank r is the only one to read it, and had read it when it offered the result. So no
 * input is overwritten before it has been read.
 */
template <class Spans> RONDO_INLINE bool direct_reduce_parts(const direct_ends &ends, Spans spans)
{
    const direct_input input{ends};
    const direct_inputs inputs{ends};
    const direct_results results{ends};

    if (!input.all_offer(0))
        return false;
    for (uint64_t i = 0; i <= ends.pull.pieces; i++) {
        bool is_last = i == ends.pull.pieces;

        if (!is_last) {
            if (!inputs.all_open(i, results))
                return false;
            results.make(i, spans);
            if (!inputs.all_shut(i))
                return false;
        }
        for (uint32_t k = 1; k < ends.pull.ranks && i > 0; k++) {
            if (!results.all_take(i - 1, ends.behind(k)))
                return false;
        }
        if (i + 1 < ends.pull.pieces && !input.all_offer(i + 1))
            return false;
        if (!is_last && !results.all_offer(i))
            return false;
    }
    return true;
}

template <class Spans> RONDO_OUTLINE bool direct_reduction(const job &j, Spans spans, uint64_t scalar)
{
    const direct_ends ends(j, spans.element_bytes(), scalar);

    return ends.all_end(ends.pull.shape == RONDO_PULL_PARTS ? direct_reduce_parts(ends, spans)
                                                            : direct_reduce_scatter(ends, spans));
}

} // namespace RONDO_KERNELS

#endif
