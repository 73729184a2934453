/*
 * number.h - real numbers in the formats of the element types, encoded and decoded by arithmetic of our own.
 *
 * It shares nothing with the library under test, so that the two can disagree.
 */
#ifndef PERF_NUMBER_H
#define PERF_NUMBER_H

#include "elements.h"

#include <stdint.h>

/* The nearest number of the format, ties to even. Too large: infinity where the format is half, float or
 * bfloat16, the largest finite number where it is fp8. A NaN gives the format's quiet NaN. */
uint64_t perf_number_encode(const struct perf_type *type, double value);

double perf_number_decode(const struct perf_type *type, uint64_t bits);

/* A float that the format represents exactly as a normal number or +0: the bits alone, with no rounding and
 * no tests. */
static inline uint32_t perf_number_narrow(uint32_t float_bits, unsigned exponent_bits, unsigned mantissa_bits)
{
    uint32_t bias_change = 127U - ((1U << (exponent_bits - 1)) - 1);
    uint32_t sign = float_bits >> 31 << (exponent_bits + mantissa_bits);
    uint32_t magnitude = ((float_bits & 0x7fffffffU) - (bias_change << 23)) >> (23 - mantissa_bits);

    return (float_bits & 0x7fffffffU) ? sign | magnitude : 0;
}

#endif
