// The port of GPUs compiles, whether kernels use all of it yet or not.
#include "port_calls.h"

extern "C" __global__ void port_calls(uint32_t *word, uint64_t *wide)
{
    RONDO_KERNELS::call_all(word, wide);
}
