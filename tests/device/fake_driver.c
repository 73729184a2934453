/*
 * fake_driver.c - a libcuda.so.1 for tests of which device is chosen. With RONDO_FAKE_MARKER it is
 * hostcuda's, else a GPU's driver that reports FAKE_GPUS devices.
 */
#include "device/cpu.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef RONDO_FAKE_MARKER

static void forward_errors(void (*sink)(ncclResult_t code, const char *file, int line, const char *text))
{
    sink(ncclSystemError, __FILE__, __LINE__, "a text of hostcuda's");
}

EXPORT const struct rondo_device_ops *rondo_hostcuda_device(uint32_t abi, uint32_t *abi_out);

const struct rondo_device_ops *rondo_hostcuda_device(uint32_t abi, uint32_t *abi_out)
{
    static const struct rondo_device_ops ops = {
        .abi = RONDO_DEVICE_ABI, .name = "fake", .forward_errors = forward_errors};

    *abi_out = getenv("FAKE_ABI") ? (uint32_t)atoi(getenv("FAKE_ABI")) : RONDO_DEVICE_ABI;
    return *abi_out == abi ? &ops : NULL;
}

#else

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *count);

int cuInit(unsigned flags)
{
    return flags == 0 && getenv("FAKE_GPUS") ? 0 : 100;
}

int cuDeviceGetCount(int *count)
{
    *count = atoi(getenv("FAKE_GPUS"));
    return 0;
}

#endif
