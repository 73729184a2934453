// memory_test.cpp - device and host memory, copies, fills, and what an address is.
#include "hostcuda_test.h"

#include <cstring>
#include <vector>

TEST_F(HostCuda, MallocGivesAlignedMemoryOfTheCurrentDevice)
{
    for (size_t bytes : {size_t(1), size_t(255), size_t(4097), size_t(1) << 22}) {
        char *memory = nullptr;
        cudaPointerAttributes attributes;
        ASSERT_EQ(cudaSetDevice(2), cudaSuccess);
        ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
        EXPECT_EQ((uintptr_t)memory % 512, 0u);
        memory[0] = memory[bytes - 1] = 1;
        ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory + bytes - 1),
                  cudaSuccess); // an address inside
        EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
        EXPECT_EQ(attributes.device, 2);
        EXPECT_EQ(attributes.devicePointer, memory + bytes - 1);
        EXPECT_EQ(cudaFree(memory), cudaSuccess);
    }
}

TEST_F(HostCuda, MallocOfNothingGivesNull)
{
    void *memory = &memory;

    EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST_F(HostCuda, MallocBeyondCapacityFailsAndTheDeviceGoesOn)
{
    size_t free_bytes = 0, total = 0;
    void *memory = nullptr;

    ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, total + 1), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&memory, SIZE_MAX), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&memory, SIZE_MAX / 2), cudaErrorMemoryAllocation);
    EXPECT_EQ(memory, nullptr);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(HostCuda, FreeRefusesWhatIsNoAllocation)
{
    char *memory = nullptr, *pinned = nullptr;
    int local = 0;

    ASSERT_EQ(cudaMalloc(&memory, 1000), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&pinned, 1000), cudaSuccess);
    EXPECT_EQ(cudaFree(memory + 512), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(&local), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree((void *)0x10), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue); // twice
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
}

