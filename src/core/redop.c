/* redop.c - reductions as users name them, turned into what kernels do. */
#include "redop.h"

#include "comm.h"

#include "base/error.h"
#include "device/types.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT_EXPONENT_BITS 8

/* A user's operation: a node of comm->premuls, which is search.h's, by op. */
struct premul {
    ncclRedOp_t op; /* first: a key is a number alone */
    ncclDataType_t dtype;
    uint32_t flags;
    uint64_t scalar; /* bits of an accumulator value, or an address */
};

/* The built-in operations. RONDO_REDOP_NUM: what kernels do depends on the type. */
static const struct builtin {
    const char *name;
    enum rondo_redop redop;
} builtins[] = {
    [ncclSum] = {"ncclSum", RONDO_REDOP_SUM}, [ncclProd] = {"ncclProd", RONDO_REDOP_PROD},
    [ncclMax] = {"ncclMax", RONDO_REDOP_MAX}, [ncclMin] = {"ncclMin", RONDO_REDOP_MIN},
    [ncclAvg] = {"ncclAvg", RONDO_REDOP_NUM},
};

_Static_assert(sizeof(builtins) / sizeof(builtins[0]) == ncclNumOps, "a row for every built-in operation");

const char *rondo_redop_name(ncclRedOp_t op)
{
    return op >= 0 && op < ncclNumOps ? builtins[op].name : "a user's operation";
}

/* A number of the process's own, so that a handle of one communicator, or a destroyed one, means nothing to
 * another. */
static ncclRedOp_t next_op(void)
{
    static uint32_t count;
    uint32_t step = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);

    /* An odd factor: all of 2^30 numbers differ; neighbours look unrelated. */
    return (ncclRedOp_t)(ncclNumOps + ((step * 0x2545f491u) & 0x3fffffffu));
}

static uint64_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint64_t double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Value of a floating type narrower than float. */
static float decode_narrow(unsigned bits, struct rondo_float_format format)
{
    int exponent_bits = (int)format.exponent_bits, mantissa_bits = (int)format.mantissa_bits;
    int highest = (1 << exponent_bits) - 1, bias = highest >> 1;
    unsigned mantissa = bits & ((1u << mantissa_bits) - 1);
    int exponent = (int)(bits >> mantissa_bits) & highest;
    float sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0f : 1.0f;
    float value;

    if (exponent == highest && format.has_infinity)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == highest && mantissa == (1u << mantissa_bits) - 1)
        value = NAN;
    else if (exponent == 0)
        value = ldexpf((float)mantissa, 1 - bias - mantissa_bits);
    else
        value = ldexpf((float)(mantissa | 1u << mantissa_bits), exponent - bias - mantissa_bits);
    return copysignf(value, sign);
}

uint64_t rondo_scalar_bits(const void *scalar, ncclDataType_t dtype)
{
    struct rondo_float_format format = rondo_dtype_format(dtype);
    size_t bytes = rondo_dtype_bytes(dtype);
    uint64_t bits = 0;

    memcpy(&bits, scalar, bytes); /* little endian */
    if (rondo_dtype_wide_bytes(dtype) == bytes)
        return bits; /* its own accumulator */
    if (format.exponent_bits == FLOAT_EXPONENT_BITS)
        return bits << 8 * (sizeof(float) - bytes); /* the upper part of a float, a NaN's payload too */
    return float_bits(decode_narrow((unsigned)bits, format));
}

static int compare_ops(const void *a, const void *b)
{
    ncclRedOp_t left, right;

    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return left < right ? -1 : left > right;
}

/* The operation among the communicator's own, NULL if there is none; the lock is held. */
static struct premul *find_premul(struct ncclComm *comm, ncclRedOp_t op)
{
    struct premul **node = tfind(&op, &comm->premuls, compare_ops);

    return node ? *node : NULL;
}

