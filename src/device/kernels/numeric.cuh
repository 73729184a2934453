/*
 * numeric.cuh - the narrow floating types: how they are stored, and their conversions from and to float.
 *
 * Each is a storage type of its own, so that no arithmetic happens in it by accident. Conversions are integer
 * arithmetic without branches, which gives the same bits on every machine and needs no header of a vendor.
 * The formulas are templates: over int32_t and float, or over the vectors of a port that has them.
 *
 *   to float      exact, subnormals included; a NaN becomes quiet and otherwise keeps its payload
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

/* These say to the formulas what casts would say to single values; vectors have theirs in the port. */
RONDO_INLINE uint32_t word_of(int32_t value)
{
    return (uint32_t)value;
}

RONDO_INLINE int32_t int_of(uint32_t value)
{
    return (int32_t)value;
}

RONDO_INLINE float to_float(int32_t value)
{
    return (float)value;
}

/* A choice without a branch. */
RONDO_INLINE int32_t select(bool condition, int32_t yes, int32_t no)
{
    int32_t mask = -(int32_t)condition;

    return (yes & mask) | (no & ~mask);
}

/* Of bits of floats without a sign. */
RONDO_INLINE int32_t lesser(int32_t x, int32_t limit)
{
    return select(x < limit, x, limit);
}

RONDO_INLINE int32_t greater(int32_t x, int32_t limit)
{
    return select(x > limit, x, limit);
}

/*
 * A format of sign, exponent and MANTISSA bits, narrower than float in every way.
 *
 *   CAP        what larger floats are taken for: the largest finite value, or what rounds to the infinity
 *   INFINITE   whether the highest exponent means infinities and NaNs; if not, all bits set is the NaN
 *   KEEP       whether a NaN keeps its payload when it is narrowed; if not, its bits are all set
 *
 * Integers are signed throughout: all magnitudes are below 2^31, and signed compares are what every vector
 * unit has. A NaN's bits cover those of the number that it would be, so that or-ing them does for a choice.
 */
template <int EXPONENT, int MANTISSA, int32_t CAP, bool INFINITE, bool KEEP> struct narrow_format {
    static constexpr int exponent_bits = EXPONENT, mantissa_bits = MANTISSA;
    static constexpr bool has_infinity = INFINITE;
    static constexpr int bias = (1 << (EXPONENT - 1)) - 1;
    static constexpr int sign_shift = 31 - (EXPONENT + MANTISSA);
    static constexpr int shift = 23 - MANTISSA;
    static constexpr int32_t least_normal = 1 << MANTISSA;
    static constexpr int32_t magnitudes = (1 << (EXPONENT + MANTISSA)) - 1;
    static constexpr int32_t infinity = INFINITE ? magnitudes - (least_normal - 1) : magnitudes;

    /* 2^e, for exponents of normal floats. */
    static constexpr RONDO_MEMBER int32_t power_bits(int e)
    {
        return (e + 127) << 23;
    }

    template <class I> static RONDO_MEMBER auto widen(I stored)
    {
        I magnitude = stored & magnitudes;
        I sign = int_of(word_of(stored ^ magnitude) << sign_shift);
        I normal = (magnitude << shift) + ((127 - bias) << 23);
        I subnormal = bits_of(to_float(magnitude) * float_of(power_bits(1 - bias - MANTISSA)));
        I number = sign | select(magnitude < least_normal, subnormal, normal);

        if (INFINITE)
            number |= select(magnitude >= infinity, I{} + 0x7f800000, I{});
        return float_of(
            number | select(INFINITE ? magnitude > infinity : magnitude == infinity, I{} + 0x7fc00000, I{}));
    }

    /* Adding a power of two whose ulp is the last place of the result rounds the value there, and the sum's
     * last bits then are the result's digits, the leading one included; below the least normal that place no
     * longer moves. The rounder has the exponent's bias in its last bits already, so only the exponent is
     * missing; what is above the result's bits means nothing. */
    template <class F> static RONDO_MEMBER auto narrow(F value)
    {
        constexpr int32_t least = power_bits(1 - bias);
        constexpr int32_t unbias = -(least >> shift) & magnitudes;
        auto bits = bits_of(value);
        using I = decltype(bits);
        I magnitude = bits & 0x7fffffff;
        I capped = lesser(magnitude, I{} + CAP);
        I exponent = capped & 0x7f800000;
        I place = greater(exponent, I{} + least);
        I rounder = place + ((shift << 23) + unbias);
        I number = bits_of(float_of(capped) + float_of(rounder)) + (place >> shift);
        I quiet = KEEP ? (0x7e00 | (magnitude >> shift & (least_normal - 1))) : I{} + magnitudes;

        number |= select(value != value, quiet, I{});
        return (number & magnitudes) | (int_of(word_of(bits) >> sign_shift) & ~magnitudes);
    }
};

/*                                       CAP INFINITE KEEP */
using format_f16 = narrow_format<5, 10, 0x47800000, true, true>; /* 65536: rounds to the infinity */

/* half: the code as a number of f16 that is the value divided by half_scale, from a vector of 16-bit words in
 * which the codes have been extended with their signs. */
struct format_f8e4m3 : narrow_format<4, 3, 0x43e00000, false, false> { /* 448 */
    static constexpr float half_scale = 256;

    template <class H> static RONDO_MEMBER H half(H stored)
    {
        H spread = (stored << 7) & 0xbf80; /* one more bit of exponent, which comes from the sign */
        H nan = (H)((spread & 0x3f80) == 0x3f80) & 0x7e00;

        return spread | nan;
    }
};

struct format_f8e5m2 : narrow_format<5, 2, 0x47600000, true, false> { /* 57344 */
    static constexpr float half_scale = 1;

    template <class H> static RONDO_MEMBER H half(H stored)
    {
        return stored << 8;
    }
};

struct format_bf16 {
    static constexpr int exponent_bits = 8, mantissa_bits = 7;
    static constexpr bool has_infinity = true;

    template <class I> static RONDO_MEMBER auto widen(I stored)
    {
        return float_of(int_of(word_of(stored) << 16));
    }

    template <class F> static RONDO_MEMBER auto narrow(F value)
    {
        auto bits = bits_of(value);
        auto words = word_of(bits);
        using I = decltype(bits);
        I rounded = int_of((words + 0x7fff + (words >> 16 & 1)) >> 16);
        I quiet = int_of(words >> 16 | 0x40);

        return select(value != value, quiet, rounded);
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

/* Bytes of the widest accumulator, per byte of what it is the sum of. */
constexpr unsigned WIDEST_SUM = 4;

/* What a step computes in, from the one table. */
template <class T> struct accumulator_of;
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, accumulator, exponent, mantissa, infinity)            \
    template <> struct accumulator_of<storage> {                                                            \
        using type = accumulator;                                                                           \
        static_assert(sizeof(storage) == bytes, "dtypes.def: bytes of " #storage);                          \
        static_assert(sizeof(accumulator) <= WIDEST_SUM * bytes, "dtypes.def: accumulator of " #storage);   \
        static_assert(is_format<storage>(exponent, mantissa, infinity), "dtypes.def: format of " #storage); \
    };
#include "device/dtypes.def"
#undef RONDO_DTYPE

template <class T> using accumulator = typename accumulator_of<T>::type;

} // namespace RONDO_KERNELS

#endif
