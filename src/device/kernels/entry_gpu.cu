/*
 * entry_gpu.cu - the kernels of one element type on CUDA GPUs: one a row of redops.def, extern "C" under
 * names built from the two tables, rondo_kernel_f32_sum and so on, so that the host finds them in the fatbin
 * by name. A unit a type.
 *
 * A kernel runs works of its own type and operation, and any data movement. Launch it with a grid of (blocks,
 * 2): y is the role, so that the two lists of a block run concurrently, and a thread block whose list is
 * empty ends at once.
 *
 * Compiled by nvcc as a check; not yet run on a GPU.
 */
#include "kernels/list.cuh"
#include "kernels/reduce.cuh"

namespace RONDO_KERNELS
{

template <class T, class Op> struct typed_reduce {
    enum rondo_redop redop;
    unsigned dtype;

    RONDO_MEMBER bool operator()(const job &j) const
    {
        if (j.work->dtype != dtype || j.work->redop != redop) {
            refuse(j);
            return false;
        }
        if (j.work->flags & RONDO_WORK_PRECISE)
            return reduce_work(j, typed_spans<accumulator<T>, T, Op>{});
        return reduce_work(j, typed_spans<T, T, Op>{});
    }
};

} // namespace RONDO_KERNELS

#define RONDO_PASTE(a, b, c, d) a##b##c##d
#define RONDO_KERNEL_NAME(dtype, redop) RONDO_PASTE(rondo_kernel_, dtype, _, redop)

#define RONDO_REDOP(id, suffix, functor)                                                            \
    extern "C" __global__ void RONDO_KERNEL_NAME(RONDO_SUFFIX, suffix)(                             \
        const __grid_constant__ struct rondo_kernel_args args)                                      \
    {                                                                                               \
        using namespace RONDO_KERNELS;                                                              \
        run_list(machine{&args.page->stop}, &args, blockIdx.x, blockIdx.y,                          \
                 typed_reduce<RONDO_STORAGE, functor<accumulator<RONDO_STORAGE>>>{RONDO_REDOP_##id, \
                                                                                  RONDO_DTYPE_ID}); \
    }
#include "device/redops.def"
