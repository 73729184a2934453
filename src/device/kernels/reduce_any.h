/*
 * reduce_any.h - works that compute, of any type and operation, by way of the tables of loops (spans_cpu.h),
 * so that the collectives are compiled once.
 */
#ifndef RONDO_KERNELS_REDUCE_ANY_H
#define RONDO_KERNELS_REDUCE_ANY_H

#include "kernels/list.cuh"
#include "kernels/spans_cpu.h"

extern "C" {
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, wider, ...) \
    extern rondo_spans_table RONDO_SPANS_NAME(RONDO_KERNELS, suffix);
#include "device/dtypes.def"
#undef RONDO_DTYPE
}

namespace RONDO_KERNELS
{

/* is_sound() has checked type and operation. */
static bool reduce_any(const job &j)
{
    static rondo_spans_table *const tables[] = {
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, wider, ...) &RONDO_SPANS_NAME(RONDO_KERNELS, suffix),
#include "device/dtypes.def"
#undef RONDO_DTYPE
    };
    bool wide = (j.work->flags & RONDO_WORK_PRECISE) && j.work->kind != RONDO_WORK_COPY;

    return reduce_work(j, (*tables[j.work->dtype])[j.work->redop][wide]);
}

} // namespace RONDO_KERNELS

#endif
