/*
 * spans_cpu.h - the loops over elements as a table, so that on the CPU device the collectives are compiled
 * once an instruction set and not once a type and operation too. A call through the table is made once a
 * slot, or a piece of one.
 *
 * Each row of dtypes.def is a unit of its own (spans_cpu.cc) that defines rondo_<isa>_spans_<suffix>; tests
 * call the same.
 */
#ifndef RONDO_KERNELS_SPANS_CPU_H
#define RONDO_KERNELS_SPANS_CPU_H

#include "device/types.h"
#include "device/work.h"

#include <stdint.h>

typedef void rondo_join_loop(void *out, const void *const *in, uint32_t count, const void *x, uint64_t n,
                             uint64_t scalar);

/* One type, wire and operation; see span.cuh for what each does. */
struct rondo_spans {
    void (*enter)(void *out, const void *x, uint64_t n, uint64_t scalar);
    void (*fold)(void *out, const void *in, const void *x, uint64_t n, uint64_t scalar);
    void (*finish)(void *out, void *second, const void *in, const void *x, uint64_t n, uint64_t scalar);
    void (*alone)(void *out, const void *x, uint64_t n, uint64_t scalar);
    void (*lane_enter)(void *out, const void *x, uint64_t n, uint64_t scalar);
    void (*lane_fold)(void *out, const void *in, const void *x, uint64_t n, uint64_t scalar);
    void (*lane_finish)(void *out, void *second, const void *in, const void *x, uint64_t n, uint64_t scalar);
    rondo_join_loop *join, *join_finish, *lane_join, *lane_join_finish;
    void (*lane_give)(void *out, const void *x, uint64_t n, uint64_t scalar);
    void (*lane_gather)(void *sums, const void *given, uint64_t n, bool is_first);
    void (*lane_leave)(void *out, const void *sums, uint64_t n, uint64_t scalar);
    void (*combine)(void *out, void *second, const struct rondo_source *sources, uint32_t count, uint64_t n);
    uint64_t (*scalar_from)(const void *element);
    uint64_t element, wire, given; /* bytes */

    /* As typed_spans has them. */
    uint64_t element_bytes() const
    {
        return element;
    }

    uint64_t wire_bytes() const
    {
        return wire;
    }

    uint64_t given_bytes() const
    {
        return given;
    }
};

/* [redop][0]: the wire is the user's type; [redop][1]: its accumulator. */
typedef const struct rondo_spans rondo_spans_table[RONDO_REDOP_NUM][2];

#define RONDO_PASTE(a, b, c) a##b##c
#define RONDO_SPANS_NAME(kernels, suffix) RONDO_PASTE(kernels, _spans_, suffix)

#endif
