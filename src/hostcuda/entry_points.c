/*
 * entry_points.c - driver functions by name, for programs that avoid linking the driver.
 */
#include "runtime.h"

#include "hostcuda/cuda.h"

#pragma weak cuGetProcAddress_v2 /* as rondo_hostcuda_context is, and only called when that is there */

static cudaError_t find_entry_point(const char *symbol, void **function_out, unsigned version,
                                    unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status_out)
{
    struct rondo_call call;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_LIBRARY, &call);

    if (error != cudaSuccess)
        return error;
    if (!symbol || !function_out)
        return cudaErrorInvalidValue;
    cuGetProcAddress_v2(symbol, function_out, (int)version, flags, &status);
    if (status_out)
        *status_out = (enum cudaDriverEntryPointQueryResult)status; /* one set of numbers */
    else if (!*function_out)
        return rondo_runtime_fail(cudaErrorSymbolNotFound,
                                  "find %s: hostcuda's libcuda.so.1 has only a sliver of the driver", symbol);
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return rondo_runtime_record(find_entry_point(symbol, funcPtr, CUDART_VERSION, flags, driverStatus));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr, unsigned int cudaVersion,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return rondo_runtime_record(find_entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus));
}
