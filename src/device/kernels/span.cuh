/*
 * span.cuh - loops over n elements, which all lanes of a block run together.
 *
 *   enter    out = entered x                          a rank's own input, onto the wire
 *   fold     out = in folded with entered x           what arrived and the own input, onto the wire
 *   finish   out = left (in folded with entered x)    the same where the fold ends; second gets a copy,
 *                                                     unless it is NULL
 *   alone    out = left (entered x)                   one rank alone
 *   combine  out = left (x0 folded with x1, x2, ..)   all ranks at once, in order, each entered with its own
 *                                                     scalar, never rounded before it has left; second as in finish
 *
 *   join, join_finish
 *            fold and finish of several that arrived (join.cuh)
 *
 * lane_enter, lane_fold and so on are the same for one lane by itself, whose in and out may be its own
 * memory: for protocols that deal a slot to lanes in pieces. So are lane_give, lane_gather and lane_leave
 * (gather.cuh).
 *
 * x has the user's type T, the wire W is T or its accumulator. No pointer needs any alignment. Nothing
 * outside [0, n) is read or written. out may be x itself, or one of combine's, and otherwise no output
 * overlaps an input.
 *
 * One loop body serves single elements and packs: a pack is what one lane moves at once, WIDTH neighbours. On
 * a CPU the narrow types' packs are vectors; for the others WIDTH is 1, because the compiler's vectoriser
 * needs no help with them.
 */
#ifndef RONDO_KERNELS_SPAN_CUH
#define RONDO_KERNELS_SPAN_CUH

#include "kernels/numeric.cuh"

