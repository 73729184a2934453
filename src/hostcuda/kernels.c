/*
 * kernels.c - what the device compiler emits into programs: registration of modules and kernels, and
 * launches.
 *
 * A program built from .cu files registers its kernels before main: for each, the address of its host stub
 * and its name. The code is a GPU's and cannot run here. So a launch fails, naming the kernel: once for each
 * kernel on stderr, since programs often look at launch errors late or never, and always in the error's text.
 */
#include "runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CONFIGURATIONS 16 /* launches nested in the argument lists of launches */

struct kernel {
    const void *host_stub;
    const char *name; /* the module's own text */
    void **module;
    bool is_told;
};

struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kernel *kernels;
static size_t kernel_count, kernel_capacity;

static _Thread_local struct configuration configurations[CONFIGURATIONS];
static _Thread_local unsigned configuration_count;

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *fatCubin);
void __cudaRegisterFatBinaryEnd(void **fatCubinHandle);
void __cudaUnregisterFatBinary(void **fatCubinHandle);
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                            const char *deviceName, int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim,
                            dim3 *gDim, int *wSize);
void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress, const char *deviceName,
                       int ext, size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                              const char *deviceName, int ext, size_t size, int constant, int global);
void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size);
char __cudaInitModule(void **fatCubinHandle);
unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *hostFun);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                               size_t sharedMem, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                                    size_t sharedMem, cudaStream_t stream);
#pragma GCC visibility pop

/* A handle is an address of its own; nobody looks inside. NULL, when there is no memory, is unregistered as
 * well. */
void **__cudaRegisterFatBinary(void *fatCubin)
{
    void **module = malloc(sizeof(*module));

    if (module)
        *module = fatCubin;
    return module;
}

void __cudaRegisterFatBinaryEnd(void **fatCubinHandle)
{
    (void)fatCubinHandle;
}

void __cudaUnregisterFatBinary(void **fatCubinHandle)
{
    size_t kept = 0;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < kernel_count; i++) {
        if (kernels[i].module != fatCubinHandle)
            kernels[kept++] = kernels[i];
    }
    kernel_count = kept;
    if (kernel_count == 0) {
        free(kernels);
        kernels = NULL;
        kernel_capacity = 0;
    }
    pthread_mutex_unlock(&lock);
    free(fatCubinHandle);
}

/* Runs before main, where nobody can be told of a failure: an unregistered kernel's launch fails all the
 * same. */
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                            const char *deviceName, int thread_limit, uint3 *tid, uint3 *bid, dim3 *bDim,
                            dim3 *gDim, int *wSize)
{
    (void)deviceFun;
    (void)thread_limit;
    (void)tid;
    (void)bid;
    (void)bDim;
    (void)gDim;
    (void)wSize;
    pthread_mutex_lock(&lock);
    if (kernel_count == kernel_capacity) {
        size_t capacity = kernel_capacity ? kernel_capacity * 2 : 64;
        struct kernel *grown = realloc(kernels, capacity * sizeof(*grown));

        if (grown) {
            kernels = grown;
            kernel_capacity = capacity;
        }
    }
    if (kernel_count < kernel_capacity)
        kernels[kernel_count++] =
            (struct kernel){.host_stub = hostFun, .name = deviceName, .module = fatCubinHandle};
    pthread_mutex_unlock(&lock);
}

/* Device variables are only ever reached by kernels and by copies to symbols, and hostcuda has neither. */
void __cudaRegisterVar(void **fatCubinHandle, char *hostVar, char *deviceAddress, const char *deviceName,
                       int ext, size_t size, int constant, int global)
{
    (void)fatCubinHandle;
    (void)hostVar;
    (void)deviceAddress;
    (void)deviceName;
    (void)ext;
    (void)size;
    (void)constant;
    (void)global;
}

/* The host reads a managed variable through the pointer it names here: give it zeroed memory for good. */
void __cudaRegisterManagedVar(void **fatCubinHandle, void **hostVarPtrAddress, char *deviceAddress,
                              const char *deviceName, int ext, size_t size, int constant, int global)
{
    (void)fatCubinHandle;
    (void)deviceAddress;
    (void)deviceName;
    (void)ext;
    (void)constant;
    (void)global;
    *hostVarPtrAddress = calloc(1, size);
}

