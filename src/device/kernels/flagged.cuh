/*
 * flagged.cuh - what LL and LL128 have in common: slots whose words say by themselves that they are there.
 *
 * A slot's data is a stream of cells of 8 bytes: two of head (struct rondo_slot_head), then the payload. A
 * Wire (protocol_ll.cuh, protocol_ll128.cuh) lays cells into lines with flags, and deals them to lanes in
 * shares of neighbouring cells. A lane waits for the flags of its own shares and for nothing else: no barrier
 * stands between a word's arrival and its use. Per part:
 *
 *     once in RONDO_CREDIT_STEPS: lane 0 waits for credit (acquire), and all agree()
 *     every lane looks at the slot's head, and moves no data of an operation that is not its own
 *     every lane moves its shares, from words to words and memory
 *     agree_all(): no lane looks at the slot any more, and all have theirs
 *     lane 0 wakes who sleeps, and now and then returns credit (release)
 *
 * Elements never straddle cells, so a share is whole elements: those of partial sums. Results narrower than
 * these (spread in ends.cuh) lie at the start of each share's payload.
 */
#ifndef RONDO_KERNELS_FLAGGED_CUH
#define RONDO_KERNELS_FLAGGED_CUH

#include "kernels/ends.cuh"

namespace RONDO_KERNELS
{

constexpr uint64_t CELL_BYTES = 8, HEAD_CELLS = RONDO_FLAGGED_HEAD_BYTES / CELL_BYTES;

/* Some cells of a slot's stream, held by one lane. None: nothing is touched. */
struct cell_share {
    uint64_t first; /* in the stream */
    unsigned cells;
};

/* What a lane's share holds of a part. */
struct share_elements {
    uint64_t first, count; /* of the part */
    unsigned cell;         /* where they begin in the share */
};

/* n elements that take stride bytes each. */
RONDO_INLINE share_elements elements_of(const cell_share &share, uint64_t n, uint64_t stride)
{
    uint64_t begin = share.first < HEAD_CELLS ? HEAD_CELLS : share.first, end = share.first + share.cells;
    share_elements held = {0, 0, 0};

    if (end <= begin)
        return held;
    held.first = (begin - HEAD_CELLS) * CELL_BYTES / stride;
    held.count = (end - begin) * CELL_BYTES / stride;
    held.cell = (unsigned)(begin - share.first);
    if (held.first >= n)
        held.count = 0;
    else if (held.count > n - held.first)
        held.count = n - held.first;
    return held;
}

/* What of a part goes through one end of several. */
struct passage {
    bool takes, posts;
};

template <class Wire> struct flagged_ends : ends {
    static constexpr uint32_t window = RONDO_FLAGGED_WINDOW;
    uint32_t parts = 0; /* of this work */
    using ends::ends;

    /* A new half of the slots begins. */
    RONDO_MEMBER bool needs_credit() const
    {
        return sent % RONDO_CREDIT_STEPS == 0;
    }

    /* Lane 0: wait for it. The acquire pairs with the release of `consumed` in the peer's step_on(), or
     * end_part() of oneshot.cuh; the agreement before that covers what all its lanes have read. */
    RONDO_MEMBER bool credit() const
    {
        return wait_for(of, to->consumed, sent - RONDO_CREDIT_STEPS, RONDO_WAIT_SEND, to->peer_rank);
    }

    /* Lane 0 waits for credit where it must, and looks for a stop as often although nothing may have to wait.
     * */
    RONDO_MEMBER bool may_move(bool posts)
    {
        bool granted = true, waits = posts && needs_credit();

        if (parts++ % RONDO_CREDIT_STEPS != 0 && !waits)
            return true;
        if (lane_index() == 0)
            granted = waits ? credit() : !stop_raised(of.where);
        return agree(granted);
    }

    /* Look until look() finds all that it looks for. It yields the flag that it still misses, or NULL. The
     * lanes of a warp look together; lane 0 says for the block that it waits. */
    template <class Look> RONDO_MEMBER bool find(const Look &look) const
    {
        unsigned polls = 0;
        bool goes_on = true, tells = lane_index() == 0;

        for (;;) {
            const uint32_t *missing = look();

            if (vote_all(!missing))
                break;
            if (polls == 0 && tells)
                note_wait(of, RONDO_WAIT_RECV, from->peer_rank);
            if (missing)
                goes_on = wait_flag(of.where, from->posted, missing, (uint32_t)(received + 1), polls);
            else
                polls++;
            goes_on = vote_all(goes_on);
            if (!goes_on)
                break;
        }
        if (polls > 0 && tells)
            note_end(of);
        return goes_on;
    }

    /* Wait for the next slot's head and believe it only if it says what this work expects. All lanes come to
     * the same verdict, by themselves, unless stop is raised meanwhile. */
    RONDO_MEMBER bool is_expected(uint64_t bytes) const
    {
        struct rondo_slot_head head = {0, 0};

        return find([&] { return Wire::look_head(arrived(), received, head); }) && matches(head, bytes);
    }

    RONDO_MEMBER void write_head(const cell_share &share, uint64_t bytes, uint64_t *cell) const
    {
        for (uint64_t k = share.first; k < HEAD_CELLS && k < share.first + share.cells; k++)
            cell[k - share.first] = k == 0 ? of.work->fingerprint : bytes;
    }

    /* Move this lane's shares of n elements of stride bytes each through N ends at once: body(out, in, first,
     * count) makes what goes out through all that post of what came in, in[e] through the end e that takes.
     * */
    template <unsigned N, class Body>
    static RONDO_MEMBER bool move_through(const flagged_ends *at, const passage *how, uint64_t out_bytes,
                                          uint64_t n, uint64_t stride, const Body &body)
    {
        uint64_t cells = HEAD_CELLS + rondo_pieces(n * stride, CELL_BYTES), shares = Wire::shares(cells);
        bool posts = false;

        for (unsigned e = 0; e < N; e++)
            posts |= how[e].posts;
        for (uint64_t base = (uint64_t)warp_index() * WARP_LANES; base < shares; base += lane_count()) {
            cell_share share = Wire::share_at(base + warp_lane(), cells);
            share_elements held = elements_of(share, n, stride);
            uint64_t in[N][Wire::SHARE_CELLS], out[Wire::SHARE_CELLS];
            const void *came[N];

            for (unsigned e = 0; e < N; e++) {
                const flagged_ends &end = at[e];

                came[e] = in[e] + held.cell;
                if (how[e].takes &&
                    !end.find([&] { return Wire::look(end.arrived(), end.received, share, in[e]); }))
                    return false;
            }
            for (unsigned k = 0; posts && k < share.cells; k++)
                out[k] = 0; /* what nobody reads travels too, and must not be what was here before */
            if (held.count > 0)
                body(out + held.cell, came, held.first, held.count);
            for (unsigned e = 0; e < N; e++) {
                if (how[e].posts) {
                    at[e].write_head(share, out_bytes, out);
                    Wire::store(at[e].outgoing(), at[e].sent, share, out);
                }
            }
        }
        for (unsigned e = 0; e < N; e++) {
            if (how[e].posts)
                Wire::refresh(at[e].outgoing(), at[e].sent, at[e].to->slot_bytes, cells);
        }
        return true;
    }

    template <class Body>
    RONDO_MEMBER bool move_shares(bool takes, bool posts, uint64_t out_bytes, uint64_t n, uint64_t stride,
                                  const Body &body) const
    {
        const passage how = {takes, posts};

        return move_through<1>(this, &how, out_bytes, n, stride,
                               [&](void *out, const void *const *in, uint64_t first, uint64_t count) {
                                   body(out, in[0], first, count);
                               });
    }

    RONDO_MEMBER bool end_part(bool moved, bool takes, bool posts)
    {
        if (!agree_all(moved))
            return false;
        step_on(takes, posts);
        return true;
    }

    /* After that agreement. */
    RONDO_MEMBER void step_on(bool takes, bool posts)
    {
        received += takes;
        sent += posts;
        if (lane_index() == 0) {
            if (posts)
                announce(of.where, to->posted, to->peer);
            if (takes && received % RONDO_CREDIT_STEPS == 0)
                publish(of.where, from->consumed, received, from->peer);
        }
    }

    /* A part that is received or not, and sent or not. */
    template <class Body>
    RONDO_MEMBER bool send_part(uint64_t bytes, uint64_t n, uint64_t stride, const Body &body)
    {
        return may_move(true) && end_part(move_shares(false, true, bytes, n, stride, body), false, true);
    }

    template <class Body>
    RONDO_MEMBER bool take_part(uint64_t bytes, uint64_t n, uint64_t stride, const Body &body)
    {
        return may_move(false) &&
               end_part(is_expected(bytes) && move_shares(true, false, 0, n, stride, body), true, false);
    }

    template <class Body>
    RONDO_MEMBER bool pass_part(uint64_t bytes, uint64_t out_bytes, uint64_t n, uint64_t stride,
                                const Body &body)
    {
        return may_move(true) &&
               end_part(is_expected(bytes) && move_shares(true, true, out_bytes, n, stride, body), true,
                        true);
    }

    RONDO_MEMBER bool send(const void *x, void *keep, uint64_t bytes, unsigned spread = 1)
    {
        return send_part(bytes, bytes, spread, [&](void *out, const void *, uint64_t first, uint64_t count) {
            lane_copy(out, at(x, first), count);
            if (keep && keep != x)
                lane_copy(at(keep, first), out, count);
        });
    }

    RONDO_MEMBER bool take(void *keep, uint64_t bytes, unsigned spread = 1)
    {
        return take_part(bytes, bytes, spread, [&](void *, const void *in, uint64_t first, uint64_t count) {
            lane_copy(at(keep, first), in, count);
        });
    }

    RONDO_MEMBER bool pass(void *keep, uint64_t bytes, unsigned spread = 1)
    {
        return pass_part(bytes, bytes, bytes, spread,
                         [&](void *out, const void *in, uint64_t first, uint64_t count) {
                             lane_copy(out, in, count);
                             if (keep)
                                 lane_copy(at(keep, first), in, count);
                         });
    }

    template <class Spans>
    RONDO_MEMBER bool enter(const Spans &spans, uint64_t scalar, const void *own, uint64_t n)
    {
        uint64_t element = spans.element_bytes(), wire = spans.wire_bytes();

        return send_part(n * wire, n, wire, [&](void *out, const void *, uint64_t first, uint64_t count) {
            spans.lane_enter(out, at(own, first * element), count, scalar);
        });
    }

    template <class Spans>
    RONDO_MEMBER bool fold(const Spans &spans, uint64_t scalar, const void *own, uint64_t n)
    {
        uint64_t element = spans.element_bytes(), wire = spans.wire_bytes();

        return pass_part(n * wire, n * wire, n, wire,
                         [&](void *out, const void *in, uint64_t first, uint64_t count) {
                             spans.lane_fold(out, in, at(own, first * element), count, scalar);
                         });
    }

    template <class Spans>
    RONDO_MEMBER bool finish(const Spans &spans, uint64_t scalar, const void *own, void *keep, uint64_t n)
    {
        uint64_t element = spans.element_bytes(), wire = spans.wire_bytes();

        return take_part(n * wire, n, wire, [&](void *, const void *in, uint64_t first, uint64_t count) {
            spans.lane_finish(at(keep, first * element), nullptr, in, at(own, first * element), count,
                              scalar);
        });
    }

    template <class Spans>
    RONDO_MEMBER bool finish_send(const Spans &spans, uint64_t scalar, const void *own, void *keep,
                                  uint64_t n)
    {
        uint64_t element = spans.element_bytes(), wire = spans.wire_bytes();

        return pass_part(n * wire, n * element, n, wire,
                         [&](void *out, const void *in, uint64_t first, uint64_t count) {
                             spans.lane_finish(out, keep ? at(keep, first * element) : nullptr, in,
                                               at(own, first * element), count, scalar);
                         });
    }

  private:
    static RONDO_MEMBER const void *at(const void *base, uint64_t bytes)
    {
        return (const unsigned char *)base + bytes;
    }

    static RONDO_MEMBER void *at(void *base, uint64_t bytes)
    {
        return (unsigned char *)base + bytes;
    }
};

} // namespace RONDO_KERNELS

#endif
