/*
 * cuda_bf16.h - the bfloat16 types as storage: programs move and size them; arithmetic is the device
 * compiler's.
 */
#ifndef RONDO_HOSTCUDA_CUDA_BF16_H
#define RONDO_HOSTCUDA_CUDA_BF16_H

struct __attribute__((aligned(2))) __nv_bfloat16 {
    unsigned short x; /* the upper half of an IEEE binary32 */
};
struct __attribute__((aligned(4))) __nv_bfloat162 {
    struct __nv_bfloat16 x, y;
};
typedef struct __nv_bfloat16 __nv_bfloat16;
typedef struct __nv_bfloat162 __nv_bfloat162;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
typedef struct __nv_bfloat16 __nv_bfloat16_raw;

#endif
