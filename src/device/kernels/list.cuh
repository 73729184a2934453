/*
 * list.cuh - what every kernel does: run one list of works, each checked before it is believed.
 *
 * Works come from the planner of the same library, so an unsound one is our own mistake; it ends the launch
 * as ncclInternalError instead of as a wild access.
 */
#ifndef RONDO_KERNELS_LIST_CUH
#define RONDO_KERNELS_LIST_CUH

#include "kernels/chain.cuh"
#include "kernels/direct.cuh"
#include "kernels/oneshot.cuh"
#include "kernels/p2p.cuh"
#include "kernels/protocol_ll.cuh"
#include "kernels/protocol_ll128.cuh"
#include "kernels/protocol_simple.cuh"
#include "kernels/ring.cuh"
#include "kernels/tree.cuh"

namespace RONDO_KERNELS
{

/* Bytes of an element as the user has it, and as its partial sums travel. 0: no such type. */
RONDO_INLINE uint64_t element_bytes(unsigned dtype, bool wide)
{
    switch (dtype) {
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, wider, ...) \
    case id:                                                      \
        return wide ? sizeof(wider) : bytes;
#include "device/dtypes.def"
#undef RONDO_DTYPE
    default:
        return 0;
    }
}

/* What a kind needs of its work: its row of works.def. */
struct requirements {
    bool known, receives, sends, reduces, in_bytes, peers;
};

RONDO_INLINE requirements requirements_of(unsigned kind)
{
    switch (kind) {
#define RONDO_WORK(id, receives, sends, reduces, in_bytes, peers) \
    case RONDO_WORK_##id:                                         \
        return {true, receives, sends, reduces, in_bytes, peers};
#include "device/works.def"
#undef RONDO_WORK
    default:
        return {false, false, false, false, false, false};
    }
}

/* A chunk of 0 would never end, one larger than a slot would write beyond it. */
RONDO_INLINE bool fits(const struct rondo_work &w, const struct rondo_end *end, uint64_t wire_bytes)
{
    return end && w.chunk > 0 &&
           w.chunk <= rondo_protocol_capacity((enum rondo_protocol)w.protocol, end->slot_bytes) / wire_bytes;
}

/* Whether a direct work names peers and, where it has one, a root. */
RONDO_INLINE bool has_peers(const job &j)
{
    const struct rondo_work &w = *j.work;
    uint32_t ranks = (uint32_t)j.args->ranks;
    bool is_rooted = w.kind == RONDO_WORK_DIRECT_BROADCAST || w.kind == RONDO_WORK_DIRECT_REDUCE ||
                     w.kind == RONDO_WORK_DIRECT_GATHER || w.kind == RONDO_WORK_DIRECT_SCATTER;

    if (j.args->ranks < 2 || !w.peers || (is_rooted && (uint32_t)w.root >= ranks))
        return false;
    for (uint32_t r = 0; r < ranks; r++)
        if (r != (uint32_t)j.args->rank && (!w.peers[r].from || !w.peers[r].to))
            return false;
    return true;
}

/* Everything that the messages of a pulled work and its bounce area may touch. bytes: of an element. */
RONDO_INLINE bool fits_offers(const job &j, uint64_t bytes)
{
    const struct rondo_work &w = *j.work;
    uint32_t ranks = (uint32_t)j.args->ranks;

    if (!w.sources || !w.bounce || w.chunk == 0 || w.chunk > w.bounce_bytes / bytes)
        return false;
    const struct rondo_pull pull = rondo_pull_of(&w, ranks);
    if (rondo_pull_bounce(&pull) > w.bounce_bytes / bytes)
        return false;
    for (uint32_t r = 0; r < ranks; r++)
        if (r != (uint32_t)j.args->rank && (w.peers[r].from->slot_bytes < RONDO_OFFER_SLOT_BYTES ||
                                            w.peers[r].to->slot_bytes < RONDO_OFFER_SLOT_BYTES))
            return false;
    return true;
}

/* What has_peers() is for direct works, of a tree work: neighbours at all that both ways lead to, and a
 * parent for what goes down. */
RONDO_INLINE bool has_ports(const job &j, uint64_t wire_bytes)
{
    const struct rondo_work &w = *j.work;
    bool has_any = false;

    if (j.args->ranks < 2 || !w.peers)
        return false;
    for (uint32_t p = 0; p < RONDO_TREE_PORTS; p++) {
        const struct rondo_peer_ends &peer = w.peers[p];

        if (!peer.from && !peer.to)
            continue;
        if (!fits(w, peer.from, wire_bytes) || !fits(w, peer.to, wire_bytes))
            return false;
        has_any = true;
    }
    return w.kind == RONDO_WORK_TREE_UP ? has_any : !is_tree_root(w);
}

