/*
 * types.c - sizes, names and formats of element types, from dtypes.def.
 */
#include "device/types.h"

#include <stdint.h>

/* The kernels' storage types, by their sizes. */
typedef uint16_t f16;
typedef uint16_t bf16;
typedef uint8_t f8e4m3;
typedef uint8_t f8e5m2;

enum kind { SIGNED, UNSIGNED, FLOAT };

static const struct row {
    const char *name;
    size_t bytes, wide_bytes;
    enum kind kind;
    struct rondo_float_format format;
} rows[] = {
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, accumulator, exponent, mantissa, infinity) \
    [id] = {#id, bytes, sizeof(accumulator), kind, {exponent, mantissa, infinity}},
#include "device/dtypes.def"
#undef RONDO_DTYPE
};

/* A type without a row would be a gap in rows, which their number shows. */
#define RONDO_DTYPE(...) +1
enum {
    ROWS =
#include "device/dtypes.def"
};
#undef RONDO_DTYPE

_Static_assert(ROWS == RONDO_DTYPE_NUM, "a row of dtypes.def for every public type");
_Static_assert(sizeof(rows) / sizeof(rows[0]) == RONDO_DTYPE_NUM, "no row of dtypes.def for anything else");
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, accumulator, exponent, mantissa, infinity) \
    _Static_assert(sizeof(storage) == bytes, "dtypes.def: bytes of " #id);                       \
    _Static_assert((kind == FLOAT ? 1 + exponent + mantissa : 8 * bytes) == 8 * bytes,           \
                   "dtypes.def: a sign, the exponent and the mantissa fill " #id);
#include "device/dtypes.def"
#undef RONDO_DTYPE

/* NULL for a value that is no type, whatever the caller put into the enum. */
static const struct row *find_row(ncclDataType_t type)
{
    unsigned index = (unsigned)type;

    return index < RONDO_DTYPE_NUM ? &rows[index] : NULL;
}

size_t rondo_dtype_bytes(ncclDataType_t type)
{
    const struct row *row = find_row(type);

    return row ? row->bytes : 0;
}

size_t rondo_dtype_wide_bytes(ncclDataType_t type)
{
    const struct row *row = find_row(type);

    return row ? row->wide_bytes : 0;
}

const char *rondo_dtype_name(ncclDataType_t type)
{
    const struct row *row = find_row(type);

    return row ? row->name : "unknown type";
}

bool rondo_dtype_is_float(ncclDataType_t type)
{
    const struct row *row = find_row(type);

    return row && row->kind == FLOAT;
}

struct rondo_float_format rondo_dtype_format(ncclDataType_t type)
{
    const struct row *row = find_row(type);

    return row ? row->format : (struct rondo_float_format){0};
}
