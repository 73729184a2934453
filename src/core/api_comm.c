/* api_comm.c - the entry points that make, end and ask communicators. */
#include "api.h"
#include "comm_close.h"
#include "comm_init.h"
#include "group.h"
#include "redop.h"
#include "roster.h"

#include "base/error.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "device/types.h"

ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t *config)
{
    rondo_group_open();
    return rondo_group_close(
        rondo_init_record("ncclCommInitRankConfig", comm, nranks, &commId, rank, config, -1));
}
RONDO_TWIN(ncclCommInitRankConfig);

ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
    rondo_group_open();
    return rondo_group_close(rondo_init_record("ncclCommInitRank", comm, nranks, &commId, rank, NULL, -1));
}
RONDO_TWIN(ncclCommInitRank);

/* Each device exists, and occurs once unless that is allowed. */
static ncclResult_t check_devices(int ndev, const int *devlist)
{
    const struct rondo_device_ops *ops;
    int count;
    ncclResult_t rc = rondo_device_select(&ops);

    if (rc == ncclSuccess)
        rc = ops->count(&count);
    for (int i = 0; i < ndev && rc == ncclSuccess; i++) {
        int device = devlist ? devlist[i] : i;

        if (device < 0 || device >= count)
            rc = rondo_fail(ncclInvalidArgument, "ncclCommInitAll: device %d of rank %d is outside 0..%d",
                            device, i, count - 1);
        for (int j = 0; j < i && rc == ncclSuccess; j++) {
            if (devlist && devlist[j] == device && !rondo_param_int(RONDO_PARAM_MULTI_RANK_GPU))
                rc = rondo_fail(
                    ncclInvalidUsage,
                    "ncclCommInitAll: ranks %d and %d both use device %d; " RONDO_MULTI_RANK_REMEDY, j, i,
                    device);
        }
    }
    return rc;
}

static ncclResult_t init_all(ncclComm_t *comm, int ndev, const int *devlist)
{
    ncclUniqueId id;
    ncclResult_t rc = rondo_roster_check_process("ncclCommInitAll");

    if (rc != ncclSuccess)
        return rc;
    if (!comm)
        return rondo_fail(ncclInvalidArgument, "ncclCommInitAll: the array of communicators is NULL");
    if (ndev < 0)
        return rondo_fail(ncclInvalidArgument, "ncclCommInitAll: ndev is %d", ndev);
    for (int i = 0; i < ndev; i++)
        comm[i] = NULL;
    rc = check_devices(ndev, devlist);
    if (rc == ncclSuccess && ndev > 0)
        rc = rondo_bootstrap_create_id(&id);
    for (int i = 0; i < ndev && rc == ncclSuccess; i++)
        rc = rondo_init_record("ncclCommInitAll", &comm[i], ndev, &id, i, NULL, devlist ? devlist[i] : i);
    return rc;
}

ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
    rondo_group_open();
    return rondo_group_close(init_all(comm, ndev, devlist));
}
RONDO_TWIN(ncclCommInitAll);

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    return rondo_finalize_record(comm);
}
RONDO_TWIN(ncclCommFinalize);

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    return rondo_close_record(comm);
}
RONDO_TWIN(ncclCommDestroy);

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    return rondo_comm_abort(comm);
}
RONDO_TWIN(ncclCommAbort);

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    struct ncclComm *entered;
    ncclResult_t rc;

    if (comm && !asyncError)
        return rondo_fail(ncclInvalidArgument, "ncclCommGetAsyncError: the address for the error is NULL");
    if (rondo_roster_is_being_made(comm)) {
        *asyncError = ncclInProgress;
        return ncclSuccess;
    }
    rc = rondo_roster_enter(comm, "ncclCommGetAsyncError", &entered);
    if (rc != ncclSuccess)
        return rc;
    *asyncError = rondo_comm_error(entered);
    rondo_roster_leave(entered);
    return ncclSuccess;
}
RONDO_TWIN(ncclCommGetAsyncError);

enum fact { FACT_COUNT, FACT_DEVICE, FACT_RANK };

/* Answer one of the three questions. */
static ncclResult_t ask(const char *function, ncclComm_t handle, enum fact fact, int *out)
{
    struct ncclComm *comm;
    ncclResult_t rc = rondo_roster_enter(handle, function, &comm);

    if (rc != ncclSuccess)
        return rc;
    if (!out)
        rc = rondo_fail(ncclInvalidArgument, "%s: the address for the answer is NULL", function);
    else
        rc = rondo_comm_check(comm);
    if (rc == ncclSuccess)
        *out = fact == FACT_COUNT ? comm->ranks : fact == FACT_DEVICE ? comm->device : comm->rank;
    rondo_roster_leave(comm);
    return rc;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
    return ask("ncclCommCount", comm, FACT_COUNT, count);
}
RONDO_TWIN(ncclCommCount);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return ask("ncclCommCuDevice", comm, FACT_DEVICE, device);
}
RONDO_TWIN(ncclCommCuDevice);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return ask("ncclCommUserRank", comm, FACT_RANK, rank);
}
RONDO_TWIN(ncclCommUserRank);

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm)
{
    struct ncclComm *entered;
    ncclResult_t rc = rondo_roster_enter(comm, "ncclRedOpCreatePreMulSum", &entered);

    if (rc != ncclSuccess)
        return rc;
    rc = rondo_comm_check(entered);
    if (rc == ncclSuccess && (!op || !scalar))
        rc = rondo_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: the address %s is NULL",
                        op ? "of the scalar" : "for the operation");
    if (rc == ncclSuccess && residence != ncclScalarDevice && residence != ncclScalarHostImmediate)
        rc = rondo_fail(ncclInvalidArgument,
                        "ncclRedOpCreatePreMulSum: residence %d is neither ncclScalarDevice (0) nor "
                        "ncclScalarHostImmediate (1)",
                        (int)residence);
    if (rc == ncclSuccess && rondo_dtype_bytes(datatype) == 0)
        rc = rondo_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: datatype %d is none; known are 0..%d",
                        (int)datatype, RONDO_DTYPE_NUM - 1);
    if (rc == ncclSuccess)
        rc = rondo_premul_create(entered, scalar, datatype, residence, op);
    rondo_roster_leave(entered);
    return rc;
}
RONDO_TWIN(ncclRedOpCreatePreMulSum);

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    struct ncclComm *entered;
    ncclResult_t rc = rondo_roster_enter(comm, "ncclRedOpDestroy", &entered);

    if (rc != ncclSuccess)
        return rc;
    rc = rondo_premul_destroy(entered, op);
    rondo_roster_leave(entered);
    return rc;
}
RONDO_TWIN(ncclRedOpDestroy);