/* Whether a piece of a one-shot work fits the slots of all peers. bytes: of an element as it travels. */
RONDO_INLINE bool fits_peers(const job &j, uint64_t bytes)
{
    const struct rondo_work &w = *j.work;

    for (uint32_t r = 0; r < (uint32_t)j.args->ranks; r++)
        if (r != (uint32_t)j.args->rank &&
            !(fits(w, w.peers[r].from, bytes) && fits(w, w.peers[r].to, bytes)))
            return false;
    return true;
}

RONDO_INLINE bool is_sound_direct(const job &j, bool reduces)
{
    const struct rondo_work &w = *j.work;

    if (!has_peers(j))
        return false;
    if (w.protocol == RONDO_PROTOCOL_SIMPLE)
        return fits_offers(j, element_bytes(w.dtype, false));
    return fits_peers(j, element_bytes(w.dtype, reduces && rondo_push_is_wide(w.redop)));
}

RONDO_INLINE bool is_sound(const job &j)
{
    const struct rondo_work &w = *j.work;
    const requirements needs = requirements_of(w.kind);
    bool is_tree = w.kind == RONDO_WORK_TREE_UP || w.kind == RONDO_WORK_TREE_DOWN;
    bool wide = (needs.reduces || is_tree) && (w.flags & RONDO_WORK_PRECISE);
    uint64_t wire = needs.in_bytes ? 1 : element_bytes(w.dtype, wide);

    if (!needs.known || wire == 0 || w.redop >= RONDO_REDOP_NUM)
        return false;
    if (needs.receives && needs.sends && j.args->ranks < 2)
        return false;
    if (needs.peers)
        return is_sound_direct(j, needs.reduces);
    if (is_tree)
        return has_ports(j, wire);
    return (!needs.receives || fits(w, w.from, wire)) && (!needs.sends || fits(w, w.to, wire));
}

/* Whether a copy changes what it copies. */
RONDO_INLINE bool copy_computes(const struct rondo_work &w)
{
    return w.redop == RONDO_REDOP_PREMULSUM || (w.redop == RONDO_REDOP_SUMDIV && w.scalar > 1);
}

/* End the launch for a work that nobody should have planned. */
RONDO_INLINE void refuse(const job &j)
{
    mismatch nothing = {j.work->fingerprint, j.work->kind, j.work->chunk, j.work->count};

    if (lane_index() == 0)
        report_fault(j, ncclInternalError, -1, nothing);
}

/* How many times wider partial sums are on the wire than results. */
RONDO_INLINE unsigned wire_spread(const struct rondo_work &w)
{
    return (unsigned)(element_bytes(w.dtype, w.flags & RONDO_WORK_PRECISE) / element_bytes(w.dtype, false));
}

/* Each kind over one protocol. */
template <class Ends> RONDO_OUTLINE bool move_over(const job &j)
{
    uint64_t bytes = element_bytes(j.work->dtype, false);
    Ends ends(j);
    bool done;

    switch (j.work->kind) {
    case RONDO_WORK_RING_ALL_GATHER:
        done = ring_all_gather(j, ends, bytes);
        break;
    case RONDO_WORK_RING_BROADCAST:
        done = ring_broadcast(j, ends, bytes);
        break;
    case RONDO_WORK_SEND:
        done = p2p_send(j, ends);
        break;
    case RONDO_WORK_RECV:
        done = p2p_recv(j, ends);
        break;
    case RONDO_WORK_TREE_DOWN:
        done = tree_down<Ends>(j, bytes, wire_spread(*j.work));
        break;
    default: /* a kind that run_list should have given to reduce, or that nobody has written */
        refuse(j);
        done = false;
        break;
    }
    ends.close();
    return done;
}

