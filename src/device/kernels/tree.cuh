/*
 * tree.cuh - all-reduce by a tree: partial sums go up to the root, results come down.
 *
 * Two works on a rank, which run at once in the two lists of its block, each in pieces of a chunk:
 *
 *     TREE_UP     fold the own input with what the children sent: the first child's, the own, the
 *                 second's, ..; send that to the parent. The root finishes it, keeps it, and sends it down.
 *     TREE_DOWN   take a result from the parent, keep it, and pass it to the children.
 *
 * The two share no end and wait for each other through other ranks alone. Nobody gets stuck: going up waits
 * for what is below and for a parent that goes up, going down for what is above and for children that go
 * down; the root has no way down of its own that it could wait for. In place (recv is send) a result arrives
 * only after all inputs of it have been read, element by element, the own among them. Two works of one list
 * have no such order between each other's buffers: the later one goes up while the earlier comes down.
 *
 * A node is a struct by protocol (tree_node) with these members for all lanes together; false as in ends.cuh:
 *
 *   up(spans, scalar, own, keep, n)   a piece of n elements
 *   down(keep, bytes, spread)         the same of bytes
 */
#ifndef RONDO_KERNELS_TREE_CUH
#define RONDO_KERNELS_TREE_CUH

#include "kernels/protocol_ll.cuh"
#include "kernels/protocol_ll128.cuh"
#include "kernels/protocol_simple.cuh"

