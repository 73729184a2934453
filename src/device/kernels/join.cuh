/*
 * join.cuh - loops of a node with several children: what they sent, in their order, and the own input.
 *
 *   join         out = in[0] folded with entered x, then with in[1], ..    onto the wire
 *   join_finish  out = left (that)                                         where the fold ends
 *
 * Each folds in registers and rounds once, at its end. count is 2 or 3, in[] are wires. The rest is as
 * span.cuh, which includes this, has it.
 */
#ifndef RONDO_KERNELS_JOIN_CUH
#define RONDO_KERNELS_JOIN_CUH

#include "kernels/span.cuh"

namespace RONDO_KERNELS
{

/* R: what out holds; W: the wire. */
template <class R, class W, class T, class Op, unsigned COUNT, bool LEAVES> struct join_body {
    static constexpr unsigned width = pack_width<T, W>();
    void *out;
    const void *first, *second, *third; /* NULL: COUNT is 2 */
    const void *x;
    Op op;

    RONDO_MEMBER bool takes_packs() const
    {
        return RONDO_KERNELS::takes_packs<width, R>(out) && RONDO_KERNELS::takes_packs<width, W>(first) &&
               RONDO_KERNELS::takes_packs<width, W>(second) && RONDO_KERNELS::takes_packs<width, W>(third) &&
               RONDO_KERNELS::takes_packs<width, T>(x);
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        const auto enter = [&](auto value) { return op.enter(value); };
        const auto fold = [&](auto sum, auto next) { return op.apply(sum, next); };
        auto own = each(widen_pack<accumulator<T>>(load<N, T>(x, i)), enter);
        auto sum = each(widen_pack<accumulator<T>>(load<N, W>(first, i)), own, fold);

        sum = each(sum, widen_pack<accumulator<T>>(load<N, W>(second, i)), fold);
        if constexpr (COUNT == 3)
            sum = each(sum, widen_pack<accumulator<T>>(load<N, W>(third, i)), fold);
        store(out, i,
              narrow_pack<R>(each(sum, [&](auto value) { return LEAVES ? op.leave(value) : value; })));
    }
};

template <class W, class T, class Op> struct joined_spans {
    template <class R, bool LEAVES, class Run>
    static RONDO_MEMBER void choose(void *out, const void *const *in, uint32_t count, const void *x,
                                    uint64_t scalar, const Run &run)
    {
        if (count == 2)
            run(join_body<R, W, T, Op, 2, LEAVES>{out, in[0], in[1], nullptr, x, Op(scalar)});
        else
            run(join_body<R, W, T, Op, 3, LEAVES>{out, in[0], in[1], in[2], x, Op(scalar)});
    }

    static RONDO_SPAN void join(void *out, const void *const *in, uint32_t count, const void *x, uint64_t n,
                                uint64_t scalar)
    {
        choose<W, false>(out, in, count, x, scalar, [n](const auto &body) { run_span(body, n); });
    }

    static RONDO_SPAN void join_finish(void *out, const void *const *in, uint32_t count, const void *x,
                                       uint64_t n, uint64_t scalar)
    {
        choose<T, true>(out, in, count, x, scalar, [n](const auto &body) { run_span(body, n); });
    }

    static RONDO_SPAN void lane_join(void *out, const void *const *in, uint32_t count, const void *x,
                                     uint64_t n, uint64_t scalar)
    {
        choose<W, false>(out, in, count, x, scalar, [n](const auto &body) { run_lane(body, n); });
    }

    static RONDO_SPAN void lane_join_finish(void *out, const void *const *in, uint32_t count, const void *x,
                                            uint64_t n, uint64_t scalar)
    {
        choose<T, true>(out, in, count, x, scalar, [n](const auto &body) { run_lane(body, n); });
    }
};

} // namespace RONDO_KERNELS

#endif
