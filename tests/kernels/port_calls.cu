// The port of GPUs compiles, whether kernels use it yet or not.
#include "port_calls.h"

extern "C" __global__ void port_calls(struct rondo_line *stop, uint32_t *word, uint64_t *wide,
                                      RONDO_KERNELS::ll_pair *pair, void *line)
{
    if (!RONDO_KERNELS::call_all(RONDO_KERNELS::machine{stop}, word, wide, pair, line))
        *word = 0;
}
