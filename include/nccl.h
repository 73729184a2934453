/*
 * nccl.h - the interface of NCCL 2.30.7, as Rondo provides it. Valid C99 and C++11, and everything later.
 *
 * A function of this interface that the library at hand does not implement returns ncclInvalidUsage, and
 * ncclGetLastError names it; nothing pretends to have worked.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* Streams are CUDA's. Where no CUDA headers are, a stream is an opaque pointer of the same type name. The headers of the
 * narrow types come along because programs expect them to. */
#if !defined(RONDO_NO_CUDA_HEADERS) && defined(__has_include)
#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#define RONDO_HAS_CUDA_HEADERS_ 1
#if __has_include(<cuda_fp16.h>)
#include <cuda_fp16.h>
#endif
#if __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#endif
#if defined(__cplusplus) && __has_include(<cuda_fp8.h>)
#include <cuda_fp8.h>
#endif
#endif
#endif
#ifndef RONDO_HAS_CUDA_HEADERS_
typedef struct CUstream_st *cudaStream_t;
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 30
#define NCCL_PATCH 7
#define NCCL_SUFFIX ""
/* 2.8.x and older have one digit for the minor number, later ones two: 2.30.7 is 23007. */
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X) * 1000 + (Y) * 100 + (Z) : (X) * 10000 + (Y) * 100 + (Z))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* ---- Handles ---- */

typedef struct ncclComm *ncclComm_t; /* one rank of a communicator */
#define NCCL_COMM_NULL NULL

typedef struct ncclWindow_vidmem *ncclWindow_t; /* a registered buffer; a device address */

typedef struct ncclParamHandle *ncclParamHandle_t; /* a parameter, owned by the library */

/* Names a communicator to be made. Opaque bytes that may be copied and sent by any means; holds a secret. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

/* ---- Results, reductions, types ---- */

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1, /* the device layer failed */
    ncclSystemError = 2,        /* the operating system refused something */
    ncclInternalError = 3,      /* a fault of the library */
    ncclInvalidArgument = 4,    /* one argument is wrong in itself */
    ncclInvalidUsage = 5,       /* the call does not fit its situation, or the ranks disagree */
    ncclRemoteError = 6,        /* a peer or the way to it is gone */
    ncclInProgress = 7,         /* not an error: a nonblocking communicator is still at work */
    ncclTimeout = 8,            /* a bounded wait ran out */
    ncclNumResults = 9
} ncclResult_t;

typedef enum {
    ncclSum = 0, /* integers wrap around */
    ncclProd = 1,
    ncclMax = 2, /* of a number and a NaN, the number */
    ncclMin = 3,
    ncclAvg = 4,    /* sum divided by the number of ranks; integers truncate towards zero */
    ncclNumOps = 5, /* values from here on come from ncclRedOpCreatePreMulSum */
    ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
    ncclScalarDevice = 0,       /* device memory, read whenever the operation runs; must stay valid until then */
    ncclScalarHostImmediate = 1 /* host memory, read during the call that creates the operation */
} ncclScalarResidence_t;

typedef enum {
    ncclStatGpuMemSuspend = 0,   /* bytes that ncclCommSuspend releases */
    ncclStatGpuMemSuspended = 1, /* 1 while suspended, else 0 */
    ncclStatGpuMemPersist = 2,   /* bytes that stay */
    ncclStatGpuMemTotal = 3      /* both together */
} ncclCommMemStat_t;

/* ---- Flags ---- */

#define NCCL_SPLIT_NOCOLOR (-1)          /* ncclCommSplit: this rank joins nothing */
#define NCCL_WIN_DEFAULT 0x00            /* ncclCommWindowRegister: any offsets */
#define NCCL_WIN_COLL_SYMMETRIC 0x01     /* all ranks use equal offsets in collectives */
#define NCCL_WIN_STRICT_ORDERING 0x02    /* writes become visible in order */
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096 /* bytes, of the buffer inside its allocation */
#define NCCL_CTA_POLICY_DEFAULT 0x00     /* ncclConfig_t.CTAPolicy */
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02
#define NCCL_SHRINK_DEFAULT 0x00 /* ncclCommShrink: the parent is idle */
#define NCCL_SHRINK_ABORT 0x01   /* end what the parent still does */
#define NCCL_REVOKE_DEFAULT 0x00 /* ncclCommRevoke */
#define NCCL_SUSPEND_MEM 0x01    /* ncclCommSuspend: release memory */
#define NCCL_API_MAGIC 0xcafebeef

