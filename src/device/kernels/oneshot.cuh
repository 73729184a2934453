/*
 * oneshot.cuh - the direct collectives over LL and LL128: every rank writes what it gives into its peers'
 * slots, and reads what it gets from its own. One hop, and no barrier between ranks.
 *
 * push.h has the arithmetic. A piece takes one step of each connection that it uses:
 *
 *     lane 0 waits for credit where a half of some reader's slots begins (acquire), and all agree()
 *     every lane stores its shares into the slots of all readers, and wakes who sleeps there
 *     every lane looks at the heads of all givers, and moves no data before all are of this operation
 *     every lane moves its shares, or folds those of all ranks, to memory
 *     agree_all(): no lane looks at the slots any more, and all have theirs
 *     lane 0 now and then returns credit (release)
 *
 * Reductions fold the ranks in order 0 .. n-1 in the accumulator's type and round once, as pulled ones do, so
 * every rank comes to the same bits.
 *
 * A rank gives up to RONDO_CREDIT_STEPS pieces ahead of the one that it takes, so that ranks a little apart
 * do not wait for each other at every piece.
 *
 * Why nobody gets stuck: take the lowest piece i that any rank has yet to take. What such a rank gives
 * before, piece i + RONDO_CREDIT_STEPS at most, needs the credit of pieces before i, which all ranks have
 * taken. So it gives, and all other ranks have given piece i or do so for the same reason.
 *
 * In place (recv is send): a lane reads of its own input what it writes over, and does so before; what others
 * get of that piece it has stored by then.
 */
#ifndef RONDO_KERNELS_ONESHOT_CUH
#define RONDO_KERNELS_ONESHOT_CUH

#include "kernels/flagged.cuh"

#include "device/push.h"

