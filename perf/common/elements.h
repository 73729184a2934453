/* elements.h - the element types and the operations a run can name: one table each, in the order of the
 * public enums. */
#ifndef PERF_ELEMENTS_H
#define PERF_ELEMENTS_H

#include <nccl.h>

enum perf_kind { PERF_SIGNED, PERF_UNSIGNED, PERF_REAL };

struct perf_type {
    const char *name;
    ncclDataType_t id;
    unsigned bytes;
    enum perf_kind kind;
    unsigned exponent_bits; /* of a real type; 0 for integers */
    unsigned mantissa_bits; /* stored ones, without the implied bit */
    int has_infinity;       /* 0: the largest exponent holds numbers too, and one NaN (e4m3) */
};

enum perf_op { PERF_SUM, PERF_PROD, PERF_MIN, PERF_MAX, PERF_AVG, PERF_MULSUM, PERF_OPS };

#define PERF_TYPES 12

extern const struct perf_type perf_types[PERF_TYPES];
extern const char *const perf_op_names[PERF_OPS];

/* Index of a name in its table; -1 for "all"; -2 when there is no such name. */
int perf_type_find(const char *name);
int perf_op_find(const char *name);

/* The library's operation. For PERF_MULSUM, which is made per call, ncclNumOps. */
ncclRedOp_t perf_op_nccl(enum perf_op op);

/* What PERF_MULSUM multiplies the contribution of a rank by. */
static inline unsigned perf_mulsum_scalar(unsigned rank)
{
    return rank % 2 ? 2 : 1;
}

#endif
