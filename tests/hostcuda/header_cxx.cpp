// header_cxx.cpp - compiling is the test: C++11 without extensions, all headers, and every typed overload.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <nccl.h>

__global__ static void kernel(float *data)
{
    *data = 0;
}

int hostcuda_header_cxx(cudaStream_t stream);
int hostcuda_header_cxx(cudaStream_t stream)
{
    float *data = nullptr;
    half *halves = nullptr;
    size_t pitch = 0;
    cudaEvent_t event;
    cudaGraphExec_t exec;
    cudaFuncAttributes attributes;
    dim3 grid(3), block = 4;
    void *arguments[] = {&data};
    int failures = 0;

    failures += cudaMalloc(&data, 4) != cudaSuccess;
    failures += cudaMallocAsync(&data, 4, stream) != cudaSuccess;
    failures += cudaMallocManaged(&data, 4) != cudaSuccess;
    failures += cudaMallocPitch(&halves, &pitch, 4, 4) != cudaSuccess;
    failures += cudaHostAlloc(&data, 4, cudaHostAllocMapped) != cudaSuccess;
    failures += cudaMallocHost(&data, 4) != cudaSuccess;
    failures += cudaMallocHost(&data, 4, cudaHostAllocPortable) != cudaSuccess;
    failures += cudaHostGetDevicePointer(&halves, data, 0) != cudaSuccess;
    failures += cudaMemsetAsync(data, 0, 4) != cudaSuccess;
    failures += cudaMemcpyAsync(data, data, 4, cudaMemcpyDefault) != cudaSuccess;
    failures += cudaEventCreate(&event, cudaEventDisableTiming) != cudaSuccess;
    failures += cudaEventRecord(event) != cudaSuccess;
    failures += cudaStreamWaitEvent(stream, event) != cudaSuccess;
    failures += cudaGraphInstantiate(&exec, nullptr, nullptr, nullptr, 0) != cudaSuccess;
    failures += cudaGraphInstantiate(&exec, nullptr, 0) != cudaSuccess;
    failures += cudaLaunchKernel(kernel, grid, block, arguments) != cudaSuccess;
    failures += cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess;
    failures += cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1) != cudaSuccess;
    return failures;
}
