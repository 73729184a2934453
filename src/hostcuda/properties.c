/*
 * properties.c - cudaDeviceProp, filled from the attributes of the device: the struct is the attributes under
 * names.
 */
#include "runtime.h"

#include <stdio.h>
#include <string.h>

struct field {
    size_t offset;
    bool is_size; /* size_t; else int */
    int attribute;
};

#define INT_FIELD(member, id)                                           \
    {                                                                   \
        offsetof(struct cudaDeviceProp, member), false, cudaDevAttr##id \
    }
#define SIZE_FIELD(member, id)                                         \
    {                                                                  \
        offsetof(struct cudaDeviceProp, member), true, cudaDevAttr##id \
    }

/* Texture and surface limits are 0, as the device has neither, and are not listed. */
static const struct field fields[] = {
    SIZE_FIELD(sharedMemPerBlock, MaxSharedMemoryPerBlock),
    INT_FIELD(regsPerBlock, MaxRegistersPerBlock),
    INT_FIELD(warpSize, WarpSize),
    SIZE_FIELD(memPitch, MaxPitch),
    INT_FIELD(maxThreadsPerBlock, MaxThreadsPerBlock),
    INT_FIELD(maxThreadsDim[0], MaxBlockDimX),
    INT_FIELD(maxThreadsDim[1], MaxBlockDimY),
    INT_FIELD(maxThreadsDim[2], MaxBlockDimZ),
    INT_FIELD(maxGridSize[0], MaxGridDimX),
    INT_FIELD(maxGridSize[1], MaxGridDimY),
    INT_FIELD(maxGridSize[2], MaxGridDimZ),
    SIZE_FIELD(totalConstMem, TotalConstantMemory),
    SIZE_FIELD(textureAlignment, TextureAlignment),
    SIZE_FIELD(texturePitchAlignment, TexturePitchAlignment),
    INT_FIELD(multiProcessorCount, MultiProcessorCount),
    INT_FIELD(integrated, Integrated),
    INT_FIELD(canMapHostMemory, CanMapHostMemory),
    SIZE_FIELD(surfaceAlignment, SurfaceAlignment),
    INT_FIELD(concurrentKernels, ConcurrentKernels),
    INT_FIELD(ECCEnabled, EccEnabled),
    INT_FIELD(pciBusID, PciBusId),
    INT_FIELD(pciDeviceID, PciDeviceId),
    INT_FIELD(pciDomainID, PciDomainId),
    INT_FIELD(tccDriver, TccDriver),
    INT_FIELD(asyncEngineCount, AsyncEngineCount),
    INT_FIELD(unifiedAddressing, UnifiedAddressing),
    INT_FIELD(memoryBusWidth, GlobalMemoryBusWidth),
    INT_FIELD(l2CacheSize, L2CacheSize),
    INT_FIELD(persistingL2CacheMaxSize, MaxPersistingL2CacheSize),
    INT_FIELD(maxThreadsPerMultiProcessor, MaxThreadsPerMultiProcessor),
    INT_FIELD(streamPrioritiesSupported, StreamPrioritiesSupported),
    INT_FIELD(globalL1CacheSupported, GlobalL1CacheSupported),
    INT_FIELD(localL1CacheSupported, LocalL1CacheSupported),
    SIZE_FIELD(sharedMemPerMultiprocessor, MaxSharedMemoryPerMultiprocessor),
    INT_FIELD(regsPerMultiprocessor, MaxRegistersPerMultiprocessor),
    INT_FIELD(managedMemory, ManagedMemory),
    INT_FIELD(isMultiGpuBoard, IsMultiGpuBoard),
    INT_FIELD(multiGpuBoardGroupID, MultiGpuBoardGroupID),
    INT_FIELD(hostNativeAtomicSupported, HostNativeAtomicSupported),
    INT_FIELD(pageableMemoryAccess, PageableMemoryAccess),
    INT_FIELD(concurrentManagedAccess, ConcurrentManagedAccess),
    INT_FIELD(computePreemptionSupported, ComputePreemptionSupported),
    INT_FIELD(canUseHostPointerForRegisteredMem, CanUseHostPointerForRegisteredMem),
    INT_FIELD(cooperativeLaunch, CooperativeLaunch),
    SIZE_FIELD(sharedMemPerBlockOptin, MaxSharedMemoryPerBlockOptin),
    INT_FIELD(pageableMemoryAccessUsesHostPageTables, PageableMemoryAccessUsesHostPageTables),
    INT_FIELD(directManagedMemAccessFromHost, DirectManagedMemAccessFromHost),
    INT_FIELD(maxBlocksPerMultiProcessor, MaxBlocksPerMultiprocessor),
    INT_FIELD(accessPolicyMaxWindowSize, MaxAccessPolicyWindowSize),
    SIZE_FIELD(reservedSharedMemPerBlock, ReservedSharedMemoryPerBlock),
    INT_FIELD(hostRegisterSupported, HostRegisterSupported),
    INT_FIELD(sparseCudaArraySupported, SparseCudaArraySupported),
    INT_FIELD(hostRegisterReadOnlySupported, HostRegisterReadOnlySupported),
    INT_FIELD(timelineSemaphoreInteropSupported, TimelineSemaphoreInteropSupported),
    INT_FIELD(memoryPoolsSupported, MemoryPoolsSupported),
    INT_FIELD(gpuDirectRDMASupported, GPUDirectRDMASupported),
    INT_FIELD(gpuDirectRDMAFlushWritesOptions, GPUDirectRDMAFlushWritesOptions),
    INT_FIELD(gpuDirectRDMAWritesOrdering, GPUDirectRDMAWritesOrdering),
    INT_FIELD(memoryPoolSupportedHandleTypes, MemoryPoolSupportedHandleTypes),
    INT_FIELD(deferredMappingCudaArraySupported, DeferredMappingCudaArraySupported),
    INT_FIELD(ipcEventSupported, IpcEventSupport),
    INT_FIELD(clusterLaunch, ClusterLaunch),
#if CUDART_VERSION < 13000
    INT_FIELD(clockRate, ClockRate),
    INT_FIELD(deviceOverlap, GpuOverlap),
    INT_FIELD(kernelExecTimeoutEnabled, KernelExecTimeout),
    INT_FIELD(computeMode, ComputeMode),
    INT_FIELD(memoryClockRate, MemoryClockRate),
    INT_FIELD(singleToDoublePrecisionPerfRatio, SingleToDoublePrecisionPerfRatio),
    INT_FIELD(cooperativeMultiDeviceLaunch, CooperativeMultiDeviceLaunch),
#else
    INT_FIELD(deviceNumaConfig, NumaConfig),
    INT_FIELD(deviceNumaId, NumaId),
    INT_FIELD(mpsEnabled, MpsEnabled),
    INT_FIELD(hostNumaId, HostNumaId),
    INT_FIELD(hostNumaMultinodeIpcSupported, HostNumaMultinodeIpcSupported),
#endif
};

