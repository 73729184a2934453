/*
 * cuda_fp8.h - the two 8-bit floating types as storage: programs move and size them; arithmetic is the device
 * compiler's.
 */
#ifndef RONDO_HOSTCUDA_CUDA_FP8_H
#define RONDO_HOSTCUDA_CUDA_FP8_H

typedef unsigned char __nv_fp8_storage_t;

struct __nv_fp8_e4m3 {
    __nv_fp8_storage_t __x; /* 4 bits of exponent, 3 of mantissa */
};
struct __nv_fp8_e5m2 {
    __nv_fp8_storage_t __x; /* 5 bits of exponent, 2 of mantissa */
};
typedef struct __nv_fp8_e4m3 __nv_fp8_e4m3;
typedef struct __nv_fp8_e5m2 __nv_fp8_e5m2;

#endif
