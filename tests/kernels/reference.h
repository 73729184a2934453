// reference.h - what the kernels must compute, written another way: elements as exact integers or doubles,
// narrow types by looking up all their values. Slow and plain on purpose; shares no code with
// src/device/kernels.
#ifndef RONDO_TESTS_KERNELS_REFERENCE_H
#define RONDO_TESTS_KERNELS_REFERENCE_H

#include "device/types.h"

#include <cstdint>
#include <vector>

namespace reference
{

struct Type {
    ncclDataType_t id;
    const char *name;
    unsigned bytes, wide_bytes;
    bool is_float, is_signed;
};

const std::vector<Type> &Types();
const Type &TypeOf(ncclDataType_t id);
const char *OpName(int op);

// An accumulator's value: `number` of floating types, `whole` of integers.
struct Value {
    double number = 0;
    __int128 whole = 0;
};

// Elements as raw bits in the low bytes of a word.
Value Load(const Type &type, uint64_t raw);
Value LoadWide(const Type &type, uint64_t raw);
uint64_t Store(const Type &type, const Value &value); // rounds, saturates or wraps
uint64_t StoreWide(const Type &type, const Value &value);

// The operation of redops.def, in the accumulator's type. scalar as in struct rondo_work.
Value Enter(const Type &type, int op, uint64_t scalar, Value x);
Value Apply(const Type &type, int op, Value a, Value x);
Value Leave(const Type &type, int op, uint64_t scalar, Value a);

// Equal bits; or two NaNs; or, where min and max meet zeros of both signs, two zeros.
bool Same(const Type &type, bool wide, uint64_t raw, uint64_t expected);

// Bits of an accumulator with this value.
uint64_t Scalar(const Type &type, double value);

uint64_t GetRaw(const void *at, unsigned bytes);
void PutRaw(void *at, unsigned bytes, uint64_t raw);

// The narrow formats: a code's value, and the code nearest to a value, ties to even.
double Decode(ncclDataType_t id, uint32_t code);
uint32_t Encode(ncclDataType_t id, double value);
bool IsNarrow(ncclDataType_t id);

} // namespace reference

#endif
