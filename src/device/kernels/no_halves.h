/*
 * no_halves.h - for ports of machines that do not convert between f16 and float: numeric.cuh does it.
 */
#ifndef RONDO_KERNELS_NO_HALVES_H
#define RONDO_KERNELS_NO_HALVES_H

namespace RONDO_KERNELS
{

constexpr unsigned HALF_LANES = 0;

RONDO_INLINE void widen_halves(float *, const uint16_t *)
{
}

RONDO_INLINE void narrow_halves(uint16_t *, const float *)
{
}

} // namespace RONDO_KERNELS

#endif
