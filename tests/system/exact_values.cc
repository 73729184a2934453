/* exact_values.cc - see exact_values.h. */
#include "exact_values.h"

#include <cmath>
#include <cstring>

struct Format {
    int exponent_bits, mantissa_bits;
    bool has_infinity; /* the top exponent is not for numbers; e4m3 uses it and has one NaN a sign */
};

static Format format_of(ncclDataType_t type)
{
    switch (type) {
    case ncclFloat16:
        return {5, 10, true};
    case ncclBfloat16:
        return {8, 7, true};
    case ncclFloat8e4m3:
        return {4, 3, false};
    default:
        return {5, 2, true}; /* e5m2 */
    }
}

size_t type_bytes(ncclDataType_t type)
{
    static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return bytes[type];
}

bool type_is_float(ncclDataType_t type)
{
    return type >= ncclFloat16;
}

const char *type_name(ncclDataType_t type)
{
    static const char *names[] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                  "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
    return names[type];
}

const char *redop_name(ncclRedOp_t op)
{
    static const char *names[] = {"sum", "prod", "max", "min", "avg"};
    return names[op];
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static uint64_t raw_value(uint64_t seed, int rank, uint64_t index)
{
    return mix(mix(seed + 0x9e3779b97f4a7c15ull * (uint64_t)(rank + 1)) ^ index);
}

/* -1, 0 or 1 for sums (at most 8 in total: exact in e5m2's three significant bits); +-1, +-2 or +-1/2 for
 * products; small integers otherwise. */
static double float_value(ncclRedOp_t op, uint64_t seed, int rank, uint64_t index)
{
    uint64_t raw = raw_value(seed, rank, index);
    if (op == ncclProd)
        return std::ldexp(raw & 1 ? 1.0 : -1.0, (int)((raw >> 8) % 3) - 1);
    if (op == ncclMax || op == ncclMin)
        return (double)(int)(raw % 15) - 7;
    return (double)(int)(raw % 3) - 1;
}

void encode_float(void *element, ncclDataType_t type, double value)
{
    if (type == ncclFloat64) {
        memcpy(element, &value, 8);
        return;
    }
    if (type == ncclFloat32) {
        float single = (float)value;
        memcpy(element, &single, 4);
        return;
    }
    Format format = format_of(type);
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    uint32_t sign = std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0, bits = 0;
    if (value != 0) {
        int exponent;
        std::frexp(std::fabs(value), &exponent); /* value = m * 2^exponent, m in [0.5, 1) */
        int biased = exponent - 1 + bias;
        if (biased < 1)
            biased = 1; /* subnormal: no hidden bit */
        double scaled = std::ldexp(std::fabs(value), format.mantissa_bits - (biased - bias));
        bits = (uint32_t)scaled;
        if (bits >> format.mantissa_bits)
            bits += (uint32_t)(biased - 1) << format.mantissa_bits;
    }
    bits |= sign;
    memcpy(element, &bits, type_bytes(type)); /* little-endian */
}

double decode_float(const void *element, ncclDataType_t type)
{
    if (type == ncclFloat64) {
        double value;
        memcpy(&value, element, 8);
        return value;
    }
    if (type == ncclFloat32) {
        float single;
        memcpy(&single, element, 4);
        return single;
    }
    Format format = format_of(type);
    uint32_t bits = 0;
    memcpy(&bits, element, type_bytes(type));
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
    uint32_t exponent = (bits >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1);
    double sign = bits >> (format.exponent_bits + format.mantissa_bits) ? -1.0 : 1.0;
    uint32_t top = (1u << format.exponent_bits) - 1;
    if (exponent == top && format.has_infinity)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == top && mantissa == (1u << format.mantissa_bits) - 1)
        return NAN;
    if (exponent == 0)
        return sign * std::ldexp((double)mantissa, 1 - bias - format.mantissa_bits);
    return sign * std::ldexp((double)(mantissa | 1u << format.mantissa_bits),
                             (int)exponent - bias - format.mantissa_bits);
}

