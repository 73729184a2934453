/*
 * vector_types.h - CUDA's small vectors and dim3, for host compilers.
 *
 * Sizes and alignments are those that CUDA programs and kernels expect: a vector of 2 or 4 is aligned to its
 * size, up to 16 bytes.
 */
#ifndef RONDO_HOSTCUDA_VECTOR_TYPES_H
#define RONDO_HOSTCUDA_VECTOR_TYPES_H

#ifndef __host__
#define __host__
#define __device__
#define __global__
#define __shared__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#endif
#ifndef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#endif
#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif
#ifndef __builtin_align__
#define __builtin_align__(n) __attribute__((aligned(n)))
#endif

#define RONDO_VECTOR_TYPES_(name, base, align2, align4) \
    struct name##1                                      \
    {                                                   \
        base x;                                         \
    };                                                  \
    struct __attribute__((aligned(align2))) name##2     \
    {                                                   \
        base x, y;                                      \
    };                                                  \
    struct name##3                                      \
    {                                                   \
        base x, y, z;                                   \
    };                                                  \
    struct __attribute__((aligned(align4))) name##4     \
    {                                                   \
        base x, y, z, w;                                \
    };                                                  \
    typedef struct name##1 name##1;                     \
    typedef struct name##2 name##2;                     \
    typedef struct name##3 name##3;                     \
    typedef struct name##4 name##4

RONDO_VECTOR_TYPES_(char, signed char, 2, 4);
RONDO_VECTOR_TYPES_(uchar, unsigned char, 2, 4);
RONDO_VECTOR_TYPES_(short, short, 4, 8);
RONDO_VECTOR_TYPES_(ushort, unsigned short, 4, 8);
RONDO_VECTOR_TYPES_(int, int, 8, 16);
RONDO_VECTOR_TYPES_(uint, unsigned int, 8, 16);
RONDO_VECTOR_TYPES_(long, long, 16, 16);
RONDO_VECTOR_TYPES_(ulong, unsigned long, 16, 16);
RONDO_VECTOR_TYPES_(longlong, long long, 16, 16);
RONDO_VECTOR_TYPES_(ulonglong, unsigned long long, 16, 16);
RONDO_VECTOR_TYPES_(float, float, 8, 16);
RONDO_VECTOR_TYPES_(double, double, 16, 16);

#undef RONDO_VECTOR_TYPES_

/* The shape of a grid or a block; passed by value, so its 12 bytes are part of the ABI. */
struct dim3 {
    unsigned int x, y, z;
#ifdef __cplusplus
#if __cplusplus >= 201103L
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
#else
    dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz)
    {
    }
    dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
#endif
    operator uint3() const
    {
        uint3 v = {x, y, z};
        return v;
    }
#endif
};
typedef struct dim3 dim3;

#endif