/* ---- Structs the caller fills ---- */

#define NCCL_CONFIG_UNDEF_INT INT_MIN /* "not set": the default applies */
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT (-1.0f)

/* Settings of one communicator. Start from NCCL_CONFIG_INITIALIZER, which records the caller's version, and set what
 * matters. The environment, where it names the same thing, wins. Texts are copied during the call.
 *
 * This version serves blocking (1 alone; 0 is refused with ncclInvalidUsage), minCTAs, maxCTAs and commName. The other
 * fields are checked against their ranges and have no effect; NCCL_DEBUG=INFO names those that are set. */
typedef struct ncclConfig_v23000 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;            /* 1 (default): calls return when done; 0: they may return ncclInProgress */
    int cgaClusterSize;      /* blocks of a cluster, >= 0; default 4; without meaning on a CPU */
    int minCTAs;             /* least and */
    int maxCTAs;             /* greatest number of channels, > 0; set maxCTAs when setting minCTAs */
    const char *netName;     /* network module to use */
    int splitShare;          /* 1: children made by ncclCommSplit share resources */
    int trafficClass;        /* quality-of-service class handed to the network */
    const char *commName;    /* label in messages */
    int collnetEnable;       /* 1: reduction inside the network */
    int CTAPolicy;           /* NCCL_CTA_POLICY_* */
    int shrinkShare;         /* as splitShare, for ncclCommShrink */
    int nvlsCTAs;            /* channels of multicast kernels, > 0 */
    int nChannelsPerNetPeer; /* channels to each remote peer, 1..64 */
    int nvlinkCentricSched;  /* 1: schedule point to point for NVLink */
    int graphUsageMode;      /* captured launches: 0 none, 1 one graph at a time, 2 (default) any mixture */
    int numRmaCtx;           /* contexts for one-sided operations, default 1; 0: none */
    int maxP2pPeers;         /* peers in use at a time, > 0; a hint */
    int graphStreamOrdering; /* 1 (default): captured kernels run one after another */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER \
    { \
        sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT \
    }

