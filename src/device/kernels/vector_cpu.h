/*
 * vector_cpu.h - vectors of the CPU device's narrow types: as many neighbours as one register holds floats.
 *
 * numeric.cuh's formulas are templates; here are the few operations that they are made of, on vectors. The
 * compilers' own vector types do the rest: arithmetic, comparisons (whose results are masks of all ones or
 * none) and choices by a mask. So the instruction set follows from the unit's flags alone. See port.h for the
 * contract.
 */
#ifndef RONDO_KERNELS_VECTOR_CPU_H
#define RONDO_KERNELS_VECTOR_CPU_H

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace RONDO_KERNELS
{

#if defined(__AVX512F__)
constexpr unsigned VECTOR_LANES = 16;
constexpr __mmask16 ALL_LANES = 0xffff; /* gcc 12 warns about what its own unmasked forms leave undefined */
#elif defined(__AVX2__)
constexpr unsigned VECTOR_LANES = 8;
#else
constexpr unsigned VECTOR_LANES = 4;
#endif

typedef float vector_float __attribute__((vector_size(4 * VECTOR_LANES)));
typedef int32_t vector_int __attribute__((vector_size(4 * VECTOR_LANES)));
typedef uint32_t vector_word __attribute__((vector_size(4 * VECTOR_LANES)));
typedef uint16_t vector_half __attribute__((vector_size(2 * VECTOR_LANES)));
typedef uint8_t vector_byte __attribute__((vector_size(VECTOR_LANES)));

template <class T, unsigned BYTES> struct vector_of_size;
template <class T> struct vector_of_size<T, 1> {
    using type = vector_byte;
};
template <class T> struct vector_of_size<T, 2> {
    using type = vector_half;
};
template <> struct vector_of_size<float, 4> {
    using type = vector_float;
};
template <class T> using vector_of = typename vector_of_size<T, sizeof(T)>::type;

RONDO_INLINE vector_int bits_of(vector_float value)
{
    return (vector_int)value;
}

RONDO_INLINE vector_float float_of(vector_int bits)
{
    return (vector_float)bits;
}

RONDO_INLINE vector_word word_of(vector_int value)
{
    return (vector_word)value;
}

RONDO_INLINE vector_int int_of(vector_word value)
{
    return (vector_int)value;
}

RONDO_INLINE vector_float to_float(vector_int value)
{
    return __builtin_convertvector(value, vector_float);
}

RONDO_INLINE vector_int select(vector_int mask, vector_int yes, vector_int no)
{
    return mask ? yes : no;
}

/* The lesser and the greater of what are bits of floats without a sign. A NaN in x gives way to limit. */
RONDO_INLINE vector_int lesser(vector_int x, vector_int limit)
{
#if defined(__AVX512F__)
    return (vector_int)_mm512_maskz_min_ps(ALL_LANES, (__m512)x, (__m512)limit);
#elif defined(__AVX2__)
    return (vector_int)_mm256_min_ps((__m256)x, (__m256)limit);
#elif defined(__SSE2__)
    return (vector_int)_mm_min_ps((__m128)x, (__m128)limit);
#else
    return select(x < limit, x, limit);
#endif
}

RONDO_INLINE vector_int greater(vector_int x, vector_int limit)
{
#if defined(__AVX512F__)
    return (vector_int)_mm512_maskz_max_ps(ALL_LANES, (__m512)x, (__m512)limit);
#elif defined(__AVX2__)
    return (vector_int)_mm256_max_ps((__m256)x, (__m256)limit);
#elif defined(__SSE2__)
    return (vector_int)_mm_max_ps((__m128)x, (__m128)limit);
#else
    return select(x > limit, x, limit);
#endif
}

/*
 * Codes as words, bytes also with their sign as halves, and words that are codes back. The instructions are
 * named here because gcc 12 makes single elements of __builtin_convertvector.
 */
#if defined(__AVX512F__)
RONDO_INLINE vector_int extended(vector_byte codes)
{
    return (vector_int)_mm512_maskz_cvtepu8_epi32(ALL_LANES, (__m128i)codes);
}

RONDO_INLINE vector_int extended(vector_half codes)
{
    return (vector_int)_mm512_maskz_cvtepu16_epi32(ALL_LANES, (__m256i)codes);
}

RONDO_INLINE vector_half halves_of(vector_byte codes)
{
    return (vector_half)_mm256_cvtepi8_epi16((__m128i)codes);
}

RONDO_INLINE void truncate(vector_int words, vector_byte &codes_out)
{
    codes_out = (vector_byte)_mm512_maskz_cvtepi32_epi8(ALL_LANES, (__m512i)words);
}

RONDO_INLINE void truncate(vector_int words, vector_half &codes_out)
{
    codes_out = (vector_half)_mm512_maskz_cvtepi32_epi16(ALL_LANES, (__m512i)words);
}
#elif defined(__AVX2__)
RONDO_INLINE __m128i low_bytes(vector_byte codes)
{
    return _mm_cvtsi64_si128((long long)codes);
}

RONDO_INLINE vector_int extended(vector_byte codes)
{
    return (vector_int)_mm256_cvtepu8_epi32(low_bytes(codes));
}

RONDO_INLINE vector_int extended(vector_half codes)
{
    return (vector_int)_mm256_cvtepu16_epi32((__m128i)codes);
}

RONDO_INLINE vector_half halves_of(vector_byte codes)
{
    return (vector_half)_mm_cvtepi8_epi16(low_bytes(codes));
}

RONDO_INLINE __m128i packed_words(vector_int words)
{
    return _mm_packus_epi32(_mm256_castsi256_si128((__m256i)words),
                            _mm256_extracti128_si256((__m256i)words, 1));
}

RONDO_INLINE void truncate(vector_int words, vector_byte &codes_out)
{
    __m128i halves = packed_words(words);

    codes_out = (vector_byte)_mm_cvtsi128_si64(_mm_packus_epi16(halves, halves));
}

RONDO_INLINE void truncate(vector_int words, vector_half &codes_out)
{
    codes_out = (vector_half)packed_words(words);
}
#elif defined(__SSE2__)
RONDO_INLINE vector_int extended(vector_byte codes)
{
    __m128i halves = _mm_unpacklo_epi8(_mm_cvtsi32_si128((int)codes), _mm_setzero_si128());

    return (vector_int)_mm_unpacklo_epi16(halves, _mm_setzero_si128());
}

RONDO_INLINE vector_int extended(vector_half codes)
{
    return (vector_int)_mm_unpacklo_epi16(_mm_cvtsi64_si128((long long)codes), _mm_setzero_si128());
}

RONDO_INLINE void truncate(vector_int words, vector_byte &codes_out)
{
    __m128i halves = _mm_packs_epi32((__m128i)words, (__m128i)words);

    codes_out = (vector_byte)_mm_cvtsi128_si32(_mm_packus_epi16(halves, halves));
}

/* The pack of signed words keeps all 16 bits of such as have copies of the highest above it. */
RONDO_INLINE void truncate(vector_int words, vector_half &codes_out)
{
    __m128i low = (__m128i)(words << 16 >> 16);

    codes_out = (vector_half)_mm_cvtsi128_si64(_mm_packs_epi32(low, low));
}
#else
template <class V> RONDO_INLINE vector_int extended(V codes)
{
    return __builtin_convertvector(codes, vector_int);
}

template <class V> RONDO_INLINE void truncate(vector_int words, V &codes_out)
{
    codes_out = __builtin_convertvector(words, V);
}
#endif

/* In a loop over single elements that is not worth vector code; the vectoriser leaves it alone. */
RONDO_INLINE void stay_scalar()
{
    __asm__ volatile("");
}

/* The f16 instructions agree bit by bit with numeric.cuh, NaN payloads included; a test compares all values.
 */
#if defined(__F16C__)
constexpr bool CONVERTS_HALVES = true;

#if defined(__AVX512F__)
RONDO_INLINE vector_float widened_halves(vector_half halves)
{
    return (vector_float)_mm512_maskz_cvtph_ps(ALL_LANES, (__m256i)halves);
}

RONDO_INLINE vector_half narrowed_halves(vector_float wide)
{
    return (vector_half)_mm512_maskz_cvtps_ph(ALL_LANES, (__m512)wide, _MM_FROUND_TO_NEAREST_INT);
}
#else
RONDO_INLINE vector_float widened_halves(vector_half halves)
{
    return (vector_float)_mm256_cvtph_ps((__m128i)halves);
}

RONDO_INLINE vector_half narrowed_halves(vector_float wide)
{
    return (vector_half)_mm256_cvtps_ph((__m256)wide, _MM_FROUND_TO_NEAREST_INT);
}
#endif
#else
constexpr bool CONVERTS_HALVES = false;
#endif

} // namespace RONDO_KERNELS

#endif
