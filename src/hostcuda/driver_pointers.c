/*
 * driver_pointers.c - what the driver says of an address.
 */
#include "contexts.h"
#include "registry.h"

#include "hostcuda/cuda.h"

#include <string.h>

/* An address as both tables know it: the device's, and the ranges beside it. */
struct address_facts {
    bool is_known;
    bool is_managed;
    bool is_on_device;
    int device;
    char *base;
    size_t bytes;
};

static ncclResult_t describe(const void *address, struct address_facts *facts_out)
{
    struct rondo_pointer_info info;
    struct rondo_range range;

    *facts_out = (struct address_facts){.device = -1};
    if (rondo_registry_range_find(address, &range)) {
        *facts_out = (struct address_facts){
            .is_known = true,
            .is_managed = range.kind == RONDO_RANGE_MANAGED,
            .is_on_device = range.kind == RONDO_RANGE_MANAGED,
            .device = range.device,
            .base = range.base,
            .bytes = range.bytes,
        };
        return ncclSuccess;
    }
    ncclResult_t rc = rondo_cpu_instance()->device.query_pointer(address, &info);
    if (rc != ncclSuccess || info.kind == RONDO_MEMORY_UNKNOWN || info.kind == RONDO_MEMORY_VACANT)
        return rc;
    *facts_out = (struct address_facts){
        .is_known = true,
        .is_on_device = info.kind == RONDO_MEMORY_DEVICE,
        .device = info.kind == RONDO_MEMORY_DEVICE ? info.device : 0,
        .base = info.base,
        .bytes = info.bytes,
    };
    return ncclSuccess;
}

/* The attribute's value, with the size the caller's variable has for it; 0 bytes: no such attribute. */
static size_t attribute_value(const struct address_facts *facts, CUpointer_attribute attribute,
                              CUdeviceptr ptr, void *value_out)
{
    unsigned memory_type = facts->is_on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    unsigned is_managed = facts->is_managed;
    unsigned char is_mapped = facts->is_known;

    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        memcpy(value_out, &memory_type, sizeof(memory_type));
        return sizeof(memory_type);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        memcpy(value_out, &ptr, sizeof(ptr));
        return sizeof(ptr);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        memcpy(value_out, &is_managed, sizeof(is_managed));
        return sizeof(is_managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(value_out, &facts->device, sizeof(facts->device));
        return sizeof(facts->device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        memcpy(value_out, &facts->base, sizeof(facts->base));
        return sizeof(facts->base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        memcpy(value_out, &facts->bytes, sizeof(facts->bytes));
        return sizeof(facts->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
        memcpy(value_out, &is_mapped, sizeof(is_mapped));
        return sizeof(is_mapped);
    default:
        return 0;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct address_facts facts;

    if (!data || describe((const void *)(uintptr_t)ptr, &facts) != ncclSuccess || !facts.is_known)
        return CUDA_ERROR_INVALID_VALUE;
    return attribute_value(&facts, attribute, ptr, data) > 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* As the real driver: an unknown address is no error, its answers are zero. */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr)
{
    struct address_facts facts;

    if (!attributes || !data || describe((const void *)(uintptr_t)ptr, &facts) != ncclSuccess)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numAttributes; i++) {
        if (!data[i])
            return CUDA_ERROR_INVALID_VALUE;
        size_t bytes = attribute_value(&facts, attributes[i], ptr, data[i]);
        if (bytes == 0)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (!facts.is_known)
            memset(data[i], 0, bytes);
    }
    return CUDA_SUCCESS;
}
