/*
 * spans_cpu.cc - all loops of one element type on the CPU device. A unit a type, so that they compile in
 * parallel: CMake compiles this file once for each row of isas.def and of dtypes.def; RONDO_SUFFIX and
 * RONDO_STORAGE are of the latter.
 */
#include "kernels/spans_cpu.h"

#include "kernels/reduce.cuh"
#include "kernels/span.cuh"

namespace RONDO_KERNELS
{

template <class W, class T, class Op> constexpr struct rondo_spans row()
{
    using typed = typed_spans<W, T, Op>;

    /* Where a block is one lane, its loops are that lane's, and vector code. */
    struct rondo_spans spans = {
        typed::enter,
        typed::fold,
        typed::finish,
        typed::alone,
        typed::enter,
        typed::fold,
        typed::finish,
        typed::join,
        typed::join_finish,
        typed::join,
        typed::join_finish,
        typed::lane_give,
        typed::lane_gather,
        typed::lane_leave,
        typed::combine,
        typed::scalar_from,
        sizeof(T),
        sizeof(W),
        sizeof(typename given_type<T, Op>::type),
    };

    if constexpr (WARP_LANES != 1) {
        spans.lane_enter = typed::lane_enter;
        spans.lane_fold = typed::lane_fold;
        spans.lane_finish = typed::lane_finish;
        spans.lane_join = typed::lane_join;
        spans.lane_join_finish = typed::lane_join_finish;
    }
    return spans;
}

} // namespace RONDO_KERNELS

using namespace RONDO_KERNELS;

extern "C" {
extern rondo_spans_table RONDO_SPANS_NAME(RONDO_KERNELS, RONDO_SUFFIX);

/* What device/push.h and list.cuh say of operations that only their functors know. */
#define RONDO_REDOP(id, suffix, functor)                           \
    static_assert(functor<accumulator<RONDO_STORAGE>>::scales ==   \
                      (RONDO_REDOP_##id == RONDO_REDOP_PREMULSUM), \
                  "device/push.h, list.cuh: what scales its inputs is PREMULSUM");
#include "device/redops.def"
#undef RONDO_REDOP

#define RONDO_REDOP(id, suffix, functor)                                       \
    {row<RONDO_STORAGE, RONDO_STORAGE, functor<accumulator<RONDO_STORAGE>>>(), \
     row<accumulator<RONDO_STORAGE>, RONDO_STORAGE, functor<accumulator<RONDO_STORAGE>>>()},
rondo_spans_table RONDO_SPANS_NAME(RONDO_KERNELS, RONDO_SUFFIX) = {
#include "device/redops.def"
};
#undef RONDO_REDOP
}
