/*
 * device_select.c - which row of the device table serves this process.
 *
 * The wrong answer computes on the CPU with a GPU's addresses, or the other way round. So a real driver
 * without a row for it is a refusal, never a silent choice.
 */
#include "device/device.h"

#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "cpu/sole.h"
#include "device/cpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define DRIVER "libcuda.so.1"
#define NO_CUDA_ROW \
    "this version of Rondo runs on the CPU device only; RONDO_DEVICE=cpu uses it with host memory"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct rondo_device_ops *chosen;
static char refusal[512]; /* why nothing was chosen */

/* hostcuda's entry, wherever it is in the process: its library may have been loaded without making its
 * symbols global. */
static rondo_hostcuda_marker find_marker(void)
{
    union {
        void *symbol;
        rondo_hostcuda_marker marker;
    } found = {.symbol = dlsym(RTLD_DEFAULT, RONDO_HOSTCUDA_MARKER)};

    if (!found.symbol) {
        void *library = dlopen(DRIVER, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            found.symbol = dlsym(library, RONDO_HOSTCUDA_MARKER);
            dlclose(library); /* the process has it anyhow */
        }
    }
    return found.marker;
}

/* Whether a real driver is there and reports devices. It is loaded to be asked, and stays. */
static int count_gpus(void)
{
    union {
        void *symbol;
        int (*init)(unsigned flags);
        int (*count)(int *count);
    } init, count;
    int gpus = 0;
    void *library = dlopen(DRIVER, RTLD_LAZY | RTLD_LOCAL);

    if (!library)
        return 0;
    init.symbol = dlsym(library, "cuInit");
    count.symbol = dlsym(library, "cuDeviceGetCount");
    if (dlsym(library, RONDO_HOSTCUDA_MARKER)) {
        dlclose(library); /* hostcuda is installed, but nothing of this process uses it */
        return 0;
    }
    if (!init.symbol || !count.symbol || init.init(0) != 0 || count.count(&gpus) != 0)
        return 0;
    return gpus;
}

static void choose(const struct rondo_device_ops *ops, const char *reason)
{
    chosen = ops;
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_INIT, "device: %s (%s)", ops->name, reason);
}

/* hostcuda's instance carries its own copy of the error text; what it says about our calls belongs into ours.
 */
static void take_text(ncclResult_t code, const char *file, int line, const char *text)
{
    (void)rondo_error_record(code, file, line, "%s", text);
}

static void use_hostcuda(rondo_hostcuda_marker marker)
{
    uint32_t abi = 0;
    const struct rondo_device_ops *ops = marker(RONDO_DEVICE_ABI, &abi);

    if (ops) {
        ops->forward_errors(take_text);
        choose(ops, "the process has Rondo's host CUDA runtime");
        return;
    }
    snprintf(refusal, sizeof(refusal),
             "use the host CUDA runtime in this process: its device table has ABI %u, this library's has %u; "
             "both must come from one build",
             abi, RONDO_DEVICE_ABI);
}

static void decide(void)
{
    const char *wanted = rondo_param_string(RONDO_PARAM_DEVICE);
    rondo_hostcuda_marker marker = find_marker();
    int gpus;

    if (wanted && strcmp(wanted, "cpu") != 0) {
        if (strcmp(wanted, "cuda") == 0)
            snprintf(refusal, sizeof(refusal), "RONDO_DEVICE=cuda: " NO_CUDA_ROW);
        else
            snprintf(refusal, sizeof(refusal), "RONDO_DEVICE=%.64s: no such device; cpu and cuda are known",
                     wanted);
    } else if (marker) {
        use_hostcuda(marker);
    } else if (wanted) {
        choose(rondo_cpu_sole_instance(), "RONDO_DEVICE=cpu");
    } else if ((gpus = count_gpus()) > 0) {
        snprintf(refusal, sizeof(refusal), "the CUDA driver (" DRIVER ") reports %d devices: " NO_CUDA_ROW,
                 gpus);
    } else {
        choose(rondo_cpu_sole_instance(), "no CUDA driver reports a device");
    }
}

ncclResult_t rondo_device_select(const struct rondo_device_ops **ops_out)
{
    pthread_once(&once, decide);
    if (!chosen)
        return rondo_fail(ncclInvalidUsage, "%s", refusal);
    *ops_out = chosen;
    return ncclSuccess;
}
