/*
 * entry_cpu.cc - the entry of one instruction set's kernels on the CPU device. CMake compiles this file and
 * spans_cpu.cc once for each row of isas.def, with RONDO_KERNELS naming the build.
 */
#include "kernels/reduce_any.h"

#define RONDO_ENTRY_NAME(kernels) RONDO_PASTE(kernels, _, kernel)

/* rondo_avx2_kernel and so on; see rondo_cpu_kernel. */
extern "C" void RONDO_ENTRY_NAME(RONDO_KERNELS)(struct rondo_lane *lane, const struct rondo_kernel_args *args)
{
    RONDO_KERNELS::run_list(RONDO_KERNELS::machine{lane}, args, lane->block, lane->role,
                            RONDO_KERNELS::reduce_any);
}