static cudaError_t get_properties(struct cudaDeviceProp *prop, int device)
{
    struct rondo_device_properties properties;
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess)
        error = rondo_runtime_check_device(&call, device);
    if (error != cudaSuccess)
        return error;
    ncclResult_t rc = call.cpu->device.properties(device, &properties);
    memset(prop, 0, sizeof(*prop));
    for (size_t i = 0; rc == ncclSuccess && i < sizeof(fields) / sizeof(fields[0]); i++) {
        char *at = (char *)prop + fields[i].offset;
        int value = 0;

        rc = call.context->attribute(device, fields[i].attribute, &value);
        if (fields[i].is_size)
            *(size_t *)(void *)at = (size_t)value;
        else
            *(int *)(void *)at = value;
    }
    if (rc != ncclSuccess)
        return rondo_runtime_translate(rc, cudaErrorInvalidDevice);
    snprintf(prop->name, sizeof(prop->name), "%s", properties.name);
    memcpy(prop->uuid.bytes, properties.uuid, sizeof(prop->uuid.bytes));
    prop->totalGlobalMem = properties.memory_bytes;
    prop->major = properties.major;
    prop->minor = properties.minor;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    return rondo_runtime_record(prop ? get_properties(prop, device) : cudaErrorInvalidValue);
}

#if CUDART_VERSION < 13000
/* The plain name, for programs compiled against CUDA 11 that kept the SONAME: its struct is a prefix of ours.
 */
#undef cudaGetDeviceProperties
__attribute__((visibility("default"))) cudaError_t cudaGetDeviceProperties(void *prop, int device);

cudaError_t cudaGetDeviceProperties(void *prop, int device)
{
    struct cudaDeviceProp whole;
    cudaError_t error = prop ? get_properties(&whole, device) : cudaErrorInvalidValue;

    if (error == cudaSuccess)
        memcpy(prop, &whole, offsetof(struct cudaDeviceProp, hostRegisterSupported));
    return rondo_runtime_record(error);
}
#endif
