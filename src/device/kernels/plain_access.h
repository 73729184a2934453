/*
 * plain_access.h - plain loads and stores for ports on which they are just that. See port.h for the contract.
 */
#ifndef RONDO_KERNELS_PLAIN_ACCESS_H
#define RONDO_KERNELS_PLAIN_ACCESS_H

namespace RONDO_KERNELS
{

template <class T> RONDO_INLINE T load_plain(const T *object)
{
    return *object;
}

template <class T> RONDO_INLINE void store_plain(T *object, T value)
{
    *object = value;
}

template <class P> RONDO_INLINE P load_bytes(const void *at)
{
    P value;

    __builtin_memcpy(&value, at, sizeof(value));
    return value;
}

template <class P> RONDO_INLINE void store_bytes(void *at, const P &value)
{
    __builtin_memcpy(at, &value, sizeof(value));
}

} // namespace RONDO_KERNELS

#endif
