// devices_test.cpp - devices, the current one of each thread, errors, properties, peers.
#include "hostcuda_test.h"

#include <cstring>
#include <set>
#include <thread>

TEST_F(HostCuda, CurrentDeviceBelongsToTheThread)
{
    int device = -1;

    ASSERT_EQ(cudaSetDevice(3), cudaSuccess);
    std::thread([] {
        int other = -1;
        EXPECT_EQ(cudaGetDevice(&other), cudaSuccess);
        EXPECT_EQ(other, 0);
        EXPECT_EQ(cudaSetDevice(5), cudaSuccess);
    }).join();
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 3);
}

TEST_F(HostCuda, SetDeviceOutOfRangeChangesNothing)
{
    int count = 0, device = -1;

    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaSetDevice(1 << 30), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST_F(HostCuda, LastErrorStaysUntilReadAndBelongsToTheThread)
{
    int device = 0;

    EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess); // a success does not clear it
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    std::thread([] { EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess); }).join();
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(HostCuda, TheLatestErrorIsKept)
{
    EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaMalloc((void **)nullptr, 16), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_F(HostCuda, ErrorsHaveNamesAndTexts)
{
    EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorNoKernelImageForDevice), "cudaErrorNoKernelImageForDevice");
    EXPECT_STREQ(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
    EXPECT_STREQ(cudaGetErrorString((cudaError_t)-1), "unrecognized error code");
    EXPECT_GT(strlen(cudaGetErrorString(cudaErrorMemoryAllocation)), 10u);
}

TEST_F(HostCuda, VersionsAreOfThisLibrary)
{
    int runtime = 0, driver = 0;

    EXPECT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
    EXPECT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
    EXPECT_EQ(runtime, CUDART_VERSION);
    EXPECT_GE(driver, runtime);
    EXPECT_EQ(cudaRuntimeGetVersion(nullptr), cudaErrorInvalidValue);
}

TEST_F(HostCuda, DevicesAreDistinct)
{
    std::set<std::string> buses, uuids;
    int count = 0;

    ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
    for (int device = 0; device < count; device++) {
        cudaDeviceProp properties;
        char bus[32];
        int found = -1;
        memset(&properties, 0x5a, sizeof(properties));
        ASSERT_EQ(cudaGetDeviceProperties(&properties, device), cudaSuccess);
        ASSERT_EQ(cudaDeviceGetPCIBusId(bus, sizeof(bus), device), cudaSuccess);
        buses.insert(bus);
        uuids.insert(std::string(properties.uuid.bytes, 16));
        unsigned domain, number, slot;
        ASSERT_EQ(sscanf(bus, "%x:%x:%x", &domain, &number, &slot), 3) << bus;
        EXPECT_EQ((int)domain, properties.pciDomainID);
        EXPECT_EQ((int)number, properties.pciBusID);
        EXPECT_EQ((int)slot, properties.pciDeviceID);
        EXPECT_EQ(cudaDeviceGetByPCIBusId(&found, bus), cudaSuccess);
        EXPECT_EQ(found, device);
    }
    EXPECT_EQ((int)buses.size(), count);
    EXPECT_EQ((int)uuids.size(), count);
}

TEST_F(HostCuda, PropertiesDescribeTheDevice)
{
    cudaDeviceProp properties;
    size_t free_bytes = 0, total = 0;
    int value = 0;

    memset(&properties, 0x5a, sizeof(properties));
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
    EXPECT_NE(properties.name[0], '\0');
    EXPECT_NE(memchr(properties.name, 0, sizeof(properties.name)), nullptr);
    EXPECT_GE(properties.major, 7);
    EXPECT_EQ(properties.warpSize, 32);
    EXPECT_EQ(properties.maxThreadsPerBlock, 1024);
    EXPECT_EQ(properties.unifiedAddressing, 1);
    EXPECT_EQ(properties.canMapHostMemory, 1);
    EXPECT_EQ(properties.concurrentKernels, 1);
    EXPECT_EQ(properties.cooperativeLaunch, 1);
    EXPECT_GT(properties.multiProcessorCount, 0);
    EXPECT_EQ(properties.maxTexture1D, 0);
    ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    EXPECT_EQ(total, properties.totalGlobalMem);
    EXPECT_LE(free_bytes, total);
    EXPECT_GT(free_bytes, 0u);
    EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1), cudaSuccess);
    EXPECT_EQ(value, properties.major);
    EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxBlockDimZ, 1), cudaSuccess);
    EXPECT_EQ(value, properties.maxThreadsDim[2]);
}

TEST_F(HostCuda, DeviceQuestionsRefuseBadArguments)
{
    cudaDeviceProp properties;
    int value = 0;
    char bus[4];

    EXPECT_EQ(cudaGetDeviceProperties(nullptr, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetDeviceProperties(&properties, 4711), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -1), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)100000, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceGetByPCIBusId(&value, "nonsense"), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceGetByPCIBusId(&value, "7fff:7f:1f.0"), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetDevice(nullptr), cudaErrorInvalidValue);
}

TEST_F(HostCuda, EveryPairOfDevicesArePeers)
{
    int can = -1;

    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
    EXPECT_EQ(can, 1);
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 2, 2), cudaSuccess);
    EXPECT_EQ(can, 0);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(99, 0), cudaErrorInvalidDevice);
}

TEST_F(HostCuda, ResetFreesWhatTheDeviceHad)
{
    size_t before = 0, after = 0, total = 0;
    void *memory = nullptr;
    cudaEvent_t event;
    cudaStream_t stream;

    ASSERT_EQ(cudaSetDevice(6), cudaSuccess);
    ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 1 << 20), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
    ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
    EXPECT_EQ(after, before);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
}