static ncclResult_t apply_premul(struct ncclComm *comm, ncclRedOp_t op, struct rondo_task *task)
{
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&comm->lock);
    const struct premul *premul = find_premul(comm, op);
    if (!premul) {
        rc = rondo_fail(
            ncclInvalidArgument,
            "use reduction %d: rank %d's communicator has no such operation (destroyed, or another's)", op,
            comm->rank);
    } else if (premul->dtype != task->dtype) {
        rc = rondo_fail(ncclInvalidArgument, "use reduction %d with %s: it was made for %s", op,
                        rondo_dtype_name(task->dtype), rondo_dtype_name(premul->dtype));
    } else {
        task->redop = RONDO_REDOP_PREMULSUM;
        task->flags = premul->flags;
        task->scalar = premul->scalar;
    }
    pthread_mutex_unlock(&comm->lock);
    return rc;
}

ncclResult_t rondo_redop_apply(struct ncclComm *comm, ncclRedOp_t op, struct rondo_task *task)
{
    if ((int)op < 0) /* above ncclMaxRedOp there is no other int */
        return rondo_fail(ncclInvalidArgument, "use reduction %d: no such operation", op);
    task->public_redop = op;
    task->flags = 0;
    task->scalar = 0;
    if (op >= ncclNumOps)
        return apply_premul(comm, op, task);
    if (builtins[op].redop != RONDO_REDOP_NUM) {
        task->redop = builtins[op].redop;
    } else if (rondo_dtype_is_float(task->dtype)) {
        task->redop = RONDO_REDOP_PREMULSUM;
        task->scalar = task->dtype == ncclFloat64 ? double_bits(1.0 / comm->ranks)
                                                  : float_bits(1.0f / (float)comm->ranks);
    } else {
        task->redop = RONDO_REDOP_SUMDIV;
        task->scalar = (uint64_t)comm->ranks;
    }
    return ncclSuccess;
}

ncclResult_t rondo_premul_create(struct ncclComm *comm, const void *scalar, ncclDataType_t dtype,
                                 ncclScalarResidence_t residence, ncclRedOp_t *op_out)
{
    struct premul *premul = calloc(1, sizeof(*premul));

    if (!premul)
        return rondo_fail(ncclSystemError, "allocate a reduction of rank %d: out of memory", comm->rank);
    premul->dtype = dtype;
    if (residence == ncclScalarHostImmediate) {
        premul->scalar = rondo_scalar_bits(scalar, dtype);
    } else {
        premul->flags = RONDO_WORK_SCALAR_POINTER;
        premul->scalar = (uint64_t)(uintptr_t)scalar;
    }
    pthread_mutex_lock(&comm->lock);
    do
        premul->op = next_op();
    while (find_premul(comm, premul->op)); /* the numbers have come round, and that one is still in use */
    ncclRedOp_t op = premul->op;
    bool is_kept = tsearch(premul, &comm->premuls, compare_ops) != NULL;
    pthread_mutex_unlock(&comm->lock);
    if (!is_kept) {
        free(premul);
        return rondo_fail(ncclSystemError, "remember a reduction of rank %d: out of memory", comm->rank);
    }
    *op_out = op;
    return ncclSuccess;
}

ncclResult_t rondo_premul_destroy(struct ncclComm *comm, ncclRedOp_t op)
{
    struct premul *found;

    if ((int)op < ncclNumOps)
        return rondo_fail(ncclInvalidArgument, "destroy reduction %d: %s cannot be destroyed", op,
                          (int)op < 0 ? "no operation, it" : "a built-in operation");
    pthread_mutex_lock(&comm->lock);
    found = find_premul(comm, op);
    if (found)
        tdelete(&op, &comm->premuls, compare_ops);
    pthread_mutex_unlock(&comm->lock);
    if (!found)
        return rondo_fail(
            ncclInvalidArgument,
            "destroy reduction %d: rank %d's communicator has no such operation (destroyed before?)", op,
            comm->rank);
    free(found);
    return ncclSuccess;
}

void rondo_premul_free_all(struct ncclComm *comm)
{
    tdestroy(comm->premuls, free);
    comm->premuls = NULL;
}
