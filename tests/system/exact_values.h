/*
 * exact_values.h - inputs whose reductions are exact in every type and order, and what they must come out as.
 *
 * A value is a pure function of (seed, rank, index). Integers are arbitrary and wrap. Floating inputs are
 * small integers (sums), or signed powers of two (products), chosen so that every partial result of up to 8
 * ranks is representable even in 8-bit types: a wrong result is then never a matter of rounding. Averages are
 * compared within the rounding that scaling before adding allows.
 */
#ifndef RONDO_TESTS_EXACT_VALUES_H
#define RONDO_TESTS_EXACT_VALUES_H

#include <nccl.h>

#include <cstddef>
#include <cstdint>

size_t type_bytes(ncclDataType_t type);
bool type_is_float(ncclDataType_t type);
const char *type_name(ncclDataType_t type);
const char *redop_name(ncclRedOp_t op);

/* Store the input element of a rank. */
void store_input(void *element, ncclDataType_t type, ncclRedOp_t op, uint64_t seed, int rank, uint64_t index);

/* Whether *element is the reduction of ranks 0..ranks-1 at index. */
bool matches_reduction(const void *element, ncclDataType_t type, ncclRedOp_t op, uint64_t seed, int ranks,
                       uint64_t index);

/* The same for data that is only moved: any bit pattern, not a number. */
void store_bits(void *element, ncclDataType_t type, uint64_t seed, int rank, uint64_t index);
bool matches_bits(const void *element, ncclDataType_t type, uint64_t seed, int rank, uint64_t index);

/* Floating types to and from double. encode needs a representable value; decode is exact. */
void encode_float(void *element, ncclDataType_t type, double value);
double decode_float(const void *element, ncclDataType_t type);

/* Distance between neighbouring values of the type at |value| (normal or subnormal). */
double float_spacing(ncclDataType_t type, double value);

#endif
