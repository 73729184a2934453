// per_thread_test.cpp - built so that the default stream is the thread's own: the same names, other
// functions.
#include "hostcuda_test.h"

#include <thread>

TEST(HostCudaPerThread, NullMeansTheThreadsOwnStream)
{
    int *memory = nullptr, back = 0;
    Gate gate;

    ASSERT_EQ(cudaMalloc(&memory, sizeof(int)), cudaSuccess);
    ASSERT_EQ(gate.hold(nullptr), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
    EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
    EXPECT_EQ(cudaStreamQuery(cudaStreamLegacy), cudaSuccess);
    std::thread([memory] {
        int value = 3;
        EXPECT_EQ(cudaMemcpy(memory, &value, sizeof(value), cudaMemcpyHostToDevice), cudaSuccess); // not held
        EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
    }).join();
    gate.open();
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&back, memory, sizeof(back), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(back, 3);
    EXPECT_EQ(cudaMemset(memory, 1, sizeof(int)), cudaSuccess);
    EXPECT_EQ(*memory, 0x01010101);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST(HostCudaPerThread, DriverFunctionsAreFoundByName)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult status = cudaDriverEntryPointVersionNotSufficent;

    EXPECT_EQ(cudaGetDriverEntryPoint("cuDriverGetVersion", &function, cudaEnableDefault, &status),
              cudaSuccess);
    EXPECT_EQ(status, cudaDriverEntryPointSuccess);
    EXPECT_NE(function, nullptr);
    EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12080, 0, &status), cudaSuccess);
    EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
    EXPECT_EQ(function, nullptr);
    EXPECT_EQ(cudaGetDriverEntryPoint("cuMemCreate", &function, 0), cudaErrorSymbolNotFound);
    EXPECT_EQ(cudaGetDriverEntryPoint(nullptr, &function, 0), cudaErrorInvalidValue);
}