/* What ncclGroupSimulateEnd answers. Start from NCCL_SIM_INFO_INITIALIZER. */
typedef struct {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime; /* microseconds */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
    { \
        sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT \
    }

/* One peer ncclWaitSignal waits for: opCnt (> 0) further signals of it. sigIdx and ctx must be 0. */
typedef struct {
    int opCnt;
    int peer;
    int sigIdx;
    int ctx;
} ncclWaitSignalDesc_t;

/*
 * ---- Functions ----
 *
 * Every ncclX is a weak symbol at the address of the strong pncclX below it, so that a tool can stand in front of ncclX
 * and call pncclX.
 *
 * Common rules; a function's comment says only what differs.
 *   Results    Outputs are written on success only. A failure leaves a sentence in ncclGetLastError.
 *   comm       NULL or no live communicator: ncclInvalidArgument. One that has failed: its error. One that is still
 *              ncclInProgress: ncclInvalidArgument. A revoked one, asked to communicate: ncclInvalidUsage.
 *   Outputs    NULL for an output: ncclInvalidArgument.
 *   Fork       A child forked after its parent had made a communicator: ncclInvalidUsage from every function that takes or
 *              makes a communicator, an id or memory. Call exec() in the child, or fork before the first communicator.
 *   Below      Any function may return what a lower layer says: ncclUnhandledCudaError, ncclSystemError,
 *              ncclRemoteError, ncclInternalError.
 *   Threads    One thread at a time per communicator, ncclCommGetAsyncError and ncclCommAbort excepted; two that are found
 *              launching on one: ncclInvalidUsage for the later. Functions without a communicator may be called from
 *              any thread at any time.
 *   Blocking   With blocking=0, whatever would block returns ncclInProgress instead; poll ncclCommGetAsyncError. This
 *              version has no nonblocking communicators: making one is ncclInvalidUsage.
 *   Groups     Between ncclGroupStart and ncclGroupEnd, functions marked "group" only record; ncclGroupEnd does it.
 */

/* ---- The library ---- */

/* Version code of the loaded library, which may differ from NCCL_VERSION_CODE. Pure. */
ncclResult_t ncclGetVersion(int *version);
ncclResult_t pncclGetVersion(int *version);

/* Static text for a result, also for a value that is none; never NULL. Pure. */
const char *ncclGetErrorString(ncclResult_t result);
const char *pncclGetErrorString(ncclResult_t result);

/* The last failure's sentence in this process, "" if there was none. comm is ignored and may be NULL. The text is
 * the library's and stays unchanged until the calling thread's next call of this function. */
const char *ncclGetLastError(ncclComm_t comm);
const char *pncclGetLastError(ncclComm_t comm);

/* Deprecated. Makes the next log line read NCCL_DEBUG and its siblings again. */
void ncclResetDebugInit(void);
void pncclResetDebugInit(void);

/* Allocate size bytes of the current device's memory that suits every kind of registration. The caller owns *ptr and
 * frees it with ncclMemFree. Synchronous. ncclUnhandledCudaError: the device has no memory left, or ptr is NULL (as the
 * device's own allocation would say). */
ncclResult_t ncclMemAlloc(void **ptr, size_t size);
ncclResult_t pncclMemAlloc(void **ptr, size_t size);

/* Free memory of ncclMemAlloc; NULL is ncclSuccess. Synchronous. ncclUnhandledCudaError: ptr is no such memory. */
ncclResult_t ncclMemFree(void *ptr);
ncclResult_t pncclMemFree(void *ptr);

/* ---- Making communicators ---- */

/* Write a new id and start to listen for the ranks that will use it (with NCCL_COMM_ID set, rank 0 does that later).
 * The process must live until they have met. Each id makes one communicator.
 * ncclInvalidUsage: no usable network interface. ncclInvalidArgument: NCCL_COMM_ID does not parse. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId);

/* On exactly one rank: an id with which ncclCommGrow enlarges comm; one may be outstanding.
 * ncclInvalidUsage: NCCL_COMM_ID is set. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);

/* Join the nranks ranks that hold commId, as rank, with the current device. All must call; blocks until all have (group:
 * *comm is written at once, the rest happens in ncclGroupEnd). The caller owns *comm until destroy or abort. On failure
 * *comm is NULL. ncclInvalidArgument: nranks < 1, rank outside 0..nranks-1, a bad config. ncclInvalidUsage: the ranks'
 * versions or settings differ, two of them use one device, or blocking is 0. ncclRemoteError: a rank died. ncclTimeout: not
 * all came. */
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank);

/* The same with settings; config NULL means defaults. config is read during the call. Where blocking=0 is supported, the
 * handle serves ncclCommGetAsyncError, ncclCommAbort and ncclCommDestroy alone until it is ready. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config);

/* The same with nId ids (1..nranks), whose owners share the work of bringing the ranks together. All ranks pass equal
 * ids in equal order. ncclInvalidArgument also: nId out of range, commIds NULL. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
                                      ncclConfig_t *config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank, int nId, ncclUniqueId *commIds,
                                       ncclConfig_t *config);

/* All ranks in this process: comm[i] is rank i on device devlist[i], or on device i when devlist is NULL. The caller owns
 * the ndev handles. Blocks (group); keeps the current device. ncclInvalidArgument: ndev < 0, a device that does not
 * exist. ncclInvalidUsage: a device twice (NCCL_MULTI_RANK_GPU_ENABLE=1 allows it). */
ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist);
ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist);

/* Divide comm: ranks of equal color (>= 0) form a new communicator, ordered by key, then by old rank. With
 * NCCL_SPLIT_NOCOLOR *newcomm becomes NULL. All ranks call; blocks (group). config NULL: as the parent's.
 * ncclInvalidUsage: resources are to be shared but the network modules differ. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config);

/* A communicator without the listed ranks; the others call, with equal lists, and keep their order. The list is sorted in
 * place. shrinkFlags: NCCL_SHRINK_*. Blocks (group). ncclInvalidArgument: the list is empty or names the caller. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                            ncclConfig_t *config, int shrinkFlags);
ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount, ncclComm_t *newcomm,
                             ncclConfig_t *config, int shrinkFlags);

/* A larger communicator of nRanks. Old ranks pass comm and rank -1, and the id on the rank that made it (else NULL);
 * new ones pass NULL, the id and a rank from the old size on. All call; blocks (group).
 * ncclInvalidArgument: nRanks not larger than before, a rank out of range, an id of another communicator. */
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
                          ncclConfig_t *config);
ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId, int rank, ncclComm_t *newcomm,
                           ncclConfig_t *config);

