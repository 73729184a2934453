#include "emulated_kernel.h"

#define RONDO_KERNELS rondo_emulator
#define RONDO_PORT "port_emulator.h"
#include "kernels/reduce_any.h"

void RunEmulatedKernel(emulator::Lane &lane, const rondo_kernel_args *args)
{
    RONDO_KERNELS::run_list(RONDO_KERNELS::machine{&args->page->stop}, args, lane.of->block, lane.of->role,
                            RONDO_KERNELS::reduce_any);
}
