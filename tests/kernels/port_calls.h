// port_calls.h - the port's accesses with scopes that today's kernels leave out, so that each port compiles
// them. Nobody runs this.
#ifndef RONDO_TESTS_KERNELS_PORT_CALLS_H
#define RONDO_TESTS_KERNELS_PORT_CALLS_H

#include "kernels/port.h"

namespace RONDO_KERNELS
{

template <scope S> RONDO_INLINE void call_ordered(uint32_t *word, uint64_t *wide)
{
    store_relaxed<S>(word, load_relaxed<S>(word) + 1);
    store_relaxed<S>(wide, load_relaxed<S>(wide) + 1);
    fence<S>();
}

RONDO_INLINE void call_all(uint32_t *word, uint64_t *wide)
{
    call_ordered<scope::BLOCK>(word, wide);
    call_ordered<scope::DEVICE>(word, wide);
    call_ordered<scope::SYSTEM>(word, wide);
}

} // namespace RONDO_KERNELS

#endif
