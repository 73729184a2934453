/*
 * device_api.h - the host functions of the device interface: exported, without a public header so far.
 *
 * Programs built with NCCL's device headers import them, and a library that lacked one would not even load
 * there. So the argument passing must be right (what is passed by value, and its size); what is only pointed
 * to is left opaque.
 */
#ifndef RONDO_CORE_DEVICE_API_H
#define RONDO_CORE_DEVICE_API_H

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A subset of a communicator's ranks: nRanks of them, stride apart, this one the rank-th. 12 bytes, by value.
 */
typedef struct {
    int nRanks;
    int rank;
    int stride;
} ncclTeam_t;

/* Where a multicast address of a window begins. 8 bytes, by value. */
typedef struct {
    void *mcBasePtr;
} ncclMultimemHandle_t;

typedef struct ncclCommProperties ncclCommProperties_t;
typedef struct ncclDevComm ncclDevComm_t;
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;
typedef struct ncclGinOutboxHandle ncclGinOutboxHandle_t;
typedef struct ncclGinInboxA2AHandle ncclGinInboxA2AHandle_t;

#pragma GCC visibility push(default)

/* One line a function and its twin; the contract of all is in api_unsupported.c until one is implemented. */
#define RONDO_DEVICE_FUNCTION(result, name, ...) \
    result name(__VA_ARGS__);                    \
    result p##name(__VA_ARGS__)

RONDO_DEVICE_FUNCTION(ncclResult_t, ncclCommQueryProperties, ncclComm_t, ncclCommProperties_t *);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclDevCommCreate, ncclComm_t, const ncclDevCommRequirements_t *,
                      ncclDevComm_t *);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclDevCommDestroy, ncclComm_t, const ncclDevComm_t *);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclGetLsaMultimemDevicePointer, ncclWindow_t, size_t, void **);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclGetMultimemDevicePointer, ncclWindow_t, size_t, ncclMultimemHandle_t,
                      void **);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclGetLsaDevicePointer, ncclWindow_t, size_t, int, void **);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclGetPeerDevicePointer, ncclWindow_t, size_t, int, void **);
RONDO_DEVICE_FUNCTION(ncclTeam_t, ncclTeamWorld, ncclComm_t);
RONDO_DEVICE_FUNCTION(ncclTeam_t, ncclTeamLsa, ncclComm_t);
RONDO_DEVICE_FUNCTION(ncclTeam_t, ncclTeamRail, ncclComm_t);
RONDO_DEVICE_FUNCTION(int, ncclTeamRankToWorld, ncclComm_t, ncclTeam_t, int);
RONDO_DEVICE_FUNCTION(int, ncclTeamRankToLsa, ncclComm_t, ncclTeam_t, int);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclLsaBarrierCreateRequirement, ncclTeam_t, int,
                      ncclLsaBarrierHandle_t *, ncclDevResourceRequirements_t *);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclGinBarrierCreateRequirement, ncclComm_t, ncclTeam_t, int,
                      ncclGinBarrierHandle_t *, ncclDevResourceRequirements_t *);
RONDO_DEVICE_FUNCTION(int, ncclLLA2ACalcSlots, int, int);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclLLA2ACreateRequirement, int, int, ncclLLA2AHandle_t *,
                      ncclDevResourceRequirements_t *);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclGinOutboxCreateRequirement, int, int, ncclGinOutboxHandle_t *,
                      ncclDevResourceRequirements_t *);
RONDO_DEVICE_FUNCTION(ncclResult_t, ncclGinInboxA2ACreateRequirement, ncclTeam_t, int, int,
                      ncclGinInboxA2AHandle_t *, ncclDevResourceRequirements_t *);

#undef RONDO_DEVICE_FUNCTION
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
