/*
 * numeric.cuh - the narrow floating types: how they are stored, and their conversions from and to float.
 *
 * Each is a storage type of its own, so that no arithmetic happens in it by accident. Conversions are integer
 * arithmetic without branches, which vectorises, gives the same bits on every machine, and needs no header of
 * a vendor.
 *
 *   to float      exact, subnormals included; a quiet NaN of f16 and bf16 keeps its payload
 *   from float    to nearest, ties to even, subnormals included
 *     f16, bf16   overflow gives an infinity; a NaN stays one (quiet, upper payload kept)
 *     f8e4m3      no infinity exists: overflow and infinities saturate to +-448; every NaN becomes 0x7f with
 *                 its sign
 *     f8e5m2      saturates as well, to +-57344, although the format has infinities; every NaN becomes 0x7f
 *                 with its sign
 *
 * So the sum of an f8e5m2 infinity and a number is 57344: that is what the converting instructions of GPUs do
 * in their saturating mode, and both fp8 types then obey one rule. Moving data never converts and keeps every
 * bit.
 */
#ifndef RONDO_KERNELS_NUMERIC_CUH
#define RONDO_KERNELS_NUMERIC_CUH

#include "kernels/port.h"

namespace RONDO_KERNELS
{

struct f16 {
    uint16_t bits;
};

struct bf16 {
    uint16_t bits;
};

struct f8e4m3 {
    uint8_t bits;
};

struct f8e5m2 {
    uint8_t bits;
};

RONDO_INLINE int32_t bits_of(float value)
{
    int32_t bits;

    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}

RONDO_INLINE float float_of(int32_t bits)
{
    float value;

    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

/* A choice without a branch, spelled so that no compiler makes one of it: the vectoriser gives up at
 * branches. */
RONDO_INLINE int32_t select(bool condition, int32_t yes, int32_t no)
{
    int32_t mask = -(int32_t)condition;

    return (yes & mask) | (no & ~mask);
}

/*
 * A format of sign, exponent and MANTISSA bits, narrower than float in every way.
 *
 *   CAP        what larger floats are taken for: the largest finite value, or what rounds to the infinity
 *   FIRST_NAN  the least magnitude that is a NaN
 *   INFINITE   whether the magnitude below it is an infinity
 *   KEEP       whether a NaN keeps its payload
 *
 * Integers are signed throughout: all magnitudes are below 2^31, and signed compares are what every vector
 * unit has.
 */
template <int EXPONENT, int MANTISSA, int32_t CAP, int32_t FIRST_NAN, bool INFINITE, bool KEEP>
struct narrow_format {
    static constexpr int exponent_bits = EXPONENT, mantissa_bits = MANTISSA;
    static constexpr bool has_infinity = INFINITE;
    static constexpr int bias = (1 << (EXPONENT - 1)) - 1;
    static constexpr int sign_shift = 31 - (EXPONENT + MANTISSA);
    static constexpr int shift = 23 - MANTISSA;
    static constexpr int32_t least_normal = 1 << MANTISSA;

    /* 2^e, for exponents of normal floats. */
    static constexpr RONDO_MEMBER int32_t power_bits(int e)
    {
        return (e + 127) << 23;
    }

    static RONDO_MEMBER float widen(int32_t stored)
    {
        int32_t magnitude = stored & ((1 << (EXPONENT + MANTISSA)) - 1);
        int32_t sign = (int32_t)((uint32_t)(stored ^ magnitude) << sign_shift);
        int32_t normal = (magnitude << shift) + ((127 - bias) << 23);
        int32_t subnormal = bits_of((float)magnitude * float_of(power_bits(1 - bias - MANTISSA)));
        int32_t number = select(magnitude < least_normal, subnormal, normal);
        int32_t quiet = 0x7fc00000 | (KEEP ? magnitude << shift : 0);

        if (INFINITE)
            number = select(magnitude == FIRST_NAN - 1, 0x7f800000, number);
        return float_of(sign | select(magnitude >= FIRST_NAN, quiet, number));
    }

    /* Adding a power of two whose ulp is the last place of the result rounds the value there, and the sum's
     * last bits then are the result's digits, the leading one included. Below the least normal that place no
     * longer moves. */
    static RONDO_MEMBER int32_t narrow(float value)
    {
        const int32_t least = power_bits(1 - bias);
        int32_t bits = bits_of(value);
        int32_t magnitude = bits & 0x7fffffff;
        int32_t sign = (int32_t)((uint32_t)(bits ^ magnitude) >> sign_shift);
        int32_t capped = magnitude < CAP ? magnitude : CAP;
        int32_t exponent = capped & 0x7f800000;
        int32_t place = exponent > least ? exponent : least;
        int32_t rounder = place + (shift << 23);
        int32_t digits = bits_of(float_of(capped) + float_of(rounder)) - rounder;
        int32_t number = ((place - least) >> shift) + digits;
        int32_t quiet = KEEP ? (0x7e00 | (magnitude >> shift & (least_normal - 1))) : 0x7f;

        return sign | select(magnitude > 0x7f800000, quiet, number);
    }
};

/*                                             CAP FIRST_NAN INFINITE KEEP */
using format_f16 = narrow_format<5, 10, 0x47800000, 0x7c01, true, true>;   /* 65536: rounds to the infinity */
using format_f8e4m3 = narrow_format<4, 3, 0x43e00000, 0x7f, false, false>; /* 448 */
using format_f8e5m2 = narrow_format<5, 2, 0x47600000, 0x7d, true, false>;  /* 57344 */

struct format_bf16 {
    static constexpr int exponent_bits = 8, mantissa_bits = 7;
    static constexpr bool has_infinity = true;

    static RONDO_MEMBER float widen(int32_t stored)
    {
        return float_of((int32_t)((uint32_t)stored << 16));
    }

    static RONDO_MEMBER int32_t narrow(float value)
    {
        uint32_t bits = (uint32_t)bits_of(value);
        int32_t rounded = (int32_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        int32_t quiet = (int32_t)(bits >> 16 | 0x40);

        return select((int32_t)(bits & 0x7fffffff) > 0x7f800000, quiet, rounded);
    }
};

/* A storage type's format; none for a type that is its own accumulator. */
template <class T> struct format_of {
    static constexpr bool is_narrow = false;
};
template <> struct format_of<f16> : format_f16 {
    static constexpr bool is_narrow = true;
};
template <> struct format_of<bf16> : format_bf16 {
    static constexpr bool is_narrow = true;
};
template <> struct format_of<f8e4m3> : format_f8e4m3 {
    static constexpr bool is_narrow = true;
};
template <> struct format_of<f8e5m2> : format_f8e5m2 {
    static constexpr bool is_narrow = true;
};

/* Whether a narrow type's format is what the table says of it; others have nothing to compare. */
template <class T> constexpr bool is_format(int exponent_bits, int mantissa_bits, bool has_infinity)
{
    using format = format_of<T>;

    if constexpr (format::is_narrow)
        return format::exponent_bits == exponent_bits && format::mantissa_bits == mantissa_bits &&
               format::has_infinity == has_infinity;
    else
        return true;
}

/* What a step computes in, from the one table. */
template <class T> struct accumulator_of;
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, accumulator, exponent, mantissa, infinity)            \
    template <> struct accumulator_of<storage> {                                                            \
        using type = accumulator;                                                                           \
        static_assert(sizeof(storage) == bytes, "dtypes.def: bytes of " #storage);                          \
        static_assert(is_format<storage>(exponent, mantissa, infinity), "dtypes.def: format of " #storage); \
    };
#include "device/dtypes.def"
#undef RONDO_DTYPE

template <class T> using accumulator = typename accumulator_of<T>::type;

} // namespace RONDO_KERNELS

#endif
