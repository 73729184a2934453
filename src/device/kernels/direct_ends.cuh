/*
 * direct_ends.cuh - offers between the ranks of a direct work, and the leave to read what was offered.
 *
 * struct rondo_offer says what travels; pull.h says who offers what to whom. Everything but the functions
 * that begin with "all" is called by lane 0 alone, between barriers. False means: stop was raised, and the
 * work ends without touching memory again.
 *
 *     sender, lane 0                                     receiver
 *     writes  offer and head                             lane 0 waits for posted (acquire), compares the head
 *     posts   (release; the barrier before it            lane 0 takes the gate
 *             covers what all lanes wrote)               all lanes read the sender's memory; barrier
 *     waits   consumed (acquire): it has been read       lane 0 leaves the gate, and frees the slot (release)
 *
 * Memory that a peer may read is the user's again when the work ends. At its normal end all offers have been
 * consumed. A work that is stopped revokes them: it takes each peer's gate for good. A peer in the same
 * process leaves it soon, as nothing waits while holding one, and is waited for: the user may unmap the
 * memory next. Of a peer in another process nobody knows whether it still runs. There the mapping stays, so
 * what the peer reads is at worst not what was offered; it sees that when it leaves the gate, and then waits
 * for the stop.
 */
#ifndef RONDO_KERNELS_DIRECT_ENDS_CUH
#define RONDO_KERNELS_DIRECT_ENDS_CUH

#include "kernels/job.cuh"

#include "device/pull.h"

namespace RONDO_KERNELS
{

struct direct_ends {
    const job &of;
    const struct rondo_work &work;
    struct rondo_pull pull;
    uint32_t own;
    uint64_t bytes;  /* of an element */
    uint64_t scalar; /* that this rank's input enters with */

    RONDO_MEMBER direct_ends(const job &j, uint64_t element_bytes, uint64_t own_scalar)
        : of(j), work(*j.work), pull(rondo_pull_of(j.work, (uint32_t)j.args->ranks)),
          own((uint32_t)j.args->rank), bytes(element_bytes), scalar(own_scalar)
    {
    }

    /* The k-th rank behind this one: if each rank goes round in this order, no two are at the same peer. */
    RONDO_MEMBER uint32_t behind(uint32_t k) const
    {
        return (own + pull.ranks - k) % pull.ranks;
    }

    RONDO_MEMBER static struct rondo_gate *gate_of(const struct rondo_end *end)
    {
        return (struct rondo_gate *)(end->slots + RONDO_GATE_OFFSET);
    }

    /* Tell rank r that `counted` elements lie at address. The slot is free: no work has more than four offers
     * to one rank on their way (direct.cuh), and each begins with none. What is posted is released to
     * accept() of the peer. */
    RONDO_MEMBER bool offer(uint32_t r, const void *address, bool is_whole, uint64_t counted) const
    {
        struct rondo_end *to = work.peers[r].to;
        uint64_t step = load_plain(&to->step);
        uint32_t slot = step % RONDO_SLOTS;
        struct rondo_offer *said = (struct rondo_offer *)(to->slots + slot * to->slot_bytes);

        if (stop_raised(of.where))
            return false;
        store_plain(&said->address, (uint64_t)(uintptr_t)address);
        store_plain(&said->is_whole, (uint64_t)is_whole);
        store_plain(&said->scalar, scalar);
        store_plain(&to->heads[slot].fingerprint, work.fingerprint);
        store_plain(&to->heads[slot].bytes, counted * bytes);
        publish(of.where, to->posted, step + 1, to->peer);
        store_plain(&to->step, step + 1);
        return true;
    }

    /* Wait until rank r has consumed all offers but the last few. The acquire pairs with release() of the
     * peer. */
    RONDO_MEMBER bool consumed(uint32_t r, uint64_t few) const
    {
        struct rondo_end *to = work.peers[r].to;

        return wait_for(of, to->consumed, load_plain(&to->step) - few, RONDO_WAIT_SEND, to->peer_rank);
    }

    RONDO_MEMBER void fault(uint32_t r, uint64_t found, uint64_t counted, uint64_t found_bytes) const
    {
        mismatch what = {work.fingerprint, found, counted * bytes, found_bytes};

        report_fault(of, found != work.fingerprint ? ncclInvalidUsage : ncclInternalError, (int32_t)r, what);
    }

    /* Wait for the next offer of rank r: a piece or result of `piece` elements, or all of an input of
     * `whole`. It is believed only if it is of this operation, cut as here, and in the window. The acquire
     * pairs with offer() of the peer; the barrier or agreement that follows hands it on to all lanes. */
    RONDO_MEMBER bool accept(uint32_t r, uint64_t piece, uint64_t whole, const unsigned char *&at,
                             struct rondo_offer &offered) const
    {
        const struct rondo_window &window = work.peers[r].window;
        struct rondo_end *from = work.peers[r].from;
        uint64_t step = load_plain(&from->step);
        const struct rondo_slot_head *head = &from->heads[step % RONDO_SLOTS];
        const struct rondo_offer *said =
            (const struct rondo_offer *)(from->slots + step % RONDO_SLOTS * from->slot_bytes);

