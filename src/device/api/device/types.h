/*
 * types.h - sizes, names and formats of element types, and the reductions, from the two tables.
 */
#ifndef RONDO_DEVICE_TYPES_H
#define RONDO_DEVICE_TYPES_H

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>

enum rondo_redop {
#define RONDO_REDOP(id, suffix, functor) RONDO_REDOP_##id,
#include "device/redops.def"
#undef RONDO_REDOP
    RONDO_REDOP_NUM
};

#define RONDO_DTYPE_NUM ((int)ncclNumTypes) /* and rows of dtypes.def; types.c asserts it */

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of one element, 0 for a value that is no type. Pure. */
size_t rondo_dtype_bytes(ncclDataType_t type);

/* Bytes of the accumulator: what one element takes between ranks in precise mode. Pure. */
size_t rondo_dtype_wide_bytes(ncclDataType_t type);

/* "ncclFloat32", or "unknown type". Pure, static text. */
const char *rondo_dtype_name(ncclDataType_t type);

/* Whether the type is a floating one. Pure. */
bool rondo_dtype_is_float(ncclDataType_t type);

/* How a floating type's bits are divided; dtypes.def explains the members. All 0 for any other value. Pure.
 */
struct rondo_float_format {
    unsigned exponent_bits, mantissa_bits;
    bool has_infinity;
};
struct rondo_float_format rondo_dtype_format(ncclDataType_t type);

#ifdef __cplusplus
}
#endif
#endif
