/* elements.c - the two tables. */
#include "elements.h"

#include <string.h>

const struct perf_type perf_types[PERF_TYPES] = {
    {"int8", ncclInt8, 1, PERF_SIGNED, 0, 0, 0},       {"uint8", ncclUint8, 1, PERF_UNSIGNED, 0, 0, 0},
    {"int32", ncclInt32, 4, PERF_SIGNED, 0, 0, 0},     {"uint32", ncclUint32, 4, PERF_UNSIGNED, 0, 0, 0},
    {"int64", ncclInt64, 8, PERF_SIGNED, 0, 0, 0},     {"uint64", ncclUint64, 8, PERF_UNSIGNED, 0, 0, 0},
    {"half", ncclFloat16, 2, PERF_REAL, 5, 10, 1},     {"float", ncclFloat32, 4, PERF_REAL, 8, 23, 1},
    {"double", ncclFloat64, 8, PERF_REAL, 11, 52, 1},  {"bfloat16", ncclBfloat16, 2, PERF_REAL, 8, 7, 1},
    {"f8e4m3", ncclFloat8e4m3, 1, PERF_REAL, 4, 3, 0}, {"f8e5m2", ncclFloat8e5m2, 1, PERF_REAL, 5, 2, 1},
};

const char *const perf_op_names[PERF_OPS] = {"sum", "prod", "min", "max", "avg", "mulsum"};

int perf_type_find(const char *name)
{
    if (strcmp(name, "all") == 0)
        return -1;
    for (int i = 0; i < PERF_TYPES; i++)
        if (strcmp(name, perf_types[i].name) == 0)
            return i;
    return -2;
}

int perf_op_find(const char *name)
{
    if (strcmp(name, "all") == 0)
        return -1;
    for (int i = 0; i < PERF_OPS; i++)
        if (strcmp(name, perf_op_names[i]) == 0)
            return i;
    return -2;
}

ncclRedOp_t perf_op_nccl(enum perf_op op)
{
    static const ncclRedOp_t ops[PERF_OPS] = {ncclSum, ncclProd, ncclMin, ncclMax, ncclAvg, ncclNumOps};

    return ops[op];
}