namespace RONDO_KERNELS
{

template <class Wire> struct oneshot {
    const job &of;
    const struct rondo_work &work;
    struct rondo_pull pull;
    uint32_t own;

    RONDO_MEMBER explicit oneshot(const job &j)
        : of(j), work(*j.work), pull(rondo_push_of(j.work, (uint32_t)j.args->ranks)),
          own((uint32_t)j.args->rank)
    {
    }

    /* The k-th rank ahead of this one: if each rank goes round in this order, no two are at the same peer. */
    RONDO_MEMBER uint32_t ahead(uint32_t k) const
    {
        return (own + k) % pull.ranks;
    }

    RONDO_MEMBER bool gives_to(uint32_t r) const
    {
        return r != own && rondo_push_reads(&pull, r, own);
    }

    RONDO_MEMBER bool takes_from(uint32_t r) const
    {
        return r != own && rondo_push_reads(&pull, own, r);
    }

    /* The connections with rank r at piece i. */
    RONDO_MEMBER flagged_ends<Wire> with(uint32_t r, uint64_t i) const
    {
        return flagged_ends<Wire>(of, work.peers[r], i);
    }

    /* All lanes: wait until all readers' slots for piece i may be overwritten. A stop is seen although
     * nothing may have to wait. */
    RONDO_OUTLINED_MEMBER bool may_give(uint64_t i) const
    {
        bool granted = true;

        if (lane_index() == 0) {
            granted = i % RONDO_CREDIT_STEPS != 0 || !stop_raised(of.where);
            for (uint32_t k = 1; k < pull.ranks && granted; k++) {
                const flagged_ends<Wire> reader = with(ahead(k), i);

                granted = !gives_to(ahead(k)) || !reader.needs_credit() || reader.credit();
            }
        }
        return agree(granted);
    }

    /* Store this lane's shares of piece i, n elements of stride bytes, into all readers' slots: make(cells,
     * r, first, count) yields what goes to rank r. */
    template <class Make>
    RONDO_OUTLINED_MEMBER void give(uint64_t i, uint64_t n, uint64_t stride, const Make &make) const
    {
        uint64_t cells = HEAD_CELLS + rondo_pieces(n * stride, CELL_BYTES), shares = Wire::shares(cells);

        for (uint64_t base = (uint64_t)warp_index() * WARP_LANES; base < shares; base += lane_count()) {
            cell_share share = Wire::share_at(base + warp_lane(), cells);
            share_elements held = elements_of(share, n, stride);
            uint64_t out[Wire::SHARE_CELLS];
            bool is_made = false;

            for (uint32_t k = 1; k < pull.ranks; k++) {
                if (!gives_to(ahead(k)))
                    continue;
                const flagged_ends<Wire> reader = with(ahead(k), i);
                if (!is_made || pull.shape == RONDO_PULL_BLOCKS) {
                    for (unsigned c = 0; c < share.cells; c++)
                        out[c] = 0;
                    if (held.count > 0)
                        make(out + held.cell, ahead(k), held.first, held.count);
                    reader.write_head(share, n * stride, out);
                    is_made = true;
                }
                Wire::store(reader.outgoing(), reader.sent, share, out);
            }
        }
        for (uint32_t k = 1; k < pull.ranks; k++) {
            if (!gives_to(ahead(k)))
                continue;
            const flagged_ends<Wire> reader = with(ahead(k), i);
            Wire::refresh(reader.outgoing(), reader.sent, reader.to->slot_bytes, cells);
            announce(of.where, reader.to->posted, reader.to->peer); /* each lane what it has stored itself */
        }
    }

    /* Wait for the heads of piece i of all givers; see flagged_ends. */
    RONDO_OUTLINED_MEMBER bool is_expected(uint64_t i, uint64_t bytes) const
    {
        for (uint32_t k = 1; k < pull.ranks; k++) {
            uint32_t r = ahead(pull.ranks - k);
            const flagged_ends<Wire> giver = with(r, i);

            if (takes_from(r) && !giver.is_expected(bytes))
                return false;
        }
        return true;
    }

    /* Move this lane's shares of the `bytes` of piece i of all givers to memory. */
    RONDO_OUTLINED_MEMBER bool take(uint64_t i, uint64_t bytes, uint64_t element) const
    {
        for (uint32_t k = 1; k < pull.ranks; k++) {
            uint32_t r = ahead(pull.ranks - k);
            unsigned char *to = (unsigned char *)keep_at(work, rondo_pull_target(&pull, i, r), element);

            if (takes_from(r) &&
                !with(r, i).move_shares(true, false, 0, bytes, 1,
                                        [&](void *, const void *in, uint64_t first, uint64_t count) {
                                            lane_copy(to + first, in, count);
                                        }))
                return false;
        }
        return true;
    }

    /* This lane's share of what rank r has given of piece i: out of its slot, or made here if that is this
     * rank. */
    template <class Make>
    RONDO_MEMBER bool get_share(uint64_t i, uint32_t r, const cell_share &share, const share_elements &held,
                                uint64_t *in, const Make &make) const
    {
        if (r != own) {
            const flagged_ends<Wire> giver = with(r, i);
            return giver.find([&] { return Wire::look(giver.arrived(), giver.received, share, in); });
        }
        if (held.count > 0)
            make(i, in + held.cell, own, held.first, held.count);
        return true;
    }

    /* Fold this lane's shares of piece i, n elements, of all ranks in order: make(i, cells, own, first,
     * count) yields what this one gives. */
    template <class Spans, class Make>
    RONDO_OUTLINED_MEMBER bool fold(uint64_t i, uint64_t n, const Spans &spans, uint64_t scalar,
                                    const Make &make) const
    {
        uint64_t stride = spans.given_bytes(), element = spans.element_bytes();
        uint64_t cells = HEAD_CELLS + rondo_pieces(n * stride, CELL_BYTES), shares = Wire::shares(cells);
        unsigned char *to = (unsigned char *)keep_at(work, rondo_pull_target(&pull, i, own), element);

        for (uint64_t base = (uint64_t)warp_index() * WARP_LANES; base < shares; base += lane_count()) {
            cell_share share = Wire::share_at(base + warp_lane(), cells);
            share_elements held = elements_of(share, n, stride);
            alignas(64) unsigned char sums[Wire::SHARE_CELLS * CELL_BYTES * WIDEST_SUM];

            for (uint32_t r = 0; r < pull.ranks; r++) {
                uint64_t in[Wire::SHARE_CELLS];

                if (!get_share(i, r, share, held, in, make))
                    return false;
                if (held.count > 0)
                    spans.lane_gather(sums, in + held.cell, held.count, r == 0);
            }
            if (held.count > 0)
                spans.lane_leave(to + held.first * element, sums, held.count, scalar);
        }
        return true;
    }

    /* Whoever gave learns that its slots are free: the release pairs with the acquire in credit()
     * (flagged.cuh). */
    RONDO_MEMBER bool end_part(uint64_t i, bool moved) const
    {
        if (!agree_all(moved))
            return false;
        for (uint32_t k = 1; k < pull.ranks && lane_index() == 0; k++) {
            const flagged_ends<Wire> giver = with(ahead(k), i + 1);

            if (takes_from(ahead(k)) && giver.received % RONDO_CREDIT_STEPS == 0)
                publish(of.where, giver.from->consumed, giver.received, giver.from->peer);
        }
        return true;
    }

    /* All lanes: give(i) each piece, ahead of take(i), which this rank does if it gets anything. */
    template <class Give, class Take> RONDO_MEMBER bool run(const Give &give, const Take &take) const
    {
        for (uint64_t i = 0, given = 0; i < pull.pieces; i++) {
            for (; given < pull.pieces && given <= i + RONDO_CREDIT_STEPS; given++) {
                if (!may_give(given))
                    return false;
                give(given);
            }
            if (!end_part(i, take(i)))
                return false;
        }
        close();
        return true;
    }

    /* Keep the steps for the next work; a stopped work is the last. What lanes read of them lies before the
     * agreement on the last piece, and after that on the first piece of the next work. */
    RONDO_MEMBER void close() const
    {
        for (uint32_t k = 1; k < pull.ranks && lane_index() == 0; k++) {
            const flagged_ends<Wire> peer = with(ahead(k), pull.pieces);

            if (takes_from(ahead(k)))
                store_plain(&peer.from->step, peer.received);
            if (gives_to(ahead(k)))
                store_plain(&peer.to->step, peer.sent);
        }
    }
};

/* Where piece i of what rank r reads begins in this rank's input. */
template <class Wire>
RONDO_INLINE const unsigned char *oneshot_input(const oneshot<Wire> &shot, uint64_t i, uint32_t r,
                                                uint64_t bytes)
{
    return (const unsigned char *)own_at(shot.work, rondo_pull_source(&shot.pull, i, r).first, bytes);
}

/* All-gather, broadcast, all-to-all, gather, scatter; bytes are of an element. */
template <class Wire> RONDO_OUTLINE bool oneshot_move(const job &j, uint64_t bytes)
{
    const oneshot<Wire> shot(j);
    const struct rondo_pull &pull = shot.pull;
    auto bytes_of = [&](uint64_t i) { return rondo_piece(pull.count, pull.chunk, i).count * bytes; };
    auto give = [&](uint64_t i) {
        shot.give(i, bytes_of(i), 1, [&](void *out, uint32_t r, uint64_t first, uint64_t count) {
            lane_copy(out, oneshot_input(shot, i, r, bytes) + first, count);
        });
    };
    auto take = [&](uint64_t i) {
        const void *kept = oneshot_input(shot, i, shot.own, bytes);
        void *to = keep_at(*j.work, rondo_pull_target(&pull, i, shot.own), bytes);

        if (rondo_push_reads(&pull, shot.own, shot.own) && kept != to)
            copy_bytes(to, nullptr, kept, bytes_of(i));
        return shot.is_expected(i, bytes_of(i)) && shot.take(i, bytes_of(i), bytes);
    };

    return shot.run(give, take);
}

/* All-reduce, reduce, reduce-scatter. */
template <class Wire, class Spans>
RONDO_OUTLINE bool oneshot_reduction(const job &j, const Spans &spans, uint64_t scalar)
{
    const oneshot<Wire> shot(j);
    const struct rondo_pull &pull = shot.pull;
    uint64_t element = spans.element_bytes(), given = spans.given_bytes();
    bool keeps = rondo_push_reads(&pull, shot.own, shot.own);
    auto make = [&](uint64_t i, void *out, uint32_t r, uint64_t first, uint64_t count) {
        spans.lane_give(out, oneshot_input(shot, i, r, element) + first * element, count, scalar);
    };
    auto give = [&](uint64_t i) {
        shot.give(
            i, rondo_piece(pull.count, pull.chunk, i).count, given,
            [&](void *out, uint32_t r, uint64_t first, uint64_t count) { make(i, out, r, first, count); });
    };
    auto take = [&](uint64_t i) {
        uint64_t n = rondo_piece(pull.count, pull.chunk, i).count;

        return !keeps || (shot.is_expected(i, n * given) && shot.fold(i, n, spans, scalar, make));
    };

    return shot.run(give, take);
}

} // namespace RONDO_KERNELS

#endif
