// emitted_test.cpp - the calls that the device compiler puts into programs, made by hand: registration and
// launches.
#include "hostcuda_test.h"

#include <thread>

struct CUstream_st;
extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, CUstream_st *);
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
}

static void Stub()
{
}

static void OtherStub()
{
}

static const char *const kStub = (const char *)(void *)Stub;

TEST_F(HostCuda, LaunchesFailAndNameTheKernelOnce)
{
    char name[] = "_Z4taskPfi";
    int module = 0;
    void **handle = __cudaRegisterFatBinary(&module);
    __cudaRegisterFunction(handle, kStub, name, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFatBinaryEnd(handle);

    testing::internal::CaptureStderr();
    EXPECT_EQ(cudaLaunchKernel(kStub, dim3(1), dim3(32), nullptr, 0, nullptr),
              cudaErrorNoKernelImageForDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
    cudaLaunchConfig_t config = {};
    EXPECT_EQ(cudaLaunchKernelExC(&config, kStub, nullptr), cudaErrorNoKernelImageForDevice);
    cudaKernel_t kernel = nullptr;
    EXPECT_EQ(__cudaGetKernel(&kernel, kStub), cudaSuccess);
    EXPECT_EQ(__cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr),
              cudaErrorNoKernelImageForDevice);
    std::string text = testing::internal::GetCapturedStderr();
    size_t first = text.find("kernel _Z4taskPfi was not run");
    ASSERT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find("_Z4taskPfi was not run", first + 10), std::string::npos) << text;

    cudaFuncAttributes attributes;
    EXPECT_EQ(cudaFuncGetAttributes(&attributes, kStub), cudaErrorNoKernelImageForDevice);
    EXPECT_EQ(cudaLaunchKernel((const void *)OtherStub, dim3(1), dim3(1), nullptr, 0, nullptr),
              cudaErrorInvalidDeviceFunction);
    __cudaUnregisterFatBinary(handle);
    EXPECT_EQ(cudaLaunchKernel(kStub, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
    EXPECT_EQ(cudaLaunchKernelExC(nullptr, kStub, nullptr), cudaErrorInvalidValue);
}

TEST_F(HostCuda, CallConfigurationsNestPerThread)
{
    dim3 grid, block;
    size_t bytes = 0;
    CUstream_st *stream = nullptr;

    ASSERT_EQ(__cudaPushCallConfiguration(dim3(1, 2, 3), dim3(4, 5, 6), 7, cudaStreamPerThread), 0u);
    ASSERT_EQ(__cudaPushCallConfiguration(dim3(9), dim3(8), 0, nullptr), 0u);
    std::thread([] {
        dim3 g, b;
        size_t s;
        void *t;
        EXPECT_EQ(__cudaPopCallConfiguration(&g, &b, &s, &t), cudaErrorMissingConfiguration);
    }).join();
    EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &bytes, &stream), cudaSuccess);
    EXPECT_EQ(grid.x, 9u);
    EXPECT_EQ(grid.y, 1u);
    EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &bytes, &stream), cudaSuccess);
    EXPECT_EQ(grid.z, 3u);
    EXPECT_EQ(block.x, 4u);
    EXPECT_EQ(block.z, 6u);
    EXPECT_EQ(bytes, 7u);
    EXPECT_EQ(stream, cudaStreamPerThread);
    EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &bytes, &stream), cudaErrorMissingConfiguration);
    int pushed = 0;
    while (pushed < 1000 && __cudaPushCallConfiguration(dim3(1), dim3(1), 0, nullptr) == 0)
        pushed++;
    EXPECT_LT(pushed, 1000); // refused, not overrun
    while (pushed-- > 0)
        EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &bytes, &stream), cudaSuccess);
}

TEST_F(HostCuda, ManagedVariablesHaveMemory)
{
    int module = 0;
    void **handle = __cudaRegisterFatBinary(&module);
    int *variable = nullptr;
    char name[] = "variable";

    __cudaRegisterManagedVar(handle, (void **)&variable, name, name, 0, 3 * sizeof(int), 0, 0);
    ASSERT_NE(variable, nullptr);
    EXPECT_EQ(variable[2], 0);
    variable[2] = 5;
    __cudaUnregisterFatBinary(handle);
    free(variable);
}