namespace RONDO_KERNELS
{

template <class T, unsigned N> struct pack {
    T at[N];
};

template <class T, class U> constexpr bool is_same = false;
template <class T> constexpr bool is_same<T, T> = true;

/* VECTOR_LANES neighbours, on a port that has vectors. */
template <class T> struct vector_pack {
    vector_of<T> lanes;

    template <class I> static RONDO_MEMBER vector_pack truncated(I words)
    {
        vector_pack codes;

        truncate(words, codes.lanes);
        return codes;
    }
};

/* Neighbours in a pack, for a loop over user type T and a wire of W, the wider of the two. */
template <class T, class W> constexpr unsigned pack_width()
{
    static_assert(sizeof(W) >= sizeof(T), "a wire is never narrower than the user's type");
    if (PACK_BYTES != 0)
        return PACK_BYTES / sizeof(W);
    return format_of<T>::is_narrow ? VECTOR_LANES : 1;
}

template <unsigned N, class T> RONDO_INLINE auto load(const void *from, uint64_t index)
{
    const unsigned char *at = (const unsigned char *)from + index * sizeof(T);

    if constexpr (N == VECTOR_LANES)
        return load_bytes<vector_pack<T>>(at);
    else if constexpr (N > 1)
        return load_pack<pack<T, N>>(at);
    else
        return load_bytes<pack<T, N>>(at);
}

template <unsigned N, class T> RONDO_INLINE void store(void *to, uint64_t index, const pack<T, N> &value)
{
    unsigned char *at = (unsigned char *)to + index * sizeof(T);

    if constexpr (N > 1)
        store_pack(at, value);
    else
        store_bytes(at, value);
}

template <class T> RONDO_INLINE void store(void *to, uint64_t index, const vector_pack<T> &value)
{
    store_bytes((unsigned char *)to + index * sizeof(T), value);
}

/* A pack of a narrow type is taken apart in 32-bit words, which is what registers hold. */
template <class A, class T, unsigned N> RONDO_INLINE pack<A, N> widen_pack(const pack<T, N> &from)
{
    pack<A, N> to;

    if constexpr (sizeof(A) == sizeof(T)) {
        __builtin_memcpy(&to, &from, sizeof(to));
    } else if constexpr (sizeof(from) % 4 == 0) {
        constexpr unsigned in_word = 4 / sizeof(T), bits = 8 * sizeof(T);
        for (unsigned k = 0; k < N; k += in_word) {
            uint32_t word;
            __builtin_memcpy(&word, &from.at[k], sizeof(word));
            for (unsigned m = 0; m < in_word; m++)
                to.at[k + m] = format_of<T>::widen((int32_t)(word >> m * bits & ((1u << bits) - 1)));
        }
    } else {
        for (unsigned k = 0; k < N; k++)
            to.at[k] = format_of<T>::widen((int32_t)from.at[k].bits);
    }
    return to;
}

template <class A, class T> RONDO_INLINE vector_pack<A> widen_pack(const vector_pack<T> &from)
{
    if constexpr (sizeof(A) == sizeof(T))
        return from;
    else if constexpr (CONVERTS_HALVES && sizeof(T) == 1)
        return {widened_halves(format_of<T>::half(halves_of(from.lanes))) * format_of<T>::half_scale};
    else if constexpr (CONVERTS_HALVES && is_same<T, f16>)
        return {widened_halves(from.lanes)};
    else
        return {format_of<T>::widen(extended(from.lanes))};
}

template <class T, class A, unsigned N> RONDO_INLINE pack<T, N> narrow_pack(const pack<A, N> &from)
{
    pack<T, N> to;

    if constexpr (sizeof(A) == sizeof(T)) {
        __builtin_memcpy(&to, &from, sizeof(to));
    } else if constexpr (sizeof(to) % 4 == 0) {
        constexpr unsigned in_word = 4 / sizeof(T), bits = 8 * sizeof(T);
        for (unsigned k = 0; k < N; k += in_word) {
            uint32_t word = 0;
            for (unsigned m = 0; m < in_word; m++)
                word |= (uint32_t)format_of<T>::narrow(from.at[k + m]) << m * bits;
            __builtin_memcpy(&to.at[k], &word, sizeof(word));
        }
    } else {
        for (unsigned k = 0; k < N; k++)
            to.at[k].bits = (decltype(to.at[k].bits))format_of<T>::narrow(from.at[k]);
    }
    return to;
}

template <class T, class A> RONDO_INLINE vector_pack<T> narrow_pack(const vector_pack<A> &from)
{
    if constexpr (sizeof(A) == sizeof(T))
        return from;
    else if constexpr (CONVERTS_HALVES && is_same<T, f16>)
        return {narrowed_halves(from.lanes)};
    else
        return vector_pack<T>::truncated(format_of<T>::narrow(from.lanes));
}

/* f of every element of a pack, or of every two of a pair. */
template <class A, unsigned N, class F> RONDO_INLINE pack<A, N> each(pack<A, N> a, const F &f)
{
    for (unsigned k = 0; k < N; k++)
        a.at[k] = f(a.at[k]);
    return a;
}

template <class A, unsigned N, class F>
RONDO_INLINE pack<A, N> each(pack<A, N> a, const pack<A, N> &x, const F &f)
{
    for (unsigned k = 0; k < N; k++)
        a.at[k] = f(a.at[k], x.at[k]);
    return a;
}

template <class A, class F> RONDO_INLINE vector_pack<A> each(const vector_pack<A> &a, const F &f)
{
    return {f(a.lanes)};
}

template <class A, class F>
RONDO_INLINE vector_pack<A> each(const vector_pack<A> &a, const vector_pack<A> &x, const F &f)
{
    return {f(a.lanes, x.lanes)};
}

/* Whether packs of N elements of T may start at every Nth element from here: ports that load packs whole need
 * it. */
template <unsigned N, class T> RONDO_INLINE bool takes_packs(const void *p)
{
    return PACK_BYTES == 0 || (uintptr_t)p % (N * sizeof(T)) == 0;
}

/* Every element once: packs first, then the rest singly. */
template <class Body> RONDO_INLINE void run_span(const Body body, uint64_t n)
{
    constexpr unsigned width = Body::width;
    uint64_t packs = 0;

    if constexpr (width > 1) {
        packs = body.takes_packs() ? n / width : 0;
        RONDO_INDEPENDENT
        for (uint64_t i = lane_index(); i < packs; i += lane_count())
            body.template step<width>(i * width);
    }
    RONDO_INDEPENDENT
    for (uint64_t i = packs * width + lane_index(); i < n; i += lane_count()) {
        if constexpr (width == VECTOR_LANES)
            stay_scalar(); /* what is left is less than a vector */
        body.template step<1>(i);
    }
}

/* The same by one lane, singly: it has few. */
template <class Body> RONDO_INLINE void run_lane(const Body body, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        body.template step<1>(i);
}

/* By one lane too, which may be all there is and then has many. */
template <class Body> RONDO_INLINE void run_own(const Body body, uint64_t n)
{
    if constexpr (WARP_LANES == 1)
        run_span(body, n);
    else
        run_lane(body, n);
}

/* Copy by one lane, in words of 8 bytes where both sides are aligned to them. */
RONDO_INLINE void lane_copy(void *to, const void *from, uint64_t bytes)
{
    if constexpr (WARP_LANES == 1) {
        copy_bytes(to, nullptr, from, bytes);
    } else {
        uint64_t words = (((uintptr_t)to | (uintptr_t)from) & 7) == 0 ? bytes / 8 : 0;

        for (uint64_t i = 0; i < words; i++)
            store_plain((uint64_t *)to + i, load_plain((const uint64_t *)from + i));
        for (uint64_t i = words * 8; i < bytes; i++)
            store_plain((unsigned char *)to + i, load_plain((const unsigned char *)from + i));
    }
}

template <class W, class T, class Op> struct enter_body {
    static constexpr unsigned width = pack_width<T, W>();
    void *out;
    const void *x;
    Op op;

    RONDO_MEMBER bool takes_packs() const
    {
        return RONDO_KERNELS::takes_packs<width, W>(out) && RONDO_KERNELS::takes_packs<width, T>(x);
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        auto own = widen_pack<accumulator<T>>(load<N, T>(x, i));

        store(out, i, narrow_pack<W>(each(own, [&](auto x0) { return op.enter(x0); })));
    }
};

template <class W, class I, class T, class Op, bool LEAVES> struct fold_body {
    static constexpr unsigned width = pack_width<T, I>();
    void *out, *second;
    const void *in, *x;
    Op op;

    RONDO_MEMBER bool takes_packs() const
    {
        return RONDO_KERNELS::takes_packs<width, W>(out) && RONDO_KERNELS::takes_packs<width, W>(second) &&
               RONDO_KERNELS::takes_packs<width, I>(in) && RONDO_KERNELS::takes_packs<width, T>(x);
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        auto in_sum = widen_pack<accumulator<T>>(load<N, I>(in, i));
        auto own = widen_pack<accumulator<T>>(load<N, T>(x, i));
        auto result = narrow_pack<W>(each(in_sum, own, [&](auto sum, auto next) {
            sum = op.apply(sum, op.enter(next));
            return LEAVES ? op.leave(sum) : sum;
        }));

        store(out, i, result);
        if (second)
            store(second, i, result);
    }
};

template <class T, class Op> struct alone_body {
    static constexpr unsigned width = pack_width<T, T>();
    void *out;
    const void *x;
    Op op;

    RONDO_MEMBER bool takes_packs() const
    {
        return RONDO_KERNELS::takes_packs<width, T>(out) && RONDO_KERNELS::takes_packs<width, T>(x);
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        auto own = widen_pack<accumulator<T>>(load<N, T>(x, i));

        store(out, i, narrow_pack<T>(each(own, [&](auto x0) { return op.leave(op.enter(x0)); })));
    }
};

/* Two inputs folded: out is T where the fold ends, or else the accumulators. */
template <class W, class T, class Op, bool LEAVES> struct pair_body {
    static constexpr unsigned width = pack_width<T, W>();
    void *out, *second;
    const void *x, *y;
    Op op, next_op;

    RONDO_MEMBER bool takes_packs() const
    {
        return RONDO_KERNELS::takes_packs<width, W>(out) && RONDO_KERNELS::takes_packs<width, W>(second) &&
               RONDO_KERNELS::takes_packs<width, T>(x) && RONDO_KERNELS::takes_packs<width, T>(y);
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        auto a = widen_pack<accumulator<T>>(load<N, T>(x, i));
        auto b = widen_pack<accumulator<T>>(load<N, T>(y, i));
        auto result = narrow_pack<W>(each(a, b, [&](auto sum, auto next) {
            sum = op.apply(op.enter(sum), next_op.enter(next));
            return LEAVES ? op.leave(sum) : sum;
        }));

        store(out, i, result);
        if (second)
            store(second, i, result);
    }
};

/* Any number of inputs, folded in registers. */
template <class T, class Op> struct many_body {
    static constexpr unsigned width = pack_width<T, T>();
    void *out, *second;
    const struct rondo_source *sources;
    uint32_t count;

    RONDO_MEMBER bool takes_packs() const
    {
        bool takes =
            RONDO_KERNELS::takes_packs<width, T>(out) && RONDO_KERNELS::takes_packs<width, T>(second);

        for (uint32_t s = 0; s < count; s++)
            takes = takes && RONDO_KERNELS::takes_packs<width, T>(load_plain(&sources[s].at));
        return takes;
    }

    template <unsigned N> RONDO_MEMBER auto entered(uint32_t s, uint64_t i) const
    {
        const Op op(load_plain(&sources[s].scalar));
        auto own = widen_pack<accumulator<T>>(load<N, T>(load_plain(&sources[s].at), i));

        return each(own, [&](auto x) { return op.enter(x); });
    }

    template <unsigned N> RONDO_MEMBER void step(uint64_t i) const
    {
        const Op op(load_plain(&sources[0].scalar));
        auto sum = entered<N>(0, i);

        for (uint32_t s = 1; s < count; s++)
            sum = each(sum, entered<N>(s, i), [&](auto a, auto next) { return op.apply(a, next); });
        auto result = narrow_pack<T>(each(sum, [&](auto a) { return op.leave(a); }));
        store(out, i, result);
        if (second)
            store(second, i, result);
    }
};

/* The loops of one type and operation over all ranks' inputs. Lanes fold in registers. A CPU's vectoriser wants
 * loops over few arrays, so there the accumulators wait in the nearest cache. */
template <class T, class Op> struct combined_spans {
    using A = accumulator<T>;
    static constexpr unsigned BLOCK_BYTES = 8192;
    static constexpr uint64_t BLOCK = BLOCK_BYTES / sizeof(A); /* elements */

    static RONDO_MEMBER const void *at(const struct rondo_source &source, uint64_t element)
    {
        return (const unsigned char *)load_plain(&source.at) + element * sizeof(T);
    }

    static RONDO_MEMBER Op op_of(const struct rondo_source &source)
    {
        return Op(load_plain(&source.scalar));
    }

    static RONDO_MEMBER void *at(void *x, uint64_t element)
    {
        return x ? (unsigned char *)x + element * sizeof(T) : nullptr;
    }

    static RONDO_SPAN void finish(void *out, void *second, const A *sums, const void *x, uint64_t n, Op op)
    {
        if (second) /* two loops, so that neither asks for every element */
            run_span(fold_body<T, A, T, Op, true>{out, second, sums, x, op}, n);
        else
            run_span(fold_body<T, A, T, Op, true>{out, nullptr, sums, x, op}, n);
    }

    static RONDO_SPAN void two(void *out, void *second, const struct rondo_source *sources, uint64_t n)
    {
        const void *x = at(sources[0], 0), *y = at(sources[1], 0);
        const Op first_op = op_of(sources[0]), next_op = op_of(sources[1]);

        if (second)
            run_span(pair_body<T, T, Op, true>{out, second, x, y, first_op, next_op}, n);
        else
            run_span(pair_body<T, T, Op, true>{out, nullptr, x, y, first_op, next_op}, n);
    }

    static RONDO_SPAN void blocks(void *out, void *second, const struct rondo_source *sources, uint32_t count,
                                  uint64_t n)
    {
        alignas(64) A sums[BLOCK];

        for (uint64_t first = 0; first < n; first += BLOCK) {
            uint64_t part = n - first < BLOCK ? n - first : BLOCK;

            run_span(pair_body<A, T, Op, false>{sums, nullptr, at(sources[0], first), at(sources[1], first),
                                                op_of(sources[0]), op_of(sources[1])},
                     part);
            for (uint32_t s = 2; s + 1 < count; s++)
                run_span(fold_body<A, A, T, Op, false>{sums, nullptr, sums, at(sources[s], first),
                                                       op_of(sources[s])},
                         part);
            finish(at(out, first), at(second, first), sums, at(sources[count - 1], first), part,
                   op_of(sources[count - 1]));
        }
    }

    /* count >= 2. What leaves the fold is the same with every rank's scalar. */
    static RONDO_MEMBER void combine(void *out, void *second, const struct rondo_source *sources,
                                     uint32_t count, uint64_t n)
    {
        if constexpr (PACK_BYTES != 0)
            run_span(many_body<T, Op>{out, second, sources, count}, n);
        else if (count > 2)
            blocks(out, second, sources, count, n);
        else
            two(out, second, sources, n);
    }
};

template <class W, class T, class Op> struct joined_spans;
template <class T, class Op> struct gathered_spans;

/* The loops of one type, wire and operation. scalar is rondo_work's, as bits of an accumulator. */
template <class W, class T, class Op> struct typed_spans : joined_spans<W, T, Op>, gathered_spans<T, Op> {
    static RONDO_SPAN void enter(void *out, const void *x, uint64_t n, uint64_t scalar)
    {
        if constexpr (!Op::scales &&
                      sizeof(W) == sizeof(T)) /* nothing to compute, and a copy keeps every bit */
            copy_bytes(out, nullptr, x, n * sizeof(T));
        else
            run_span(enter_body<W, T, Op>{out, x, Op(scalar)}, n);
    }

    static RONDO_SPAN void fold(void *out, const void *in, const void *x, uint64_t n, uint64_t scalar)
    {
        run_span(fold_body<W, W, T, Op, false>{out, nullptr, in, x, Op(scalar)}, n);
    }

    static RONDO_SPAN void finish(void *out, void *second, const void *in, const void *x, uint64_t n,
                                  uint64_t scalar)
    {
        if (second) /* two loops, so that neither asks for every element */
            run_span(fold_body<T, W, T, Op, true>{out, second, in, x, Op(scalar)}, n);
        else
            run_span(fold_body<T, W, T, Op, true>{out, nullptr, in, x, Op(scalar)}, n);
    }

    static RONDO_SPAN void alone(void *out, const void *x, uint64_t n, uint64_t scalar)
    {
        run_span(alone_body<T, Op>{out, x, Op(scalar)}, n);
    }

    static RONDO_SPAN void lane_enter(void *out, const void *x, uint64_t n, uint64_t scalar)
    {
        if constexpr (!Op::scales && sizeof(W) == sizeof(T))
            lane_copy(out, x, n * sizeof(T));
        else
            run_lane(enter_body<W, T, Op>{out, x, Op(scalar)}, n);
    }

    static RONDO_SPAN void lane_fold(void *out, const void *in, const void *x, uint64_t n, uint64_t scalar)
    {
        run_lane(fold_body<W, W, T, Op, false>{out, nullptr, in, x, Op(scalar)}, n);
    }

    static RONDO_SPAN void lane_finish(void *out, void *second, const void *in, const void *x, uint64_t n,
                                       uint64_t scalar)
    {
        run_lane(fold_body<T, W, T, Op, true>{out, second, in, x, Op(scalar)}, n);
    }

    static RONDO_SPAN void combine(void *out, void *second, const struct rondo_source *sources,
                                   uint32_t count, uint64_t n)
    {
        combined_spans<T, Op>::combine(out, second, sources, count, n);
    }

    /* One element of T, anywhere in memory, as a scalar. */
    static RONDO_SPAN uint64_t scalar_from(const void *element)
    {
        accumulator<T> wide = widen_pack<accumulator<T>>(load<1, T>(element, 0)).at[0];
        uint64_t bits = 0;

        __builtin_memcpy(&bits, &wide, sizeof(wide));
        return bits;
    }

    static RONDO_MEMBER uint64_t element_bytes()
    {
        return sizeof(T);
    }

    static RONDO_MEMBER uint64_t wire_bytes()
    {
        return sizeof(W);
    }
};

} // namespace RONDO_KERNELS

#include "kernels/gather.cuh"
#include "kernels/join.cuh"

#endif
