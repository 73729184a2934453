// streams_test.cpp - order within streams and between them, events, host functions.
#include "hostcuda_test.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

static void SetFlag(void *argument)
{
    static_cast<std::atomic<int> *>(argument)->store(1);
}

TEST_F(HostCuda, StreamsRunInOrder)
{
    cudaStream_t stream;
    std::vector<int> seen;

    struct Step {
        std::vector<int> *seen;
        int value;
    } steps[100];
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    for (int i = 0; i < 100; i++) {
        steps[i] = {&seen, i};
        ASSERT_EQ(cudaLaunchHostFunc(
                      stream, [](void *p) { ((Step *)p)->seen->push_back(((Step *)p)->value); }, &steps[i]),
                  cudaSuccess);
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(seen.size(), 100u);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(seen[(size_t)i], i);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, QuerySaysNotReadyAndRemembersIt)
{
    cudaStream_t stream;
    Gate gate;

    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
    ASSERT_EQ(gate.hold(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    gate.open();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, HostFunctionsRunThoughNobodyWaits)
{
    std::atomic<int> flag{0};
    cudaStream_t stream;

    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(stream, SetFlag, &flag), cudaSuccess);
    for (int i = 0; i < 10000 && !flag; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, HostFunctionsMayNotCallTheRuntime)
{
    struct Answers {
        cudaError_t allocate, synchronize;
        void *memory = nullptr;
    } answers;

    ASSERT_EQ(cudaLaunchHostFunc(
                  nullptr,
                  [](void *p) {
                      auto *a = (Answers *)p;
                      a->allocate = cudaMalloc(&a->memory, 16);
                      a->synchronize = cudaStreamSynchronize(nullptr);
                  },
                  &answers),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(answers.allocate, cudaErrorNotPermitted);
    EXPECT_EQ(answers.synchronize, cudaErrorNotPermitted);
    EXPECT_EQ(answers.memory, nullptr);
    EXPECT_EQ(cudaLaunchHostFunc(nullptr, nullptr, nullptr), cudaErrorInvalidValue);
}

TEST_F(HostCuda, CallbacksGetTheirStreamAndSuccess)
{
    struct Seen {
        cudaStream_t stream = nullptr;
        cudaError_t status = cudaErrorUnknown;
    } seen;
    cudaStream_t stream;

    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaStreamAddCallback(
                  stream,
                  [](cudaStream_t s, cudaError_t status, void *p) {
                      ((Seen *)p)->stream = s;
                      ((Seen *)p)->status = status;
                  },
                  &seen, 0),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(seen.stream, stream);
    EXPECT_EQ(seen.status, cudaSuccess);
    EXPECT_EQ(cudaStreamAddCallback(stream, nullptr, nullptr, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, LegacyStreamWaitsForBlockingStreams)
{
    for (cudaStream_t legacy : {(cudaStream_t) nullptr, cudaStreamLegacy}) {
        cudaStream_t blocking, independent;
        int *memory = nullptr;
        Gate gate;
        ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
        ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
        ASSERT_EQ(cudaStreamCreateWithFlags(&independent, cudaStreamNonBlocking), cudaSuccess);
        ASSERT_EQ(gate.hold(blocking), cudaSuccess);
        ASSERT_EQ(cudaMemsetAsync(memory, 1, 64, legacy), cudaSuccess);
        EXPECT_EQ(cudaStreamQuery(legacy), cudaErrorNotReady);
        ASSERT_EQ(cudaMemsetAsync(memory, 2, 32, independent), cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(independent), cudaSuccess); // not held
        gate.open();
        EXPECT_EQ(cudaStreamSynchronize(legacy), cudaSuccess);
        EXPECT_EQ(memory[0], 0x01010101);
        EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(independent), cudaSuccess);
        EXPECT_EQ(cudaFree(memory), cudaSuccess);
    }
}

TEST_F(HostCuda, BlockingStreamsWaitForTheLegacyStream)
{
    cudaStream_t blocking, independent;
    int *memory = nullptr;
    Gate gate;

    ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&independent, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(gate.hold(nullptr), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory, 1, 32, blocking), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory + 8, 2, 32, independent), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory, 3, 32, cudaStreamPerThread), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(blocking), cudaErrorNotReady);
    EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
    EXPECT_EQ(cudaStreamSynchronize(independent), cudaSuccess);
    gate.open();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(blocking), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(independent), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(HostCuda, PerThreadStreamsBelongToTheirThreads)
{
    Gate gate;

    ASSERT_EQ(gate.hold(cudaStreamPerThread), cudaSuccess);
    std::thread([] { EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaSuccess); }).join();
    EXPECT_EQ(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
    gate.open();
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
}

TEST_F(HostCuda, StreamsOfOneDeviceDoNotHoldAnother)
{
    int *memory = nullptr;
    Gate gate;

    ASSERT_EQ(gate.hold(nullptr), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory, 0, 64), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    gate.open();
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(HostCuda, DestroyedStreamsFinishTheirWork)
{
    std::atomic<int> flag{0};
    cudaStream_t stream;
    Gate gate;

    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(gate.hold(stream), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(stream, SetFlag, &flag), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess); // at once
    EXPECT_EQ(flag, 0);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
    gate.open();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(flag, 1);
}

TEST_F(HostCuda, StreamsTellHowTheyWereMade)
{
    cudaStream_t stream;
    int priority = 1, least = -1, greatest = 1, device = -1;
    unsigned flags = 7;

    ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
    EXPECT_LT(greatest, least);
    ASSERT_EQ(cudaSetDevice(4), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
    EXPECT_EQ(priority, greatest); // cut to the range
    EXPECT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
    EXPECT_EQ(flags, (unsigned)cudaStreamNonBlocking);
    EXPECT_EQ(cudaStreamGetDevice(stream, &device), cudaSuccess);
    EXPECT_EQ(device, 4);
    EXPECT_EQ(cudaStreamGetFlags(nullptr, &flags), cudaSuccess);
    EXPECT_EQ(flags, (unsigned)cudaStreamDefault);
    EXPECT_EQ(cudaStreamGetFlags(stream, nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, StreamsRefuseBadHandlesAndFlags)
{
    cudaStream_t stream;
    int local = 0;

    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 2), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamSynchronize((cudaStream_t)(void *)&local), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamQuery((cudaStream_t)0x1234567), cudaErrorInvalidResourceHandle);
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
}

TEST_F(HostCuda, ThousandsOfStreamsOwnNoThreads)
{
    std::vector<cudaStream_t> streams(2000);
    auto count_threads = [] {
        int count = 0;
        if (FILE *file = fopen("/proc/self/stat", "r")) {
            if (fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %d",
                       &count) != 1)
                count = -1;
            fclose(file);
        }
        return count;
    };

    int before = count_threads();
    for (auto &stream : streams)
        ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (auto &stream : streams)
        ASSERT_EQ(cudaStreamQuery(stream), cudaSuccess);
    EXPECT_LE(count_threads(), before + 1);
    for (auto &stream : streams)
        ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, EventsSnapshotTheirStream)
{
    cudaStream_t stream;
    cudaEvent_t event;
    Gate first, second;

    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess); // never recorded
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
    ASSERT_EQ(first.hold(stream), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    ASSERT_EQ(second.hold(stream), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
    first.open();
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess); // what came later does not count
    EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess); // replaces
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
    second.open();
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(HostCuda, StreamsWaitForEventsOfOthers)
{
    cudaStream_t first, second;
    cudaEvent_t event, never;
    int *memory = nullptr;
    Gate gate;

    ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&never, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(second, never, 0), cudaSuccess); // never recorded: nothing to wait for
    EXPECT_EQ(cudaStreamQuery(second), cudaSuccess);
    ASSERT_EQ(gate.hold(first), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(memory, 1, 4, second), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
    ASSERT_EQ(cudaEventDestroy(event), cudaSuccess); // the wait stays
    EXPECT_EQ(cudaStreamQuery(second), cudaErrorNotReady);
    gate.open();
    EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);
    EXPECT_EQ(*memory, 0x01010101);
    EXPECT_EQ(cudaStreamWaitEvent(second, never, 9), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventDestroy(never), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(HostCuda, ElapsedTimeNeedsTwoDoneRecordsWithTiming)
{
    cudaEvent_t start, end, untimed;
    float ms = -1;

    ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
    ASSERT_EQ(cudaEventCreate(&end, cudaEventDefault), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle); // not recorded
    ASSERT_EQ(cudaEventRecord(start), cudaSuccess);
    ASSERT_EQ(cudaEventSynchronize(start), cudaSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    {
        Gate gate;
        ASSERT_EQ(gate.hold(nullptr), cudaSuccess);
        ASSERT_EQ(cudaEventRecord(end), cudaSuccess);
        EXPECT_EQ(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
        gate.open();
    }
    ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
    ASSERT_EQ(cudaEventElapsedTime(&ms, start, end), cudaSuccess);
    EXPECT_GE(ms, 5.0f);
    ASSERT_EQ(cudaEventElapsedTime(&ms, end, start), cudaSuccess);
    EXPECT_LE(ms, -5.0f);
    ASSERT_EQ(cudaEventRecord(untimed), cudaSuccess);
    ASSERT_EQ(cudaEventSynchronize(untimed), cudaSuccess);
    EXPECT_EQ(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventElapsedTime(nullptr, start, end), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(untimed), cudaSuccess);
}

TEST_F(HostCuda, EventsRefuseBadHandlesFlagsAndForeignDevices)
{
    cudaEvent_t event;
    cudaStream_t other;

    EXPECT_EQ(cudaEventCreateWithFlags(&event, 0x100), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventCreate(nullptr), cudaErrorInvalidValue);
    EXPECT_EQ(cudaEventDestroy(nullptr), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord((cudaEvent_t)(void *)&other, nullptr), cudaErrorInvalidResourceHandle);
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, other), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle); // device 1's default stream
    EXPECT_EQ(cudaStreamWaitEvent(other, event, 0), cudaSuccess); // waiting across devices is fine
    EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
}

TEST_F(HostCuda, ManyEventsComeAndGo)
{
    std::vector<cudaEvent_t> events(5000);

    for (auto &event : events)
        ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    for (size_t i = 0; i < events.size(); i += 2)
        ASSERT_EQ(cudaEventDestroy(events[i]), cudaSuccess);
    for (size_t i = 0; i < events.size(); i++)
        ASSERT_EQ(cudaEventQuery(events[i]), i % 2 ? cudaSuccess : cudaErrorInvalidResourceHandle) << i;
    for (size_t i = 1; i < events.size(); i += 2)
        ASSERT_EQ(cudaEventDestroy(events[i]), cudaSuccess);
}

TEST_F(HostCuda, NothingIsBeingCaptured)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    unsigned long long id = 77;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;

    EXPECT_EQ(cudaStreamIsCapturing(nullptr, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    status = cudaStreamCaptureStatusActive;
    EXPECT_EQ(cudaStreamGetCaptureInfo(cudaStreamPerThread, &status, &id), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    EXPECT_EQ(cudaStreamIsCapturing((cudaStream_t)0x123456, &status), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
    EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorNotSupported);
    EXPECT_EQ(cudaStreamEndCapture(nullptr, &graph), cudaErrorNotSupported);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0), cudaErrorNotSupported);
    EXPECT_EQ(cudaGraphLaunch(exec, nullptr), cudaErrorNotSupported);
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaErrorNotSupported);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaErrorNotSupported);
    EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}
