/*
 * attributes.c - what the device answers about itself, by the numbers that runtime and driver share.
 *
 * Most answers are constants. They describe a CPU that follows a GPU's programming model: limits of blocks
 * and grids are those that programs check before a launch; what has no meaning here (clocks, textures,
 * caches) is 0.
 */
#include "contexts.h"

#include "base/error.h"
#include "base/host.h"
#include "hostcuda/driver_attributes.h"

#include <stdio.h>

struct attribute {
    int id;
    int value;
};

/* Numbers from here to the last known one that have no row are 0: known, and not offered. */
#define FIRST_ATTRIBUTE 1
#define LAST_ATTRIBUTE 147

static const struct attribute constants[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxPitch, 2147483647},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrAsyncEngineCount, 1},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 49152},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrHostNativeAtomicSupported, 1},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrPageableMemoryAccess, 1}, /* any memory of the process will do */
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 49152},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 1},
    {cudaDevAttrDirectManagedMemAccessFromHost, 1},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrHostRegisterReadOnlySupported, 1},
    {cudaDevAttrMemSyncDomainCount, 1},
    {cudaDevAttrNumaId, -1},
};

/* busid is "domain:bus:device.function" in hexadecimal. */
static int busid_part(const char *busid, int part)
{
    unsigned domain = 0, bus = 0, slot = 0;

    if (sscanf(busid, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return 0;
    return (int)(part == cudaDevAttrPciDomainId ? domain : part == cudaDevAttrPciBusId ? bus : slot);
}

ncclResult_t rondo_context_attribute(int device, int attribute, int *value_out)
{
    struct rondo_device_properties properties;
    ncclResult_t rc = rondo_cpu_instance()->device.properties(device, &properties);

    if (rc != ncclSuccess)
        return rc;
    switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
        *value_out = rondo_host_cpus();
        return ncclSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value_out = properties.major;
        return ncclSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value_out = properties.minor;
        return ncclSuccess;
    case cudaDevAttrPciDomainId:
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDeviceId:
        *value_out = busid_part(properties.busid, attribute);
        return ncclSuccess;
    default:
        break;
    }
    if (attribute < FIRST_ATTRIBUTE || attribute > LAST_ATTRIBUTE)
        return rondo_fail(ncclInvalidArgument,
                          "look up attribute %d of device %d: there is none of that number", attribute,
                          device);
    *value_out = 0;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (constants[i].id == attribute)
            *value_out = constants[i].value;
    }
    return ncclSuccess;
}