        if (!wait_for(of, from->posted, step + 1, RONDO_WAIT_RECV, from->peer_rank))
            return false;
        offered = load_plain(said);
        uint64_t counted = offered.is_whole ? whole : piece;
        uint64_t found = load_plain(&head->fingerprint), found_bytes = load_plain(&head->bytes);
        uint64_t offset = offered.address - window.base; /* wraps when it is below */
        bool is_inside = found_bytes == 0 || (offset <= window.bytes && found_bytes <= window.bytes - offset);

        if (found != work.fingerprint || found_bytes != counted * bytes || !is_inside) {
            fault(r, found, counted, found_bytes);
            return false;
        }
        at = (const unsigned char *)((uintptr_t)window.here + offset);
        return true;
    }

    /* What all lanes read of rank r after the next barrier. */
    RONDO_MEMBER void set_source(uint32_t r, const void *at, uint64_t entered_with) const
    {
        store_plain(&work.sources[r].at, at);
        store_plain(&work.sources[r].scalar, entered_with);
    }

    /* Free the slot of the last accepted offer: what lanes have read of it, before a barrier, is released to
     * consumed() of the peer. */
    RONDO_MEMBER void release(uint32_t r) const
    {
        struct rondo_end *from = work.peers[r].from;
        uint64_t step = load_plain(&from->step);

        publish(of.where, from->consumed, step + 1, from->peer);
        store_plain(&from->step, step + 1);
    }

    /* The peer has ended without this work: nothing will come of it but a stop. */
    RONDO_MEMBER bool wait_for_stop(uint32_t r) const
    {
        struct rondo_end *from = work.peers[r].from;

        return wait_for(of, from->posted, load_plain(&from->step) + (UINT64_MAX >> 2), RONDO_WAIT_RECV,
                        from->peer_rank);
    }

    /* Between these the memory of rank r may be read. Who holds a gate waits for nothing. Entering orders
     * nothing and pairs with nothing: a read that comes too early finds what was offered too.
     *
     * The fence of leave_gate() pairs with that of the peer's revoke() in two ways. Where the peer waits for
     * its gate, it finds is_taken as it is stored after the fence here: all reads come before what the user
     * does with the memory next. Where it does not, whoever has read anything that was stored after the fence
     * there finds is_revoked after the fence here. The barrier before adds what the other lanes have read. */
    RONDO_MEMBER bool enter_gate(uint32_t r) const
    {
        return claim(&gate_of(work.peers[r].from)->is_taken);
    }

    RONDO_MEMBER bool leave_gate(uint32_t r) const
    {
        struct rondo_gate *gate = gate_of(work.peers[r].from);

        fence<scope::SYSTEM>(); /* what was read comes before the look whether it was still the peer's, */
        bool is_revoked = load_relaxed(&gate->is_revoked) != 0;
        store_relaxed(&gate->is_taken, 0u); /* and before the peer has it back */
        return !is_revoked;
    }

    /* All lanes: copy `count` elements of rank r's memory. On lane 0 have() says in sources where they lie,
     * and drop() is told that they have been read. */
    template <class Have, class Drop>
    RONDO_MEMBER bool all_read(uint32_t r, void *to, uint64_t count, const Have &have, const Drop &drop) const
    {
        bool may = true;

        if (lane_index() == 0)
            may = have() && (enter_gate(r) || wait_for_stop(r));
        if (!agree(may))
            return false;
        copy_bytes(to, nullptr, load_plain(&work.sources[r].at), count * bytes);
        barrier();
        if (lane_index() == 0) {
            may = leave_gate(r) || wait_for_stop(r);
            if (may)
                drop();
        }
        return agree(may);
    }

    /* Nobody reads this rank's memory from here on; the head of this file says how far that goes. A gate that
     * an earlier work has taken stays taken: this rank runs nothing after a stop. The fence pairs with those
     * of the peers' leave_gate(), which says how. */
    RONDO_MEMBER void revoke() const
    {
        for (uint32_t k = 1; k < pull.ranks; k++) {
            const struct rondo_peer_ends &peer = work.peers[behind(k)];
            struct rondo_gate *gate = gate_of(peer.to);

            if (load_relaxed(&gate->is_revoked) != 0)
                continue;
            store_relaxed(&gate->is_revoked, 1u);
            while (!claim(&gate->is_taken) && !peer.window.here)
                breathe(of.where);
        }
        fence<scope::SYSTEM>(); /* what peers have read comes before what the user does with it, */
    }                           /* and that comes after the word that it was revoked */

    /* The end of a work, well or stopped, by all lanes. */
    RONDO_MEMBER bool all_end(bool done) const
    {
        bool drained = done;

        if (lane_index() == 0) {
            for (uint32_t k = 1; k < pull.ranks && drained; k++)
                drained = consumed(behind(k), 0);
            if (!drained)
                revoke();
        }
        return agree(drained);
    }
};

} // namespace RONDO_KERNELS

#endif
