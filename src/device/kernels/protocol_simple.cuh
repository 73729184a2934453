/*
 * protocol_simple.cuh - slots and counters: how one work moves parts over its two connections.
 *
 * struct rondo_end has the protocol. All lanes of the block call these functions together and get the same
 * answer; lane 0 alone waits and posts. Per part:
 *
 *     lane 0 waits for the counter (acquire)          pairs with the other end's publish (release)
 *     agree(): all lanes may touch the slot
 *     all lanes read or fill it
 *     barrier(): no lane touches it any more
 *     lane 0 writes the head, posts or frees (release)  pairs with the other end's wait (acquire)
 *
 * Every false means: stop was raised (by a fault found here, if not by others); the work ends without
 * touching memory again.
 *
 * A part of 0 bytes uses no slot, except where a function says so.
 */
#ifndef RONDO_KERNELS_PROTOCOL_SIMPLE_CUH
#define RONDO_KERNELS_PROTOCOL_SIMPLE_CUH

#include "kernels/job.cuh"
#include "kernels/span.cuh"

namespace RONDO_KERNELS
{

/* Both ends of one work. Every lane counts steps by itself, all alike. */
struct simple_ends {
    const job &of;
    struct rondo_end *from, *to; /* NULL where the work has none */
    uint64_t received, sent;     /* next steps */

    RONDO_MEMBER explicit simple_ends(const job &j)
        : of(j), from(j.work->from), to(j.work->to), received(from ? load_plain(&from->step) : 0),
          sent(to ? load_plain(&to->step) : 0)
    {
    }

    /* Keep the steps for the next work. The barriers: every lane has read them before, and finds them after.
     */
    RONDO_MEMBER void close()
    {
        barrier();
        if (lane_index() == 0) {
            if (from)
                store_plain(&from->step, received);
            if (to)
                store_plain(&to->step, sent);
        }
        barrier();
    }

    RONDO_MEMBER const void *arrived() const
    {
        return from->slots + received % RONDO_SLOTS * from->slot_bytes;
    }

    RONDO_MEMBER void *outgoing() const
    {
        return to->slots + sent % RONDO_SLOTS * to->slot_bytes;
    }

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

        if (lane_index() == 0)
            fits =
                wait_for(of, from->posted, received + 1, RONDO_WAIT_RECV, from->peer_rank) && matches(bytes);
        return agree(fits);
    }

    RONDO_MEMBER bool matches(uint64_t bytes) const
    {
        const struct rondo_slot_head *head = &from->heads[received % RONDO_SLOTS];
        mismatch what = {of.work->fingerprint, load_plain(&head->fingerprint), bytes,
                         load_plain(&head->bytes)};

        if (what.found == what.expected && what.found_bytes == bytes)
            return true;
        /* Equal fingerprints with unequal bytes are no user's doing: the two sides cut the same operation
         * differently. */
        ncclResult_t code = what.found != what.expected ? ncclInvalidUsage : ncclInternalError;
        report_fault(of, code, from->peer_rank, what);
        return false;
    }

    /* All lanes are done with the slots: post the filled one, free the read one. */
    RONDO_MEMBER void hand_over(bool posts, uint64_t bytes, bool frees)
    {
        barrier();
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

    /* Send bytes of memory; keep (unless NULL, or the very same memory) gets a copy. Uses a slot even for 0
     * bytes. */
    RONDO_MEMBER bool send(const void *x, void *keep, uint64_t bytes)
    {
        if (!credit())
            return false;
        copy_bytes(outgoing(), keep == x ? nullptr : keep, x, bytes);
        hand_over(true, bytes, false);
        return true;
    }

    /* Receive into memory. Uses a slot even for 0 bytes. */
    RONDO_MEMBER bool take(void *keep, uint64_t bytes)
    {
        if (!data(bytes))
            return false;
        copy_bytes(keep, nullptr, arrived(), bytes);
        hand_over(false, 0, true);
        return true;
    }

    /* Receive and send on; keep as in send(). */
    RONDO_MEMBER bool pass(void *keep, uint64_t bytes)
    {
        if (!data(bytes) || !credit())
            return false;
        copy_bytes(outgoing(), keep, arrived(), bytes);
        hand_over(true, bytes, true);
        return true;
    }
};

/* What data movement does with a part, by action. own and keep are where the part lies in the user's buffers.
 */
RONDO_OUTLINE bool move_part(simple_ends &ends, enum rondo_action action, const void *own, void *keep,
                             uint64_t bytes)
{
    if (bytes == 0)
        return true;
    switch (action) {
    case RONDO_ACTION_ENTER:
        return ends.send(own, keep, bytes);
    case RONDO_ACTION_PASS:
        return ends.pass(keep, bytes);
    case RONDO_ACTION_TAKE:
        return ends.take(keep, bytes);
    default:
        return true;
    }
}

/* What a reduction does with a part of n elements. Spans has the loops of its type and operation:
 * typed_spans, or a table of them. Partial sums travel as the wire type of Spans, results as the user's type.
 */
template <class Spans> struct simple_folder {
    simple_ends &ends;
    Spans spans;
    uint64_t scalar;

    RONDO_MEMBER bool enter(const void *own, uint64_t n)
    {
        if (!ends.credit())
            return false;
        spans.enter(ends.outgoing(), own, n, scalar);
        ends.hand_over(true, n * spans.wire_bytes(), false);
        return true;
    }

    RONDO_MEMBER bool fold(const void *own, uint64_t n)
    {
        if (!ends.data(n * spans.wire_bytes()) || !ends.credit())
            return false;
        spans.fold(ends.outgoing(), ends.arrived(), own, n, scalar);
        ends.hand_over(true, n * spans.wire_bytes(), true);
        return true;
    }

    RONDO_MEMBER bool finish(const void *own, void *keep, uint64_t n)
    {
        if (!ends.data(n * spans.wire_bytes()))
            return false;
        spans.finish(keep, nullptr, ends.arrived(), own, n, scalar);
        ends.hand_over(false, 0, true);
        return true;
    }

    RONDO_MEMBER bool finish_send(const void *own, void *keep, uint64_t n)
    {
        if (!ends.data(n * spans.wire_bytes()) || !ends.credit())
            return false;
        spans.finish(ends.outgoing(), keep, ends.arrived(), own, n, scalar);
        ends.hand_over(true, n * spans.element_bytes(), true);
        return true;
    }

    RONDO_OUTLINED_MEMBER bool part(enum rondo_action action, const void *own, void *keep, uint64_t n)
    {
        if (n == 0)
            return true;
        switch (action) {
        case RONDO_ACTION_ENTER:
            return enter(own, n);
        case RONDO_ACTION_FOLD:
            return fold(own, n);
        case RONDO_ACTION_FINISH:
            return finish(own, keep, n);
        case RONDO_ACTION_FINISH_SEND:
            return finish_send(own, keep, n);
        default:
            return move_part(ends, action, own, keep, n * spans.element_bytes());
        }
    }
};

} // namespace RONDO_KERNELS

#endif
