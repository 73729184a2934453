/*
 * abi_checks.h - what programs compiled against NCCL 2.30.7 take for granted, checked by the compiler.
 *
 * Included by one C and one C++ file, in the oldest and newest dialects nccl.h supports.
 */
#include <nccl.h>

#include <stddef.h>

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#elif __STDC_VERSION__ >= 201112L
#define CHECK(condition) _Static_assert(condition, #condition)
#else
#define CHECK_JOIN(a, b) a##b
#define CHECK_NAME(line) CHECK_JOIN(check_, line)
#define CHECK(condition) extern char CHECK_NAME(__LINE__)[(condition) ? 1 : -1]
#endif

CHECK(NCCL_VERSION_CODE == 23007);
CHECK(NCCL_VERSION(2, 28, 9) == 22809);
CHECK(NCCL_VERSION(2, 8, 4) == 2804);

CHECK(sizeof(ncclUniqueId) == 128 && NCCL_UNIQUE_ID_BYTES == 128);
CHECK(sizeof(ncclResult_t) == 4 && sizeof(ncclRedOp_t) == 4 && sizeof(ncclDataType_t) == 4);
CHECK(sizeof(ncclScalarResidence_t) == 4 && sizeof(ncclCommMemStat_t) == 4);
CHECK(sizeof(ncclComm_t) == 8 && sizeof(ncclWindow_t) == 8 && sizeof(ncclParamHandle_t) == 8);

CHECK(sizeof(ncclConfig_t) == 96);
CHECK(offsetof(ncclConfig_t, size) == 0);
CHECK(offsetof(ncclConfig_t, magic) == 8);
CHECK(offsetof(ncclConfig_t, version) == 12);
CHECK(offsetof(ncclConfig_t, blocking) == 16);
CHECK(offsetof(ncclConfig_t, cgaClusterSize) == 20);
CHECK(offsetof(ncclConfig_t, minCTAs) == 24);
CHECK(offsetof(ncclConfig_t, maxCTAs) == 28);
CHECK(offsetof(ncclConfig_t, netName) == 32);
CHECK(offsetof(ncclConfig_t, splitShare) == 40);
CHECK(offsetof(ncclConfig_t, trafficClass) == 44);
CHECK(offsetof(ncclConfig_t, commName) == 48);
CHECK(offsetof(ncclConfig_t, collnetEnable) == 56);
CHECK(offsetof(ncclConfig_t, CTAPolicy) == 60);
CHECK(offsetof(ncclConfig_t, shrinkShare) == 64);
CHECK(offsetof(ncclConfig_t, nvlsCTAs) == 68);
CHECK(offsetof(ncclConfig_t, nChannelsPerNetPeer) == 72);
CHECK(offsetof(ncclConfig_t, nvlinkCentricSched) == 76);
CHECK(offsetof(ncclConfig_t, graphUsageMode) == 80);
CHECK(offsetof(ncclConfig_t, numRmaCtx) == 84);
CHECK(offsetof(ncclConfig_t, maxP2pPeers) == 88);
CHECK(offsetof(ncclConfig_t, graphStreamOrdering) == 92);

CHECK(sizeof(ncclSimInfo_t) == 24);
CHECK(offsetof(ncclSimInfo_t, size) == 0);
CHECK(offsetof(ncclSimInfo_t, magic) == 8);
CHECK(offsetof(ncclSimInfo_t, version) == 12);
CHECK(offsetof(ncclSimInfo_t, estimatedTime) == 16);

CHECK(sizeof(ncclWaitSignalDesc_t) == 16);
CHECK(offsetof(ncclWaitSignalDesc_t, opCnt) == 0);
CHECK(offsetof(ncclWaitSignalDesc_t, peer) == 4);
CHECK(offsetof(ncclWaitSignalDesc_t, sigIdx) == 8);
CHECK(offsetof(ncclWaitSignalDesc_t, ctx) == 12);

CHECK(ncclSuccess == 0 && ncclUnhandledCudaError == 1 && ncclSystemError == 2 && ncclInternalError == 3);
CHECK(ncclInvalidArgument == 4 && ncclInvalidUsage == 5 && ncclRemoteError == 6 && ncclInProgress == 7);
CHECK(ncclTimeout == 8 && ncclNumResults == 9);
CHECK(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4 && ncclNumOps == 5);
CHECK(ncclMaxRedOp == 0x7fffffff);
CHECK(ncclInt8 == 0 && ncclChar == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclInt == 2 && ncclUint32 == 3);
CHECK(ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclHalf == 6 && ncclFloat32 == 7 &&
      ncclFloat == 7);
CHECK(ncclFloat64 == 8 && ncclDouble == 8 && ncclBfloat16 == 9 && ncclFloat8e4m3 == 10 &&
      ncclFloat8e5m2 == 11);
CHECK(ncclNumTypes == 12);
CHECK(ncclScalarDevice == 0 && ncclScalarHostImmediate == 1);
CHECK(ncclStatGpuMemSuspend == 0 && ncclStatGpuMemSuspended == 1 && ncclStatGpuMemPersist == 2);
CHECK(ncclStatGpuMemTotal == 3);

CHECK(NCCL_SPLIT_NOCOLOR == -1 && NCCL_CONFIG_UNDEF_INT == (-2147483647 - 1));
CHECK(NCCL_WIN_DEFAULT == 0 && NCCL_WIN_COLL_SYMMETRIC == 1 && NCCL_WIN_STRICT_ORDERING == 2);
CHECK(NCCL_WIN_REQUIRED_ALIGNMENT == 4096 && NCCL_API_MAGIC == 0xcafebeef);
CHECK(NCCL_CTA_POLICY_DEFAULT == 0 && NCCL_CTA_POLICY_EFFICIENCY == 1 && NCCL_CTA_POLICY_ZERO == 2);
CHECK(NCCL_SHRINK_DEFAULT == 0 && NCCL_SHRINK_ABORT == 1 && NCCL_REVOKE_DEFAULT == 0 &&
      NCCL_SUSPEND_MEM == 1);

/* The initialisers, as programs write them; abi_test.cpp looks at the values. */
#ifdef __cplusplus
extern "C" {
#endif
void ABI_FILL(ncclConfig_t *config, ncclSimInfo_t *info);
#ifdef __cplusplus
}
#endif
void ABI_FILL(ncclConfig_t *config, ncclSimInfo_t *info)
{
    ncclConfig_t fresh_config = NCCL_CONFIG_INITIALIZER;
    ncclSimInfo_t fresh_info = NCCL_SIM_INFO_INITIALIZER;

    *config = fresh_config;
    *info = fresh_info;
}
