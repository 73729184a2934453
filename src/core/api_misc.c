/* api_misc.c - entry points that need no communicator: version, texts, memory, ids. */
#include "api.h"
#include "roster.h"

#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"

ncclResult_t pncclGetVersion(int *version)
{
    if (!version)
        return rondo_fail(ncclInvalidArgument, "ncclGetVersion: the address for the version is NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
RONDO_TWIN(ncclGetVersion);

const char *pncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess:
        return "no error (ncclSuccess)";
    case ncclUnhandledCudaError:
        return "a call to the device failed (ncclUnhandledCudaError; run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
        return "a system call failed (ncclSystemError; run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
        return "a fault of this library (ncclInternalError); please report it";
    case ncclInvalidArgument:
        return "an argument is invalid (ncclInvalidArgument; run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
        return "the call does not fit its situation (ncclInvalidUsage; run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
        return "a remote process has gone, or the network to it has failed (ncclRemoteError)";
    case ncclInProgress:
        return "the operation is still in progress (ncclInProgress)";
    case ncclTimeout:
        return "a wait has timed out (ncclTimeout)";
    default:
        return "unknown result code";
    }
}
RONDO_TWIN(ncclGetErrorString);

const char *pncclGetLastError(ncclComm_t comm)
{
    (void)comm; /* there is one text, of the process */
    return rondo_error_last();
}
RONDO_TWIN(ncclGetLastError);

void pncclResetDebugInit(void)
{
    rondo_log_reset();
}
RONDO_TWIN(ncclResetDebugInit);

ncclResult_t pncclMemAlloc(void **ptr, size_t size)
{
    const struct rondo_device_ops *ops;
    int device;
    ncclResult_t rc = rondo_roster_check_process("ncclMemAlloc");

    if (rc != ncclSuccess)
        return rc;
    if (!ptr) /* as the device itself would say */
        return rondo_fail(ncclUnhandledCudaError, "ncclMemAlloc: the address for the pointer is NULL");
    rc = rondo_device_select(&ops);
    if (rc == ncclSuccess)
        rc = ops->get_current(&device);
    if (rc == ncclSuccess)
        rc = ops->allocate(device, size, ptr);
    return rc;
}
RONDO_TWIN(ncclMemAlloc);

ncclResult_t pncclMemFree(void *ptr)
{
    const struct rondo_device_ops *ops;
    ncclResult_t rc = rondo_roster_check_process("ncclMemFree");

    if (rc != ncclSuccess)
        return rc;
    rc = rondo_device_select(&ops);
    if (rc == ncclSuccess)
        rc = ops->release(ptr);
    return rc == ncclInvalidArgument ? ncclUnhandledCudaError
                                     : rc; /* the interface calls any such failure the device's */
}
RONDO_TWIN(ncclMemFree);

ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId)
{
    ncclResult_t rc = rondo_roster_check_process("ncclGetUniqueId");

    if (rc != ncclSuccess)
        return rc;
    if (!uniqueId)
        return rondo_fail(ncclInvalidArgument, "ncclGetUniqueId: the address for the id is NULL");
    return rondo_bootstrap_create_id(uniqueId);
}
RONDO_TWIN(ncclGetUniqueId);