TEST_F(HostCuda, FreeWaitsForTheDevice)
{
    char *memory = nullptr;
    int host = 0;
    cudaStream_t stream;
    std::vector<char> large(8 << 20, 7), back(8 << 20);

    ASSERT_EQ(cudaMalloc(&memory, large.size()), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(
                  stream, [](void *argument) { *(int *)argument = 1; }, &host),
              cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(memory, large.data(), large.size(), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(back.data(), memory, large.size(), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    ASSERT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(host, 1);
    EXPECT_EQ(back, large);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, CopiesInEveryDirection)
{
    const size_t sizes[] = {1, 7, 4096, 65537, 3 << 20};
    const cudaMemcpyKind in[] = {cudaMemcpyHostToDevice, cudaMemcpyDefault};
    const cudaMemcpyKind out[] = {cudaMemcpyDeviceToHost, cudaMemcpyDefault};

    for (size_t bytes : sizes) {
        for (int i = 0; i < 2; i++) {
            std::vector<unsigned char> from(bytes), to(bytes, 0);
            for (size_t k = 0; k < bytes; k++)
                from[k] = (unsigned char)(k * 7 + bytes);
            char *a = nullptr, *b = nullptr;
            ASSERT_EQ(cudaMalloc(&a, bytes), cudaSuccess);
            ASSERT_EQ(cudaMalloc(&b, bytes), cudaSuccess);
            EXPECT_EQ(cudaMemcpy(a, from.data(), bytes, in[i]), cudaSuccess);
            EXPECT_EQ(cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice), cudaSuccess);
            EXPECT_EQ(cudaMemcpy(to.data(), b, bytes, out[i]), cudaSuccess);
            EXPECT_EQ(to, from) << bytes;
            EXPECT_EQ(cudaFree(a), cudaSuccess);
            EXPECT_EQ(cudaFree(b), cudaSuccess);
        }
    }
}

TEST_F(HostCuda, CopiesRefuseBadArguments)
{
    char *memory = nullptr, host[100] = {};

    ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory, host, 10, (cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
    EXPECT_EQ(cudaMemcpy(memory, host, 10, (cudaMemcpyKind)-1), cudaErrorInvalidMemcpyDirection);
    EXPECT_EQ(cudaMemcpy(nullptr, host, 10, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(memory, nullptr, 10, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(memory, host, 1 << 20, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue); // beyond its end
    EXPECT_EQ(cudaMemcpy(memory, host, SIZE_MAX, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaMemset(nullptr, 0, 1), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset(memory, 0, 1 << 20), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset(nullptr, 0, 0), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(memory, host, 10, cudaMemcpyDefault, (cudaStream_t)(void *)host),
              cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(HostCuda, MemsetTakesAByte)
{
    std::vector<unsigned char> back(5000, 0);
    unsigned char *memory = nullptr;

    ASSERT_EQ(cudaMalloc(&memory, back.size()), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory, 0x1ab, back.size()), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory + 1, 0, 1), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(back.data(), memory, back.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(back[0], 0xab);
    EXPECT_EQ(back[1], 0);
    EXPECT_EQ(back[4999], 0xab);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(HostCuda, RowsAreCopiedAndFilledByPitch)
{
    const size_t width = 13, height = 9;
    unsigned char *memory = nullptr, host[height * 20], back[height * width];
    size_t pitch = 0;

    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (unsigned char)i;
    ASSERT_EQ(cudaMallocPitch(&memory, &pitch, width, height), cudaSuccess);
    EXPECT_EQ(pitch % 512, 0u);
    EXPECT_EQ(cudaMemset2D(memory, pitch, 9, pitch, height), cudaSuccess);
    EXPECT_EQ(cudaMemcpy2D(memory, pitch, host, 20, width, height, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpy2D(back, width, memory, pitch, width, height, cudaMemcpyDefault), cudaSuccess);
    for (size_t row = 0; row < height; row++) {
        EXPECT_EQ(memcmp(back + row * width, host + row * 20, width), 0) << row;
        unsigned char beside = 0;
        EXPECT_EQ(cudaMemcpy(&beside, memory + row * pitch + width, 1, cudaMemcpyDefault), cudaSuccess);
        EXPECT_EQ(beside, 9);
    }
    EXPECT_EQ(cudaMemcpy2D(memory, 5, host, 20, width, height, cudaMemcpyDefault),
              cudaErrorInvalidPitchValue);
    EXPECT_EQ(cudaMemcpy2D(memory, pitch, host, 20, width, height + 1, cudaMemcpyDefault),
              cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset2D(memory, SIZE_MAX / 2, 0, 1, 4), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_NE(cudaMallocPitch(&memory, &pitch, SIZE_MAX - 5, 2), cudaSuccess);
    EXPECT_NE(cudaMallocPitch(&memory, &pitch, SIZE_MAX / 4, 16), cudaSuccess);
}

TEST_F(HostCuda, PeerCopiesReachTheOtherDevice)
{
    int *first = nullptr, *second = nullptr, value = 17, back = 0;

    ASSERT_EQ(cudaMalloc(&first, sizeof(int)), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&second, sizeof(int)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(first, &value, sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeer(second, 1, first, 0, sizeof(int)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&back, second, sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(back, 17);
    EXPECT_EQ(cudaMemset(second, 0, sizeof(int)), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeerAsync(second, 1, first, 0, sizeof(int), nullptr), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(*second, 17);
    EXPECT_EQ(cudaMemcpyPeer(second, 1, first, 99, sizeof(int)), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaFree(second), cudaSuccess);
    EXPECT_EQ(cudaFree(first), cudaSuccess);
}

TEST_F(HostCuda, PointersAreKnownByKind)
{
    cudaPointerAttributes attributes;
    char *pinned = nullptr, *managed = nullptr, plain[64];
    static char registered[8192];
    void *device_side = nullptr;
    unsigned flags = 0;

    ASSERT_EQ(cudaHostAlloc(&pinned, 100, cudaHostAllocMapped), cudaSuccess);
    ASSERT_EQ(cudaMallocManaged(&managed, 100), cudaSuccess);
    ASSERT_EQ(cudaHostRegister(registered, sizeof(registered), cudaHostRegisterDefault), cudaSuccess);

    EXPECT_EQ(cudaPointerGetAttributes(&attributes, pinned + 99), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    EXPECT_EQ(attributes.hostPointer, pinned + 99);
    EXPECT_EQ(attributes.devicePointer, pinned + 99);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, managed + 50), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
    EXPECT_EQ(attributes.device, 0);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, registered + 8191), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, plain), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(attributes.device, cudaInvalidDeviceId);
    EXPECT_EQ(attributes.hostPointer, plain);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, nullptr), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(cudaPointerGetAttributes(nullptr, plain), cudaErrorInvalidValue);

    EXPECT_EQ(cudaHostGetDevicePointer(&device_side, pinned, 0), cudaSuccess);
    EXPECT_EQ(device_side, pinned);
    EXPECT_EQ(cudaHostGetDevicePointer(&device_side, plain, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaHostGetFlags(&flags, pinned), cudaSuccess);
    EXPECT_EQ(flags, (unsigned)cudaHostAllocMapped);
    EXPECT_EQ(cudaHostUnregister(registered), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaFree(managed), cudaSuccess);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, registered), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(HostCuda, RegistrationIsKeptInOrder)
{
    static char memory[16384];

    EXPECT_EQ(cudaHostRegister(nullptr, 10, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaHostRegister(memory, 0, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaHostRegister(memory, 100, 0x100), cudaErrorInvalidValue);
    EXPECT_EQ(cudaHostRegister(memory, SIZE_MAX, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaHostRegister(memory + 4096, 4096, 0), cudaSuccess);
    EXPECT_EQ(cudaHostRegister(memory + 8191, 10, 0), cudaErrorHostMemoryAlreadyRegistered);
    EXPECT_EQ(cudaHostRegister(memory, 4097, 0), cudaErrorHostMemoryAlreadyRegistered);
    EXPECT_EQ(cudaHostRegister(memory, sizeof(memory), 0), cudaErrorHostMemoryAlreadyRegistered);
    EXPECT_EQ(cudaHostRegister(memory, 4096, 0), cudaSuccess); // beside it
    EXPECT_EQ(cudaHostUnregister(memory + 100), cudaErrorHostMemoryNotRegistered);
    EXPECT_EQ(cudaHostUnregister(memory), cudaSuccess);
    EXPECT_EQ(cudaHostUnregister(memory), cudaErrorHostMemoryNotRegistered);
    EXPECT_EQ(cudaHostUnregister(memory + 4096), cudaSuccess);
}

TEST_F(HostCuda, FreeAsyncWaitsItsTurn)
{
    cudaPointerAttributes attributes;
    cudaStream_t stream;
    char *memory = nullptr;
    Gate gate;

    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMallocAsync(&memory, 4096, stream), cudaSuccess);
    ASSERT_EQ(gate.hold(stream), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory, 1, 4096, stream), cudaSuccess);
    ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    gate.open();
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(cudaFreeAsync(memory, stream), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, ManagedMemoryIsForBothSides)
{
    int *managed = nullptr;

    EXPECT_EQ(cudaMallocManaged(&managed, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMallocManaged(&managed, 64, 77), cudaErrorInvalidValue);
    ASSERT_EQ(cudaMallocManaged(&managed, 64), cudaSuccess);
    EXPECT_EQ(cudaMemset(managed, 0xff, 64), cudaSuccess);
    EXPECT_EQ(managed[15], -1); // without a synchronize
    EXPECT_EQ(cudaFree(managed), cudaSuccess);
}