/* ---- Ending communicators ---- */

/* Wait until everything this rank has enqueued is done; then only destroy, abort and queries are left. All ranks call;
 * blocks. comm NULL: ncclSuccess. ncclInvalidArgument: finalized before, or revoked. If comm has failed, also while this
 * waited, its error is returned. */
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/* Free comm, finalizing it if that was not done: waits until everything this rank has enqueued is done (group). comm NULL:
 * ncclSuccess. The handle is dead after success. If comm has failed, also while this waited, its error is returned, and the
 * handle is left to ncclCommAbort. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/* End whatever comm is doing and free it without waiting for peers (group). From any thread, also while another is inside
 * a call on comm, but once. comm NULL: ncclSuccess. */
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/* End whatever comm is doing and refuse further communication; split, shrink, destroy, abort and queries stay. Local.
 * comm NULL: ncclSuccess. ncclInvalidArgument: flags not 0, revoked or finalized before. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);

/* Give back memory while comm is idle (flags: NCCL_SUSPEND_MEM), and take it again. All ranks call (group).
 * ncclInvalidUsage: suspended already, or not suspended; memory shared with a child. */
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t pncclCommResume(ncclComm_t comm);

/* ---- Asking communicators; none of these blocks ---- */

/* *asyncError: ncclSuccess when ready, ncclInProgress while at work, else the first failure, which stays. From any
 * thread. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);

/* Number of ranks, the device given at init, and this handle's rank. */
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank);

/* One figure about comm's memory. ncclInvalidArgument: no such figure. */
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);
ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);

/* ---- Registering buffers ---- */

/* Announce size bytes at buff for faster use; a hint. The caller gives *handle back before it frees the memory. Local. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle);

/* Give a handle back; no operation may be using the buffer. NULL: ncclSuccess. ncclInvalidUsage: no such handle. */
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle);

/* Register size bytes of ncclMemAlloc memory as a window of all ranks; winFlags: NCCL_WIN_*. All ranks call; blocks
 * (group: *win is valid after ncclGroupEnd). *win is NULL where windows are not supported, and after a failure.
 * ncclInvalidArgument: buff NULL, size 0, alignment. ncclInvalidUsage: the ranks' layouts differ. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags);

/* Every rank, when nothing uses the window any more. NULL: ncclSuccess. ncclInvalidArgument: no such window. */
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/* The address a window was registered with. ncclInvalidArgument: win NULL. */
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);
ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);

/* ---- Reductions of one's own ---- */

/* An operation of comm that multiplies each rank's input by *scalar and adds up, for datatype alone. scalar is one element of
 * datatype; residence says where. One on the device is read when an operation runs, and must be there until then. The caller
 * owns *op until ncclRedOpDestroy. Local. ncclInvalidArgument: op or scalar NULL, residence none of the two, an unknown
 * datatype. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm);

/* Give it back; operations already enqueued keep what they need. ncclInvalidArgument: op is not such an operation. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/*
 * ---- Communication ----
 *
 * Each enqueues on stream and returns (group); the result is there when the stream has got so far. Buffers are device memory, or
 * whatever the device can address, remain the caller's, and must not be touched until then. Counts are elements of datatype.
 * Nothing needs more alignment than an element. Count 0 moves nothing; then buffers may be NULL. All ranks make the same calls in
 * the same order.
 *
 * ncclInvalidArgument: datatype, op, root or peer out of range; op of another communicator or type; a NULL buffer that is
 * needed; a count of more bytes than memory has addresses; buffers that overlap in any other way than in place; a
 * communicator that has been finalized. ncclInvalidUsage: the ranks' calls do not fit together (the sentence names the
 * odd rank); a communicator that the open group makes or ends; a stream that is being captured into a graph, which
 * this version refuses (others refuse captured and uncaptured streams in one group).
 */

/* The reduction of count elements, on root alone. In place: sendbuff == recvbuff. recvbuff is not used elsewhere. */
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                         int root, ncclComm_t comm, cudaStream_t stream);

/* ncclBroadcast in place. */
ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream);

