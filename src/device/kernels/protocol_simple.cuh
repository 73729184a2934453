/*
 * protocol_simple.cuh - slots and counters: how one work moves parts over its two connections.
 *
 * struct rondo_end has the protocol, ends.cuh the contract. Lane 0 alone waits and posts. Per part:
 *
 *     lane 0 waits for the counter (acquire)          pairs with the other end's publish (release)
 *     agree(): all lanes may touch the slot
 *     all lanes read or fill it
 *     barrier(): no lane touches it any more
 *     lane 0 writes the head, posts or frees (release)  pairs with the other end's wait (acquire)
 */
#ifndef RONDO_KERNELS_PROTOCOL_SIMPLE_CUH
#define RONDO_KERNELS_PROTOCOL_SIMPLE_CUH

#include "kernels/ends.cuh"

namespace RONDO_KERNELS
{

/* Slots are read and filled by the whole block, so no spread is needed. */
struct simple_ends : ends {
    static constexpr uint32_t window = RONDO_SLOTS;
    using ends::ends;

    /* Wait until the next slot may be filled. */
    RONDO_MEMBER bool credit() const
    {
        bool granted = true;

        if (lane_index() == 0)
            granted = wait_for(of, to->consumed, sent + 1 - RONDO_SLOTS, RONDO_WAIT_SEND, to->peer_rank);
        return agree(granted);
    }

    /* Wait for the next slot and believe its head only if it says what this work expects. */
    RONDO_MEMBER bool data(uint64_t bytes) const
    {
        bool fits = true;

        if (lane_index() == 0) {
            const struct rondo_slot_head *head = &from->heads[received % RONDO_SLOTS];

            fits = wait_for(of, from->posted, received + 1, RONDO_WAIT_RECV, from->peer_rank) &&
                   matches({load_plain(&head->fingerprint), load_plain(&head->bytes)}, bytes);
        }
        return agree(fits);
    }

    /* All lanes are done with the slots: post the filled one, free the read one. */
    RONDO_MEMBER void hand_over(bool posts, uint64_t bytes, bool frees)
    {
        barrier();
        hand_on(posts, bytes, frees);
    }

    /* The same after a barrier. */
    RONDO_MEMBER void hand_on(bool posts, uint64_t bytes, bool frees)
    {
        if (lane_index() == 0) {
            if (posts) {
                struct rondo_slot_head *head = &to->heads[sent % RONDO_SLOTS];

                store_plain(&head->fingerprint, of.work->fingerprint);
                store_plain(&head->bytes, bytes);
                publish(of.where, to->posted, sent + 1, to->peer);
            }
            if (frees)
                publish(of.where, from->consumed, received + 1, from->peer);
        }
        sent += posts;
        received += frees;
    }

    RONDO_MEMBER bool send(const void *x, void *keep, uint64_t bytes, unsigned = 1)
    {
        if (!credit())
            return false;
        copy_bytes(outgoing(), keep == x ? nullptr : keep, x, bytes);
        hand_over(true, bytes, false);
        return true;
    }

    RONDO_MEMBER bool take(void *keep, uint64_t bytes, unsigned = 1)
    {
        if (!data(bytes))
            return false;
        copy_bytes(keep, nullptr, arrived(), bytes);
        hand_over(false, 0, true);
        return true;
    }

    RONDO_MEMBER bool pass(void *keep, uint64_t bytes, unsigned = 1)
    {
        if (!data(bytes) || !credit())
            return false;
        copy_bytes(outgoing(), keep, arrived(), bytes);
        hand_over(true, bytes, true);
        return true;
    }

    template <class Spans>
    RONDO_MEMBER bool enter(const Spans &spans, uint64_t scalar, const void *own, uint64_t n)
    {
        if (!credit())
            return false;
        spans.enter(outgoing(), own, n, scalar);
        hand_over(true, n * spans.wire_bytes(), false);
        return true;
    }

    template <class Spans>
    RONDO_MEMBER bool fold(const Spans &spans, uint64_t scalar, const void *own, uint64_t n)
    {
        if (!data(n * spans.wire_bytes()) || !credit())
            return false;
        spans.fold(outgoing(), arrived(), own, n, scalar);
        hand_over(true, n * spans.wire_bytes(), true);
        return true;
    }

    template <class Spans>
    RONDO_MEMBER bool finish(const Spans &spans, uint64_t scalar, const void *own, void *keep, uint64_t n)
    {
        if (!data(n * spans.wire_bytes()))
            return false;
        spans.finish(keep, nullptr, arrived(), own, n, scalar);
        hand_over(false, 0, true);
        return true;
    }

    template <class Spans>
    RONDO_MEMBER bool finish_send(const Spans &spans, uint64_t scalar, const void *own, void *keep,
                                  uint64_t n)
    {
        if (!data(n * spans.wire_bytes()) || !credit())
            return false;
        spans.finish(outgoing(), keep, arrived(), own, n, scalar);
        hand_over(true, n * spans.element_bytes(), true);
        return true;
    }
};

} // namespace RONDO_KERNELS

#endif
