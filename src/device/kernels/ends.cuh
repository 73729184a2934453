/*
 * ends.cuh - what the protocols have in common: the two connections of a work, and what happens to a part.
 *
 * A protocol is a struct of ends with these members, which all lanes of the block call together:
 *
 *   send(x, keep, bytes)       memory, to the next slot; keep (unless NULL, or the very same memory) gets a
 *                              copy
 *   take(keep, bytes)          the next slot, to memory
 *   pass(keep, bytes)          the next slot, to the next one of the other side; keep as in send
 *   enter, fold, finish, finish_send
 *                              what a reduction does with n elements (schedule.h), with the loops of spans
 *   window                     steps that a sender may always be ahead of its receiver
 *
 * All use a slot even for 0 bytes. Every false means: stop was raised (by a fault found here, if not by
 * others); the work ends without touching memory again. All lanes get the same answer.
 *
 * Elements of results may be narrower than those of partial sums (RONDO_WORK_PRECISE). spread says how many
 * times: a protocol that deals a slot to lanes by elements then leaves room between them.
 */
#ifndef RONDO_KERNELS_ENDS_CUH
#define RONDO_KERNELS_ENDS_CUH

#include "kernels/job.cuh"
#include "kernels/span.cuh"

namespace RONDO_KERNELS
{

/* Both ends of one work. Every lane counts steps by itself, all alike. */
struct ends {
    const job &of;
    struct rondo_end *from, *to; /* NULL where the work has none */
    uint64_t received, sent;     /* next steps */

    RONDO_MEMBER ends(const job &j, struct rondo_end *source, struct rondo_end *target)
        : of(j), from(source), to(target), received(from ? load_plain(&from->step) : 0),
          sent(to ? load_plain(&to->step) : 0)
    {
    }

    RONDO_MEMBER explicit ends(const job &j) : ends(j, j.work->from, j.work->to)
    {
    }

    /* Those to one of many peers, `ahead` steps after where the work began. Such a work keeps the steps
     * itself. */
    RONDO_MEMBER ends(const job &j, const struct rondo_peer_ends &peer, uint64_t ahead)
        : of(j), from(peer.from), to(peer.to), received(load_plain(&from->step) + ahead),
          sent(load_plain(&to->step) + ahead)
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

    RONDO_MEMBER unsigned char *arrived() const
    {
        return from->slots + received % RONDO_SLOTS * from->slot_bytes;
    }

    RONDO_MEMBER unsigned char *outgoing() const
    {
        return to->slots + sent % RONDO_SLOTS * to->slot_bytes;
    }

    /* Whether the next slot is what this work expects; if not, lane 0 reports it. */
    RONDO_MEMBER bool matches(const struct rondo_slot_head &head, uint64_t bytes) const
    {
        mismatch what = {of.work->fingerprint, head.fingerprint, bytes, head.bytes};

        if (what.found == what.expected && what.found_bytes == bytes)
            return true;
        /* Equal fingerprints with unequal bytes are no user's doing: the two sides cut the same operation
         * differently. */
        ncclResult_t code = what.found != what.expected ? ncclInvalidUsage : ncclInternalError;
        if (lane_index() == 0)
            report_fault(of, code, from->peer_rank, what);
        return false;
    }
};

/* What data movement does with a part, by action. own and keep are where the part lies in the user's buffers.
 * A part of 0 bytes uses no slot.
 */
template <class Ends>
RONDO_OUTLINE bool move_part(Ends &ends, enum rondo_action action, const void *own, void *keep,
                             uint64_t bytes, unsigned spread = 1)
{
    if (bytes == 0)
        return true;
    switch (action) {
    case RONDO_ACTION_ENTER:
        return ends.send(own, keep, bytes, spread);
    case RONDO_ACTION_PASS:
        return ends.pass(keep, bytes, spread);
    case RONDO_ACTION_TAKE:
        return ends.take(keep, bytes, spread);
    default:
        return true;
    }
}

/* What a reduction does with a part of n elements. Spans has the loops of its type and operation:
 * typed_spans, or a table of them. Partial sums travel as the wire type of Spans, results as the user's type.
 */
template <class Ends, class Spans> struct folder {
    static constexpr uint32_t window = Ends::window;
    Ends &ends;
    Spans spans;
    uint64_t scalar;

    RONDO_OUTLINED_MEMBER bool part(enum rondo_action action, const void *own, void *keep, uint64_t n)
    {
        if (n == 0)
            return true;
        switch (action) {
        case RONDO_ACTION_ENTER:
            return ends.enter(spans, scalar, own, n);
        case RONDO_ACTION_FOLD:
            return ends.fold(spans, scalar, own, n);
        case RONDO_ACTION_FINISH:
            return ends.finish(spans, scalar, own, keep, n);
        case RONDO_ACTION_FINISH_SEND:
            return ends.finish_send(spans, scalar, own, keep, n);
        default:
            return move_part(ends, action, own, keep, n * spans.element_bytes(),
                             (unsigned)(spans.wire_bytes() / spans.element_bytes()));
        }
    }
};

} // namespace RONDO_KERNELS

#endif