/* Root's count elements, on every rank. In place: sendbuff == recvbuff. sendbuff is not used elsewhere than on root. */
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                            ncclComm_t comm, cudaStream_t stream);

/* The reduction of count elements, on every rank. In place: sendbuff == recvbuff. */
ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream);

/* Rank r gets block r, of recvcount elements, of the reduction of nranks blocks. In place: recvbuff is block r of
 * sendbuff. */
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount, ncclDataType_t datatype,
                                ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/* Every rank's sendcount elements, on every rank, as blocks in order of rank. In place: sendbuff is block r of recvbuff. */
ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream);

/* Block j, of count elements, of rank i's sendbuff becomes block i of rank j's recvbuff. Not in place: equal
 * addresses are accepted, since benchmarks run so, but what recvbuff then holds is undefined. */
ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);

/* As ncclAllGather, on root alone. */
ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream);

/* Block r, of count elements, of root's sendbuff, on rank r. In place: recvbuff is block root of root's sendbuff. */
ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t datatype, int root,
                          ncclComm_t comm, cudaStream_t stream);

/* Count elements to peer, whose ncclRecv must ask for as many; the n-th send meets the n-th receive of a pair. Put both
 * directions of an exchange into one group. Count 0 still meets. To oneself: in one group with the receive, else
 * ncclInvalidUsage. */
ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/* Write count elements of localbuff, itself inside a symmetric window, to peerWinOffset bytes into peer's window, then
 * raise peer's signal. sigIdx, ctx and flags must be 0. */
ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin,
                           size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype, int peer,
                            ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx, unsigned int flags,
                            ncclComm_t comm, cudaStream_t stream);

/* Raise peer's signal; and let the stream wait for signals of the nDesc described peers (copied during the call). */
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream);

/* ---- Groups; they belong to the calling thread and nest ---- */

/* What follows is recorded, as one unit, until the matching end. A thread with several ranks must group their calls. */
ncclResult_t ncclGroupStart(void);
ncclResult_t pncclGroupStart(void);

/* The outermost end does what was recorded and blocks until all is launched and all inits are done. The first failure of any
 * call in the group is returned, and the rest of the group dropped. ncclInvalidUsage: no group is open; the group both uses
 * and ends a communicator. ncclInvalidArgument: blocking and nonblocking communicators mixed. */
ncclResult_t ncclGroupEnd(void);
ncclResult_t pncclGroupEnd(void);

/* End a group without doing it; *simInfo (may be NULL) gets the time it would take. Errors as ncclGroupEnd.
 * ncclInvalidArgument also: simInfo was not initialised. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo);

/* ---- Parameters; the NCCL_ variables as the library sees them ---- */

/* A handle for a full name ("NCCL_DEBUG"). ncclInvalidArgument: unknown. */
ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key);
ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key);

/* Read a value of exactly that type, else ncclInvalidArgument. A text stays until the thread's next such call. */
ncclResult_t ncclParamGetI8(ncclParamHandle_t h, int8_t *out);
ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t *out);
ncclResult_t ncclParamGetI16(ncclParamHandle_t h, int16_t *out);
ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t *out);
ncclResult_t ncclParamGetI32(ncclParamHandle_t h, int32_t *out);
ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t *out);
ncclResult_t ncclParamGetI64(ncclParamHandle_t h, int64_t *out);
ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t *out);
ncclResult_t ncclParamGetU8(ncclParamHandle_t h, uint8_t *out);
ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t *out);
ncclResult_t ncclParamGetU16(ncclParamHandle_t h, uint16_t *out);
ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t *out);
ncclResult_t ncclParamGetU32(ncclParamHandle_t h, uint32_t *out);
ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t *out);
ncclResult_t ncclParamGetU64(ncclParamHandle_t h, uint64_t *out);
ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t *out);
ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char **out);
ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char **out);

/* Copy a value's bytes. ncclInvalidArgument: maxLen bytes are too few; then *len is 0. */
ncclResult_t ncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len);
ncclResult_t pncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len);

/* A value as text, by name; the text stays until the thread's next call. ncclInvalidArgument: unknown; then *value is NULL and
 * *valueLen 0. */
ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *valueLen);
ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *valueLen);

/* The names of all parameters, in a table that stays until the thread's next call. */
ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *tableLen);
ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *tableLen);

/* Print all parameters on stdout. */
void ncclParamDumpAll(void);
void pncclParamDumpAll(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
