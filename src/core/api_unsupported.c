/*
 * api_unsupported.c - the functions of the interface that this version does not implement.
 *
 * All are here, so that every program that links NCCL loads; each refuses at once, before it looks at its
 * arguments, with a sentence that names it. A handle to be made is set to NULL; other outputs stay as they
 * were. The few that cannot return a result answer with what their callers take for a failure: a team of no
 * ranks, rank -1.
 */
#include "api.h"
#include "base/error.h"
#include "device_api.h"

/* The parameters are the interface's, and nothing here reads them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static ncclResult_t refuse(const char *function)
{
    return rondo_fail(ncclInvalidUsage, "%s is not implemented by this version of Rondo; nothing was done",
                      function);
}

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
    return refuse("ncclCommGetUniqueId");
}
RONDO_TWIN(ncclCommGetUniqueId);

ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId *commIds, ncclConfig_t *config)
{
    if (newcomm)
        *newcomm = NULL;
    return refuse("ncclCommInitRankScalable");
}
RONDO_TWIN(ncclCommInitRankScalable);

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
    return refuse("ncclCommRevoke");
}
RONDO_TWIN(ncclCommRevoke);

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
    if (newcomm)
        *newcomm = NULL;
    return refuse("ncclCommSplit");
}
RONDO_TWIN(ncclCommSplit);

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                             ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    if (newcomm)
        *newcomm = NULL;
    return refuse("ncclCommShrink");
}
RONDO_TWIN(ncclCommShrink);

ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank,
                           ncclComm_t *newcomm, ncclConfig_t *config)
{
    if (newcomm)
        *newcomm = NULL;
    return refuse("ncclCommGrow");
}
RONDO_TWIN(ncclCommGrow);

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props)
{
    return refuse("ncclCommQueryProperties");
}
RONDO_TWIN(ncclCommQueryProperties);

ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    return refuse("ncclCommRegister");
}
RONDO_TWIN(ncclCommRegister);

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return refuse("ncclCommDeregister");
}
RONDO_TWIN(ncclCommDeregister);

ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                     int winFlags)
{
    if (win)
        *win = NULL;
    return refuse("ncclCommWindowRegister");
}
RONDO_TWIN(ncclCommWindowRegister);

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
    return refuse("ncclCommWindowDeregister");
}
RONDO_TWIN(ncclCommWindowDeregister);

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
    return refuse("ncclWinGetUserPtr");
}
RONDO_TWIN(ncclWinGetUserPtr);

ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags)
{
    return refuse("ncclCommSuspend");
}
RONDO_TWIN(ncclCommSuspend);

ncclResult_t pncclCommResume(ncclComm_t comm)
{
    return refuse("ncclCommResume");
}
RONDO_TWIN(ncclCommResume);

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
    return refuse("ncclCommMemStats");
}
RONDO_TWIN(ncclCommMemStats);

ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
                            unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    return refuse("ncclPutSignal");
}
RONDO_TWIN(ncclPutSignal);

ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                         cudaStream_t stream)
{
    return refuse("ncclSignal");
}
RONDO_TWIN(ncclSignal);

ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
                             cudaStream_t stream)
{
    return refuse("ncclWaitSignal");
}
RONDO_TWIN(ncclWaitSignal);

ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
    return refuse("ncclGroupSimulateEnd");
}
RONDO_TWIN(ncclGroupSimulateEnd);

ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key)
{
    return refuse("ncclParamBind");
}
RONDO_TWIN(ncclParamBind);

ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t *out)
{
    return refuse("ncclParamGetI8");
}
RONDO_TWIN(ncclParamGetI8);

ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t *out)
{
    return refuse("ncclParamGetI16");
}
RONDO_TWIN(ncclParamGetI16);

ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t *out)
{
    return refuse("ncclParamGetI32");
}
RONDO_TWIN(ncclParamGetI32);

ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t *out)
{
    return refuse("ncclParamGetI64");
}
RONDO_TWIN(ncclParamGetI64);

ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t *out)
{
    return refuse("ncclParamGetU8");
}
RONDO_TWIN(ncclParamGetU8);

ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t *out)
{
    return refuse("ncclParamGetU16");
}
RONDO_TWIN(ncclParamGetU16);

ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t *out)
{
    return refuse("ncclParamGetU32");
}
RONDO_TWIN(ncclParamGetU32);

ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t *out)
{
    return refuse("ncclParamGetU64");
}
RONDO_TWIN(ncclParamGetU64);

ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char **out)
{
    return refuse("ncclParamGetStr");
}
RONDO_TWIN(ncclParamGetStr);

ncclResult_t pncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len)
{
    return refuse("ncclParamGet");
}
RONDO_TWIN(ncclParamGet);

ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *valueLen)
{
    return refuse("ncclParamGetParameter");
}
RONDO_TWIN(ncclParamGetParameter);

ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *tableLen)
{
    return refuse("ncclParamGetAllParameterKeys");
}
RONDO_TWIN(ncclParamGetAllParameterKeys);

void pncclParamDumpAll(void)
{
    refuse("ncclParamDumpAll");
}
RONDO_TWIN(ncclParamDumpAll);

ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *reqs,
                                ncclDevComm_t *outDevComm)
{
    return refuse("ncclDevCommCreate");
}
RONDO_TWIN(ncclDevCommCreate);

ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm)
{
    return refuse("ncclDevCommDestroy");
}
RONDO_TWIN(ncclDevCommDestroy);

ncclResult_t pncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **outPtr)
{
    return refuse("ncclGetLsaMultimemDevicePointer");
}
RONDO_TWIN(ncclGetLsaMultimemDevicePointer);

ncclResult_t pncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem,
                                           void **outPtr)
{
    return refuse("ncclGetMultimemDevicePointer");
}
RONDO_TWIN(ncclGetMultimemDevicePointer);

ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int lsaRank, void **outPtr)
{
    return refuse("ncclGetLsaDevicePointer");
}
RONDO_TWIN(ncclGetLsaDevicePointer);

ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **outPtr)
{
    return refuse("ncclGetPeerDevicePointer");
}
RONDO_TWIN(ncclGetPeerDevicePointer);

ncclTeam_t pncclTeamWorld(ncclComm_t comm)
{
    refuse("ncclTeamWorld");
    return (ncclTeam_t){0};
}
RONDO_TWIN(ncclTeamWorld);

ncclTeam_t pncclTeamLsa(ncclComm_t comm)
{
    refuse("ncclTeamLsa");
    return (ncclTeam_t){0};
}
RONDO_TWIN(ncclTeamLsa);

ncclTeam_t pncclTeamRail(ncclComm_t comm)
{
    refuse("ncclTeamRail");
    return (ncclTeam_t){0};
}
RONDO_TWIN(ncclTeamRail);

int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
    refuse("ncclTeamRankToWorld");
    return -1;
}
RONDO_TWIN(ncclTeamRankToWorld);

int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
    refuse("ncclTeamRankToLsa");
    return -1;
}
RONDO_TWIN(ncclTeamRankToLsa);

ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
                                              ncclLsaBarrierHandle_t *outHandle,
                                              ncclDevResourceRequirements_t *outReq)
{
    return refuse("ncclLsaBarrierCreateRequirement");
}
RONDO_TWIN(ncclLsaBarrierCreateRequirement);

ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int nBarriers,
                                              ncclGinBarrierHandle_t *outHandle,
                                              ncclDevResourceRequirements_t *outReq)
{
    return refuse("ncclGinBarrierCreateRequirement");
}
RONDO_TWIN(ncclGinBarrierCreateRequirement);

int pncclLLA2ACalcSlots(int maxElts, int maxEltSize)
{
    refuse("ncclLLA2ACalcSlots");
    return -1;
}
RONDO_TWIN(ncclLLA2ACalcSlots);

ncclResult_t pncclLLA2ACreateRequirement(int nBlocks, int nSlots, ncclLLA2AHandle_t *outHandle,
                                         ncclDevResourceRequirements_t *outReq)
{
    return refuse("ncclLLA2ACreateRequirement");
}
RONDO_TWIN(ncclLLA2ACreateRequirement);

ncclResult_t pncclGinOutboxCreateRequirement(int nBlocks, int size_log2, ncclGinOutboxHandle_t *outHandle,
                                             ncclDevResourceRequirements_t *outReq)
{
    return refuse("ncclGinOutboxCreateRequirement");
}
RONDO_TWIN(ncclGinOutboxCreateRequirement);

ncclResult_t pncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nBlocks, int size_log2,
                                               ncclGinInboxA2AHandle_t *outHandle,
                                               ncclDevResourceRequirements_t *outReq)
{
    return refuse("ncclGinInboxA2ACreateRequirement");
}
RONDO_TWIN(ncclGinInboxA2ACreateRequirement);
