/*
 * header_c99.c - compiling is the test: strict C99 without extensions, all headers, and the sizes that are
 * ABI.
 */
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <nccl.h>

#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]

HOLDS(device_prop_of_cuda_12, sizeof(struct cudaDeviceProp) == 1032);
HOLDS(device_prop_of_cuda_11_is_a_prefix, offsetof(struct cudaDeviceProp, hostRegisterSupported) == 728);
HOLDS(pointer_attributes, sizeof(struct cudaPointerAttributes) == 24);
HOLDS(dim3_is_three_words, sizeof(dim3) == 12);
HOLDS(vector_of_four, sizeof(float4) == 16);
HOLDS(half_precision, sizeof(__half) == 2 && sizeof(__nv_bfloat16) == 2);
HOLDS(eight_bits, sizeof(struct __nv_fp8_e4m3) == 1 && sizeof(struct __nv_fp8_e5m2) == 1);
HOLDS(version, CUDART_VERSION == 12080 && CUDA_VERSION == 12080);

__global__ static void kernel(__half *data);
static void kernel(__half *data)
{
    data->x = 0;
}

int hostcuda_header_c99(cudaStream_t stream);
int hostcuda_header_c99(cudaStream_t stream)
{
    __half value;
    struct cudaDeviceProp properties;
    int count = 0;

    kernel(&value);
    return cudaGetDeviceCount(&count) == cudaSuccess &&
           cudaGetDeviceProperties(&properties, 0) == cudaSuccess &&
           cudaStreamSynchronize(stream) == cudaSuccess && properties.name[0] == (char)value.x;
}