template <class Ends, class Spans>
RONDO_OUTLINE bool reduce_over(const job &j, const Spans &spans, uint64_t scalar)
{
    Ends ends(j);
    folder<Ends, Spans> folder{ends, spans, scalar};
    bool done;

    switch (j.work->kind) {
    case RONDO_WORK_RING_ALL_REDUCE:
        done = ring_all_reduce(j, folder);
        break;
    case RONDO_WORK_RING_REDUCE_SCATTER:
        done = ring_reduce_scatter(j, folder);
        break;
    case RONDO_WORK_RING_REDUCE:
        done = ring_reduce(j, folder);
        break;
    case RONDO_WORK_CHAIN_ALL_REDUCE:
    case RONDO_WORK_CHAIN_REDUCE_SCATTER:
    case RONDO_WORK_CHAIN_REDUCE:
        done = chain_reduction(j, folder);
        break;
    case RONDO_WORK_TREE_UP:
        done = tree_up<Ends>(j, spans, scalar);
        break;
    default: /* a kind that works.def calls a reduction, and that nobody has written */
        refuse(j);
        done = false;
        break;
    }
    ends.close();
    return done;
}

/* Of the protocols that is_sound_direct() lets through: another, which nobody has written here, is refused.
 */
RONDO_INLINE bool move_directly(const job &j)
{
    uint64_t bytes = element_bytes(j.work->dtype, false);

    switch (j.work->protocol) {
    case RONDO_PROTOCOL_SIMPLE:
        return direct_move(j, bytes);
    case RONDO_PROTOCOL_LL:
        return oneshot_move<ll_wire>(j, bytes);
    case RONDO_PROTOCOL_LL128:
        return oneshot_move<ll128_wire>(j, bytes);
    default:
        refuse(j);
        return false;
    }
}

template <class Spans> RONDO_INLINE bool reduce_directly(const job &j, const Spans &spans, uint64_t scalar)
{
    switch (j.work->protocol) {
    case RONDO_PROTOCOL_SIMPLE:
        return direct_reduction(j, spans, scalar);
    case RONDO_PROTOCOL_LL:
        return oneshot_reduction<ll_wire>(j, spans, scalar);
    case RONDO_PROTOCOL_LL128:
        return oneshot_reduction<ll128_wire>(j, spans, scalar);
    default:
        refuse(j);
        return false;
    }
}

/* Run one sound work that computes nothing. is_sound() knows the protocols. */
RONDO_INLINE bool move_work(const job &j)
{
    if (j.work->kind == RONDO_WORK_COPY)
        return copy_alone(j, element_bytes(j.work->dtype, false));
    if (requirements_of(j.work->kind).peers)
        return move_directly(j);
    switch (j.work->protocol) {
    case RONDO_PROTOCOL_LL:
        return move_over<ll_ends>(j);
    case RONDO_PROTOCOL_LL128:
        return move_over<ll128_ends>(j);
    default:
        return move_over<simple_ends>(j);
    }
}

/* Run one sound work that reduces, or a copy that computes, with the loops of its type, wire and operation.
 */
template <class Spans> RONDO_OUTLINE bool reduce_work(const job &j, Spans spans)
{
    const struct rondo_work &w = *j.work;
    bool is_address = w.redop == RONDO_REDOP_PREMULSUM && (w.flags & RONDO_WORK_SCALAR_POINTER);
    uint64_t scalar = is_address ? spans.scalar_from((const void *)(uintptr_t)w.scalar) : w.scalar;

    if (w.kind == RONDO_WORK_COPY)
        return reduce_alone(j, spans, scalar);
    if (requirements_of(w.kind).peers)
        return reduce_directly(j, spans, scalar);
    switch (w.protocol) {
    case RONDO_PROTOCOL_LL:
        return reduce_over<ll_ends>(j, spans, scalar);
    case RONDO_PROTOCOL_LL128:
        return reduce_over<ll128_ends>(j, spans, scalar);
    default:
        return reduce_over<simple_ends>(j, spans, scalar);
    }
}

/* Run the list (block, role). reduce runs one work that computes; false from it, as from all of them, ends
 * the list. */
template <class Reduce>
RONDO_INLINE void run_list(const machine &where, const struct rondo_kernel_args *args, uint32_t block,
                           uint32_t role, Reduce reduce)
{
    if (block >= args->blocks || role > 1)
        return;
    const struct rondo_block &works = args->block[block];

    for (uint32_t i = 0; i < works.works[role]; i++) {
        uint32_t index = works.first[role] + i;
        job j = {where, args, args->work + index, index, block * 2 + role};
        bool computes = requirements_of(j.work->kind).reduces ||
                        (j.work->kind == RONDO_WORK_COPY && copy_computes(*j.work));

        enter_work(where, j.work, index);
        if (!is_sound(j)) {
            refuse(j);
            return;
        }
        if (!(computes ? reduce(j) : move_work(j)))
            return;
    }
}

} // namespace RONDO_KERNELS

#endif