void __cudaRegisterHostVar(void **fatCubinHandle, const char *deviceName, char *hostVar, size_t size)
{
    (void)fatCubinHandle;
    (void)deviceName;
    (void)hostVar;
    (void)size;
}

char __cudaInitModule(void **fatCubinHandle)
{
    return fatCubinHandle != NULL;
}

unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem,
                                     struct CUstream_st *stream)
{
    if (configuration_count == CONFIGURATIONS) {
        rondo_runtime_record(rondo_runtime_fail(cudaErrorInvalidConfiguration,
                                                "launch a kernel: %d launches are nested in argument lists",
                                                CONFIGURATIONS));
        return 1; /* skips the launch */
    }
    configurations[configuration_count++] = (struct configuration){
        .grid = gridDim, .block = blockDim, .shared_bytes = sharedMem, .stream = stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream)
{
    if (configuration_count == 0)
        return rondo_runtime_record(cudaErrorMissingConfiguration);
    const struct configuration *top = &configurations[--configuration_count];
    *gridDim = top->grid;
    *blockDim = top->block;
    *sharedMem = top->shared_bytes;
    *(void **)stream = top->stream;
    return cudaSuccess;
}

/* The name registered for a stub, NULL if there is none. *is_first_out, if wanted: nobody has been told of it
 * yet. */
static const char *find_kernel(const void *host_stub, bool *is_first_out)
{
    const char *name = NULL;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < kernel_count && !name; i++) {
        if (kernels[i].host_stub != host_stub)
            continue;
        name = kernels[i].name;
        if (is_first_out) {
            *is_first_out = !kernels[i].is_told;
            kernels[i].is_told = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return name;
}

/* Answer for a kernel that cannot run; is_launch: the program may well miss the answer, so it is also told on
 * stderr. */
static cudaError_t refuse_kernel(const void *host_stub, const char *wish, bool is_launch)
{
    struct rondo_call call;
    bool is_first = false;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error != cudaSuccess)
        return error;
    const char *name = find_kernel(host_stub, is_launch ? &is_first : NULL);
    if (!name)
        return rondo_runtime_fail(cudaErrorInvalidDeviceFunction,
                                  "%s the kernel with host stub %p: no module registered it", wish,
                                  host_stub);
    if (is_first)
        fprintf(stderr,
                "hostcuda: kernel %s was not run: its code is a GPU's, and the device is the CPU; every "
                "launch of it "
                "fails with cudaErrorNoKernelImageForDevice\n",
                name);
    return rondo_runtime_fail(cudaErrorNoKernelImageForDevice,
                              "%s kernel %s: its code is a GPU's, and the device is the CPU", wish, name);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                             cudaStream_t stream)
{
    (void)gridDim;
    (void)blockDim;
    (void)args;
    (void)sharedMem;
    (void)stream;
    return rondo_runtime_record(refuse_kernel(func, "launch", true));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    (void)args;
    return rondo_runtime_record(config ? refuse_kernel(func, "launch", true) : cudaErrorInvalidValue);
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                        size_t sharedMem, cudaStream_t stream)
{
    return cudaLaunchKernel(func, gridDim, blockDim, args, sharedMem, stream);
}

/* CUDA 13 stubs ask for a kernel's handle once, at their first call, and launch by it: ours is the stub's
 * address. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *hostFun)
{
    if (!kernel)
        return rondo_runtime_record(cudaErrorInvalidValue);
    *kernel = (cudaKernel_t)(uintptr_t)hostFun;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                               size_t sharedMem, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                                    size_t sharedMem, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, gridDim, blockDim, args, sharedMem, stream);
}

/* A kernel's attributes are in its code, which nobody here can read. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
    return rondo_runtime_record(attr ? refuse_kernel(func, "read the attributes of", false)
                                     : cudaErrorInvalidValue);
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    (void)attr;
    (void)value;
    return rondo_runtime_record(refuse_kernel(func, "set an attribute of", false));
}
