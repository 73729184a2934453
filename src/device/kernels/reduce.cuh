/*
 * reduce.cuh - the operations of redops.def, over accumulator types.
 *
 *   enter(x)      a rank's own input as it enters the fold: PREMULSUM scales it here, once
 *   apply(a, x)   one step of the fold; a holds the ranks before, x has entered
 *   leave(a)      the result as it leaves the fold: SUMDIV divides here
 *
 * Integers wrap: they are computed as unsigned. Division truncates toward zero. A NaN is ignored by min and
 * max when the other input is a number. Each is made from the bits of rondo_work's scalar. V is A, or a
 * vector of it (port.h).
 */
#ifndef RONDO_KERNELS_REDUCE_CUH
#define RONDO_KERNELS_REDUCE_CUH

#include "kernels/numeric.cuh"

namespace RONDO_KERNELS
{

/* Where arithmetic of A happens: without overflow of signed integers, and without int promotion of what may
 * exceed it. */
template <class A> struct modular {
    using type = A;
};
template <> struct modular<int8_t> {
    using type = uint32_t;
};
template <> struct modular<uint8_t> {
    using type = uint32_t;
};
template <> struct modular<int32_t> {
    using type = uint32_t;
};
template <> struct modular<int64_t> {
    using type = uint64_t;
};

/* What a divisor of A is: a count of ranks, which int8_t could not hold. */
template <class A> struct divisor_of {
    using type = A;
};
template <> struct divisor_of<int8_t> {
    using type = int32_t;
};
template <> struct divisor_of<uint8_t> {
    using type = int32_t;
};

template <class A> RONDO_INLINE A add(A a, A x)
{
    using M = typename modular<A>::type;
    return (A)((M)a + (M)x);
}

template <class V, class A> RONDO_INLINE V multiply(V a, A x)
{
    return (V)((typename modular<V>::type)a * (typename modular<A>::type)x);
}

/* Operations that let inputs in and results out as they are. */
template <class A> struct plain {
    static constexpr bool scales = false;

    template <class V> RONDO_MEMBER V enter(V x) const
    {
        return x;
    }

    template <class V> RONDO_MEMBER V leave(V a) const
    {
        return a;
    }
};

template <class A> struct Sum : plain<A> {
    RONDO_MEMBER explicit Sum(uint64_t)
    {
    }

    template <class V> RONDO_MEMBER V apply(V a, V x) const
    {
        return add(a, x);
    }
};

template <class A> struct Prod : plain<A> {
    RONDO_MEMBER explicit Prod(uint64_t)
    {
    }

    template <class V> RONDO_MEMBER V apply(V a, V x) const
    {
        return multiply(a, x);
    }
};

/* a != a only for a NaN, which gives way to x; a NaN in x compares false and stays out. */
template <class A> struct Max : plain<A> {
    RONDO_MEMBER explicit Max(uint64_t)
    {
    }

    template <class V> RONDO_MEMBER V apply(V a, V x) const
    {
        return ((a < x) | (a != a)) ? x : a;
    }
};

template <class A> struct Min : plain<A> {
    RONDO_MEMBER explicit Min(uint64_t)
    {
    }

    template <class V> RONDO_MEMBER V apply(V a, V x) const
    {
        return ((x < a) | (a != a)) ? x : a;
    }
};

template <class A> struct PreMulSum {
    static constexpr bool scales = true;
    A factor;

    RONDO_MEMBER explicit PreMulSum(uint64_t scalar)
    {
        __builtin_memcpy(&factor, &scalar,
                         sizeof(factor)); /* the low bytes: every machine we build for is little-endian */
    }

    template <class V> RONDO_MEMBER V enter(V x) const
    {
        return multiply(x, factor);
    }

    template <class V> RONDO_MEMBER V apply(V a, V x) const
    {
        return add(a, x);
    }

    template <class V> RONDO_MEMBER V leave(V a) const
    {
        return a;
    }
};

template <class A> struct SumDiv {
    using D = typename divisor_of<A>::type;
    static constexpr bool scales = false;
    D divisor;

    RONDO_MEMBER explicit SumDiv(uint64_t scalar) : divisor(scalar ? (D)scalar : (D)1)
    {
    }

    template <class V> RONDO_MEMBER V enter(V x) const
    {
        return x;
    }

    template <class V> RONDO_MEMBER V apply(V a, V x) const
    {
        return add(a, x);
    }

    template <class V> RONDO_MEMBER V leave(V a) const
    {
        if constexpr (sizeof(V) == sizeof(A))
            return (V)((D)a / divisor);
        else
            return a / divisor;
    }
};

} // namespace RONDO_KERNELS

#endif
