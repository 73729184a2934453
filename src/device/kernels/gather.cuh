/*
 * gather.cuh - loops of one lane for a fold of all ranks' inputs that have travelled; together they come to
 * the bits of combine:
 *
 *   give     out = x as it travels                    as it is; entered, and as wide as the accumulator, where
 *                                                     that computes something
 *   gather   sums = given, or sums folded with given  accumulators, which begin with the first rank's
 *   leave    out = left sums
 *
 * in and out may be the lane's own memory. The rest is as span.cuh, which includes this, has it.
 */
#ifndef RONDO_KERNELS_GATHER_CUH
#define RONDO_KERNELS_GATHER_CUH

#include "kernels/span.cuh"

namespace RONDO_KERNELS
{

/* What an input travels as when its reader folds: nothing is rounded on the way. */
template <class T, class Op, bool SCALES = Op::scales> struct given_type {
    using type = T;
};
template <class T, class Op> struct given_type<T, Op, true> {
    using type = accumulator<T>;
};

template <class T, class Op, bool IS_FIRST> struct gather_body {
    using A = accumulator<T>;
    using G = typename given_type<T, Op>::type;
    static constexpr unsigned width = pack_width<G, A>();
    void *sums;
    const void *given;
    Op op;

    RONDO_MEMBER bool takes_packs() const
    {
        return RONDO_KERNELS::takes_packs<width, A>(sums) && RONDO_KERNELS::takes_packs<width, G>(given);
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        auto sum = widen_pack<A>(load<N, G>(given, i));

        if constexpr (!IS_FIRST)
            sum = each(load<N, A>(sums, i), sum,
                       [&](auto before, auto next) { return op.apply(before, next); });
        store(sums, i, sum);
    }
};

template <class T, class Op> struct leave_body {
    using A = accumulator<T>;
    static constexpr unsigned width = pack_width<T, A>();
    void *out;
    const void *sums;
    Op op;

    RONDO_MEMBER bool takes_packs() const
    {
        return RONDO_KERNELS::takes_packs<width, T>(out) && RONDO_KERNELS::takes_packs<width, A>(sums);
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        auto sum = load<N, A>(sums, i);

        store(out, i, narrow_pack<T>(each(sum, [&](auto a) { return op.leave(a); })));
    }
};

template <class T, class Op> struct gathered_spans {
    static RONDO_SPAN void lane_give(void *out, const void *x, uint64_t n, uint64_t scalar)
    {
        if constexpr (Op::scales)
            run_own(enter_body<accumulator<T>, T, Op>{out, x, Op(scalar)}, n);
        else
            lane_copy(out, x, n * sizeof(T));
    }

    static RONDO_SPAN void lane_gather(void *sums, const void *given, uint64_t n, bool is_first)
    {
        if (is_first)
            run_own(gather_body<T, Op, true>{sums, given, Op(0)}, n);
        else
            run_own(gather_body<T, Op, false>{sums, given, Op(0)}, n);
    }

    static RONDO_SPAN void lane_leave(void *out, const void *sums, uint64_t n, uint64_t scalar)
    {
        run_own(leave_body<T, Op>{out, sums, Op(scalar)}, n);
    }

    static RONDO_MEMBER uint64_t given_bytes()
    {
        return sizeof(typename given_type<T, Op>::type);
    }
};

} // namespace RONDO_KERNELS

#endif
