/*
 * cuda_fp16.h - the half types as storage: programs move and size them; arithmetic is the device compiler's.
 */
#ifndef RONDO_HOSTCUDA_CUDA_FP16_H
#define RONDO_HOSTCUDA_CUDA_FP16_H

struct __attribute__((aligned(2))) __half {
    unsigned short x; /* IEEE binary16 */
};
struct __attribute__((aligned(4))) __half2 {
    struct __half x, y;
};
typedef struct __half __half;
typedef struct __half2 __half2;
typedef __half half;
typedef __half2 half2;
typedef struct __half __half_raw;

#endif