namespace RONDO_KERNELS
{

constexpr unsigned TREE_CHILDREN = RONDO_TREE_PORTS - RONDO_TREE_CHILD;

RONDO_INLINE bool is_tree_root(const struct rondo_work &w)
{
    return !w.peers[RONDO_TREE_PARENT].to;
}

/* Of the ends at a port those that a work needs. */
template <class Ends> RONDO_INLINE Ends tree_end(const job &j, unsigned port)
{
    const struct rondo_peer_ends &peer = j.work->peers[port];
    bool is_up = j.work->kind == RONDO_WORK_TREE_UP, is_parent = port == RONDO_TREE_PARENT;
    bool takes = is_up != is_parent, posts = is_up == is_parent || is_tree_root(*j.work);

    return Ends(j, takes ? peer.from : nullptr, posts ? peer.to : nullptr);
}

/* A work's ends by port. */
template <class Ends> struct tree_ports {
    Ends at[RONDO_TREE_PORTS];

    RONDO_MEMBER explicit tree_ports(const job &j)
        : at{tree_end<Ends>(j, 0), tree_end<Ends>(j, 1), tree_end<Ends>(j, 2), tree_end<Ends>(j, 3)}
    {
        static_assert(RONDO_TREE_PORTS == 4, "one end for each");
    }

    RONDO_MEMBER bool goes_up() const
    {
        return at[RONDO_TREE_PARENT].to;
    }

    RONDO_MEMBER void close()
    {
        for (Ends &ends : at) {
            if (ends.from || ends.to)
                ends.close();
        }
    }
};

template <class Ends> struct tree_node;

template <> struct tree_node<simple_ends> : tree_ports<simple_ends> {
    using tree_ports<simple_ends>::tree_ports;

    RONDO_MEMBER bool may_begin(uint64_t in_bytes) const
    {
        for (const simple_ends &ends : at) {
            if ((ends.from && !ends.data(in_bytes)) || (ends.to && !ends.credit()))
                return false;
        }
        return true;
    }

    RONDO_MEMBER void end(uint64_t out_bytes)
    {
        barrier();
        for (simple_ends &ends : at)
            ends.hand_on(ends.to, out_bytes, ends.from);
    }

    /* To the slots of all children, and to keep unless that is NULL. */
    RONDO_MEMBER void copy_down(const void *from, void *keep, uint64_t bytes) const
    {
        for (unsigned p = RONDO_TREE_CHILD; p < RONDO_TREE_PORTS; p++) {
            if (at[p].to) {
                copy_bytes(at[p].outgoing(), keep, from, bytes);
                keep = nullptr;
            }
        }
        if (keep)
            copy_bytes(keep, nullptr, from, bytes);
    }

    template <class Spans>
    RONDO_MEMBER void fold(const Spans &spans, uint64_t scalar, const void *const *in, uint32_t children,
                           const void *own, uint64_t n) const
    {
        unsigned char *out = at[RONDO_TREE_PARENT].outgoing();

        if (children == 0)
            spans.enter(out, own, n, scalar);
        else if (children == 1)
            spans.fold(out, in[0], own, n, scalar);
        else
            spans.join(out, in, children, own, n, scalar);
    }

    /* With several children the result is made in keep: other lanes copy it from there than made it. */
    template <class Spans>
    RONDO_MEMBER void finish(const Spans &spans, uint64_t scalar, const void *const *in, uint32_t children,
                             const void *own, void *keep, uint64_t n) const
    {
        if (children == 1) {
            spans.finish(at[RONDO_TREE_CHILD].outgoing(), keep, in[0], own, n, scalar);
            return;
        }
        spans.join_finish(keep, in, children, own, n, scalar);
        barrier();
        copy_down(keep, nullptr, n * spans.element_bytes());
    }

    template <class Spans>
    RONDO_MEMBER bool up(const Spans &spans, uint64_t scalar, const void *own, void *keep, uint64_t n)
    {
        const void *in[TREE_CHILDREN];
        uint32_t children = 0;

        if (!may_begin(n * spans.wire_bytes()))
            return false;
        for (unsigned p = RONDO_TREE_CHILD; p < RONDO_TREE_PORTS; p++) {
            if (at[p].from)
                in[children++] = at[p].arrived();
        }
        if (goes_up())
            fold(spans, scalar, in, children, own, n);
        else
            finish(spans, scalar, in, children, own, keep, n);
        end(n * (goes_up() ? spans.wire_bytes() : spans.element_bytes()));
        return true;
    }

    RONDO_MEMBER bool down(void *keep, uint64_t bytes, unsigned)
    {
        if (!may_begin(bytes))
            return false;
        copy_down(at[RONDO_TREE_PARENT].arrived(), keep, bytes);
        end(bytes);
        return true;
    }
};

template <class Wire> struct tree_node<flagged_ends<Wire>> : tree_ports<flagged_ends<Wire>> {
    using Ends = flagged_ends<Wire>;
    using tree_ports<Ends>::tree_ports;
    using tree_ports<Ends>::at;

    /* As flagged_ends has a part of one end each way. */
    template <class Body>
    RONDO_MEMBER bool part(uint64_t in_bytes, uint64_t out_bytes, uint64_t n, uint64_t stride,
                           const Body &body)
    {
        passage how[RONDO_TREE_PORTS];
        bool moved = true;

        for (unsigned p = 0; p < RONDO_TREE_PORTS; p++) {
            Ends &ends = at[p];

            how[p] = {ends.from != nullptr, ends.to != nullptr};
            if ((how[p].takes || how[p].posts) && !ends.may_move(how[p].posts))
                return false;
        }
        for (unsigned p = 0; p < RONDO_TREE_PORTS && moved; p++) {
            const Ends &ends = at[p];

            moved = !how[p].takes || ends.is_expected(in_bytes);
        }
        moved = moved && Ends::template move_through<RONDO_TREE_PORTS>(at, how, out_bytes, n, stride, body);
        if (!agree_all(moved))
            return false;
        for (unsigned p = 0; p < RONDO_TREE_PORTS; p++)
            at[p].step_on(how[p].takes, how[p].posts);
        return true;
    }

    template <class Spans>
    static RONDO_MEMBER void fold(const Spans &spans, uint64_t scalar, void *out, const void *const *in,
                                  uint32_t children, const void *own, uint64_t n)
    {
        if (children == 0)
            spans.lane_enter(out, own, n, scalar);
        else if (children == 1)
            spans.lane_fold(out, in[0], own, n, scalar);
        else
            spans.lane_join(out, in, children, own, n, scalar);
    }

    template <class Spans>
    static RONDO_MEMBER void finish(const Spans &spans, uint64_t scalar, void *out, const void *const *in,
                                    uint32_t children, const void *own, void *keep, uint64_t n)
    {
        if (children == 1) {
            spans.lane_finish(out, keep, in[0], own, n, scalar);
            return;
        }
        spans.lane_join_finish(out, in, children, own, n, scalar);
        lane_copy(keep, out, n * spans.element_bytes());
    }

    template <class Spans>
    RONDO_MEMBER bool up(const Spans &spans, uint64_t scalar, const void *own, void *keep, uint64_t n)
    {
        uint64_t element = spans.element_bytes(), wire = spans.wire_bytes();
        bool is_root = !this->goes_up();

        return part(n * wire, n * (is_root ? element : wire), n, wire,
                    [&](void *out, const void *const *came, uint64_t first, uint64_t count) {
                        const unsigned char *x = (const unsigned char *)own + first * element;
                        const void *in[TREE_CHILDREN];
                        uint32_t children = 0;

                        for (unsigned p = RONDO_TREE_CHILD; p < RONDO_TREE_PORTS; p++) {
                            if (at[p].from)
                                in[children++] = came[p];
                        }
                        if (is_root)
                            finish(spans, scalar, out, in, children, x,
                                   (unsigned char *)keep + first * element, count);
                        else
                            fold(spans, scalar, out, in, children, x, count);
                    });
    }

    RONDO_MEMBER bool down(void *keep, uint64_t bytes, unsigned spread)
    {
        return part(bytes, bytes, bytes, spread,
                    [&](void *out, const void *const *came, uint64_t first, uint64_t count) {
                        lane_copy(out, came[RONDO_TREE_PARENT], count);
                        lane_copy((unsigned char *)keep + first, came[RONDO_TREE_PARENT], count);
                    });
    }
};

template <class Ends, class Spans>
RONDO_OUTLINE bool tree_up(const job &j, const Spans &spans, uint64_t scalar)
{
    const struct rondo_work &w = *j.work;
    uint64_t bytes = spans.element_bytes();
    tree_node<Ends> node(j);
    bool done = true;

    for (uint64_t i = 0; done && i < rondo_pieces(w.count, w.chunk); i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        done =
            node.up(spans, scalar, own_at(w, part.first, bytes), keep_at(w, part.first, bytes), part.count);
    }
    node.close();
    return done;
}

/* spread as in ends.cuh. */
template <class Ends> RONDO_OUTLINE bool tree_down(const job &j, uint64_t bytes, unsigned spread)
{
    const struct rondo_work &w = *j.work;
    tree_node<Ends> node(j);
    bool done = true;

    for (uint64_t i = 0; done && i < rondo_pieces(w.count, w.chunk); i++) {
        struct rondo_part part = rondo_piece(w.count, w.chunk, i);

        done = node.down(keep_at(w, part.first, bytes), part.count * bytes, spread);
    }
    node.close();
    return done;
}

} // namespace RONDO_KERNELS

#endif
