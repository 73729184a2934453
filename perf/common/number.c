/* number.c - encode by scaling to an integer and rounding that: denormals are the same case with a fixed
 * scale. */
#include "number.h"

#include <math.h>

static int format_bias(const struct perf_type *type)
{
    return (1 << (type->exponent_bits - 1)) - 1;
}

/* The bits of the largest finite number. */
static uint64_t largest_finite(const struct perf_type *type)
{
    uint64_t all = (UINT64_C(1) << (type->exponent_bits + type->mantissa_bits)) - 1;

    return type->has_infinity ? all - (UINT64_C(1) << type->mantissa_bits) : all - 1;
}

static uint64_t not_a_number(const struct perf_type *type)
{
    uint64_t all = (UINT64_C(1) << (type->exponent_bits + type->mantissa_bits)) - 1;

    return type->has_infinity ? all - ((UINT64_C(1) << (type->mantissa_bits - 1)) - 1) : all;
}

static uint64_t overflowed(const struct perf_type *type)
{
    return type->bytes == 1 ? largest_finite(type) : largest_finite(type) + 1;
}

uint64_t perf_number_encode(const struct perf_type *type, double value)
{
    uint64_t sign = signbit(value) ? UINT64_C(1) << (type->exponent_bits + type->mantissa_bits) : 0;
    double magnitude = fabs(value);
    int lowest = 1 - format_bias(type);
    uint64_t bits;
    int exponent;

    if (isnan(value))
        return not_a_number(type);
    if (isinf(value))
        return sign | overflowed(type);
    if (magnitude == 0)
        return sign;
    frexp(magnitude, &exponent);
    exponent--; /* magnitude = 1.xxx * 2^exponent */
    if (exponent < lowest)
        exponent = lowest;
    /* The integer has the implied bit at mantissa_bits when normal; a carry out of rounding lands in the
     * exponent. */
    bits = (uint64_t)nearbyint(ldexp(magnitude, (int)type->mantissa_bits - exponent));
    bits += (uint64_t)(exponent - lowest) << type->mantissa_bits;
    return sign | (bits > largest_finite(type) ? overflowed(type) : bits);
}

double perf_number_decode(const struct perf_type *type, uint64_t bits)
{
    uint64_t magnitude = bits & ((UINT64_C(1) << (type->exponent_bits + type->mantissa_bits)) - 1);
    uint64_t mantissa = magnitude & ((UINT64_C(1) << type->mantissa_bits) - 1);
    int exponent = (int)(magnitude >> type->mantissa_bits);
    double value;

    if (magnitude > largest_finite(type))
        value = type->has_infinity && mantissa == 0 ? INFINITY : NAN;
    else if (exponent == 0)
        value = ldexp((double)mantissa, 1 - format_bias(type) - (int)type->mantissa_bits);
    else
        value = ldexp((double)(mantissa | UINT64_C(1) << type->mantissa_bits),
                      exponent - format_bias(type) - (int)type->mantissa_bits);
    return bits >> (type->exponent_bits + type->mantissa_bits) & 1 ? -value : value;
}