double float_spacing(ncclDataType_t type, double value)
{
    int mantissa = type == ncclFloat64 ? 52 : type == ncclFloat32 ? 23 : format_of(type).mantissa_bits;
    int exponent_bits = type == ncclFloat64 ? 11 : type == ncclFloat32 ? 8 : format_of(type).exponent_bits;
    int lowest = 2 - (1 << (exponent_bits - 1)), exponent = lowest;
    if (value != 0) {
        std::frexp(std::fabs(value), &exponent);
        exponent = exponent - 1 < lowest ? lowest : exponent - 1;
    }
    return std::ldexp(1.0, exponent - mantissa);
}

static void store_integer(void *element, ncclDataType_t type, uint64_t value)
{
    memcpy(element, &value, type_bytes(type)); /* little-endian: keeps the low bytes */
}

void store_input(void *element, ncclDataType_t type, ncclRedOp_t op, uint64_t seed, int rank, uint64_t index)
{
    if (type_is_float(type))
        encode_float(element, type, float_value(op, seed, rank, index));
    else
        store_integer(element, type, raw_value(seed, rank, index));
}

/* The low bytes of value, as the type reads them. */
static int64_t as_signed(ncclDataType_t type, uint64_t value)
{
    switch (type_bytes(type)) {
    case 1:
        return (int8_t)value;
    case 4:
        return (int32_t)value;
    default:
        return (int64_t)value;
    }
}

static uint64_t as_unsigned(ncclDataType_t type, uint64_t value)
{
    return type_bytes(type) == 8 ? value : value & ((1ull << (8 * type_bytes(type))) - 1);
}

static bool is_signed(ncclDataType_t type)
{
    return type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
}

static uint64_t reduce_integers(ncclDataType_t type, ncclRedOp_t op, uint64_t seed, int ranks, uint64_t index)
{
    uint64_t result = raw_value(seed, 0, index);
    for (int rank = 1; rank < ranks; rank++) {
        uint64_t next = raw_value(seed, rank, index);
        bool next_is_less = is_signed(type) ? as_signed(type, next) < as_signed(type, result)
                                            : as_unsigned(type, next) < as_unsigned(type, result);
        if (op == ncclProd)
            result *= next;
        else if (op == ncclMin)
            result = next_is_less ? next : result;
        else if (op == ncclMax)
            result = next_is_less ? result : next;
        else
            result += next;
    }
    if (op == ncclAvg && is_signed(type))
        result = (uint64_t)(as_signed(type, result) / ranks);
    else if (op == ncclAvg)
        result = as_unsigned(type, result) / (uint64_t)ranks;
    return result;
}

static double reduce_floats(ncclRedOp_t op, uint64_t seed, int ranks, uint64_t index)
{
    double result = float_value(op, seed, 0, index);
    for (int rank = 1; rank < ranks; rank++) {
        double next = float_value(op, seed, rank, index);
        if (op == ncclProd)
            result *= next;
        else if (op == ncclMin)
            result = std::fmin(result, next);
        else if (op == ncclMax)
            result = std::fmax(result, next);
        else
            result += next;
    }
    return op == ncclAvg ? result / ranks : result;
}

bool matches_reduction(const void *element, ncclDataType_t type, ncclRedOp_t op, uint64_t seed, int ranks,
                       uint64_t index)
{
    if (!type_is_float(type)) {
        uint64_t expected = reduce_integers(type, op, seed, ranks, index);
        return memcmp(element, &expected, type_bytes(type)) == 0;
    }
    double expected = reduce_floats(op, seed, ranks, index), found = decode_float(element, type);
    if (op != ncclAvg)
        return found == expected;
    /* Each of the inputs is rounded once when scaled by 1/n (at most 1 in size) and each sum once more: n
     * roundings of partial sums that are below 1, and of 1/n itself. */
    double bound = ranks * float_spacing(type, 1.0);
    return std::fabs(found - expected) <= bound;
}

void store_bits(void *element, ncclDataType_t type, uint64_t seed, int rank, uint64_t index)
{
    store_integer(element, type, raw_value(seed, rank, index));
}

bool matches_bits(const void *element, ncclDataType_t type, uint64_t seed, int rank, uint64_t index)
{
    uint64_t expected = raw_value(seed, rank, index);
    return memcmp(element, &expected, type_bytes(type)) == 0;
}
