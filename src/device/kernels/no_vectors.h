/*
 * no_vectors.h - for ports whose lanes take elements and packs of them: there are no vectors. The names stand
 * in code that such a port never instantiates.
 */
#ifndef RONDO_KERNELS_NO_VECTORS_H
#define RONDO_KERNELS_NO_VECTORS_H

namespace RONDO_KERNELS
{

constexpr unsigned VECTOR_LANES = 0;
constexpr bool CONVERTS_HALVES = false;

template <class T> using vector_of = T;

RONDO_INLINE void stay_scalar()
{
}

} // namespace RONDO_KERNELS

#endif
