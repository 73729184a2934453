/*
 * graphs.c - stream capture, graphs, and handles for other processes: what hostcuda does not have, and says
 * so.
 *
 * Questions have true answers: nothing is being captured. Requests fail with cudaErrorNotSupported and a
 * text.
 */
#include "runtime.h"

static cudaError_t refuse(const char *function, const char *why)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error == cudaSuccess)
        error = rondo_runtime_fail(cudaErrorNotSupported, "%s: %s", function, why);
    return rondo_runtime_record(error);
}

#define NO_GRAPHS "hostcuda has no stream capture and no graphs; queue the work itself"
#define NO_IPC "hostcuda gives no handles to other processes; let the communicator move the data"

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)stream;
    (void)mode;
    return refuse("cudaStreamBeginCapture", NO_GRAPHS);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
    (void)stream;
    (void)pGraph;
    return refuse("cudaStreamEndCapture", NO_GRAPHS);
}

/* A stream that exists is not being captured. */
static cudaError_t check_stream(cudaStream_t stream)
{
    struct rondo_call call;
    int device = 0;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, &call);

    if (error != cudaSuccess || (uintptr_t)stream <= (uintptr_t)cudaStreamPerThread)
        return error;
    return rondo_runtime_translate(call.cpu->device.stream_device(stream, &device),
                                   cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
    cudaError_t error = pCaptureStatus ? check_stream(stream) : cudaErrorInvalidValue;

    if (error == cudaSuccess)
        *pCaptureStatus = cudaStreamCaptureStatusNone;
    return rondo_runtime_record(error);
}

/* Of the outputs only the status is written when nothing is being captured, as CUDA has it. */
#if CUDART_VERSION < 13000
#undef cudaStreamGetCaptureInfo
__attribute__((visibility("default"))) cudaError_t
cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id);

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id)
{
    (void)id;
    return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                        unsigned long long *id_out, cudaGraph_t *graph_out,
                                        const cudaGraphNode_t **dependencies_out, size_t *numDependencies_out)
{
    (void)id_out;
    (void)graph_out;
    (void)dependencies_out;
    (void)numDependencies_out;
    return cudaStreamIsCapturing(stream, captureStatus_out);
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                        unsigned long long *id_out, cudaGraph_t *graph_out,
                                        const cudaGraphNode_t **dependencies_out,
                                        const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    (void)id_out;
    (void)graph_out;
    (void)dependencies_out;
    (void)edgeData_out;
    (void)numDependencies_out;
    return cudaStreamIsCapturing(stream, captureStatus_out);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                size_t numDependencies, unsigned int flags)
{
    (void)stream;
    (void)dependencies;
    (void)numDependencies;
    (void)flags;
    return refuse("cudaStreamUpdateCaptureDependencies", NO_GRAPHS);
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                     unsigned long long *id_out, cudaGraph_t *graph_out,
                                     const cudaGraphNode_t **dependencies_out,
                                     const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    (void)id_out;
    (void)graph_out;
    (void)dependencies_out;
    (void)edgeData_out;
    (void)numDependencies_out;
    return cudaStreamIsCapturing(stream, captureStatus_out);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *dependencyData,
                                                size_t numDependencies, unsigned int flags)
{
    (void)stream;
    (void)dependencies;
    (void)dependencyData;
    (void)numDependencies;
    (void)flags;
    return refuse("cudaStreamUpdateCaptureDependencies", NO_GRAPHS);
}
#endif

/* The mode forbids nothing while nothing can be captured; it is kept so that callers get back what they set.
 */
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static _Thread_local enum cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;

    if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
        return rondo_runtime_record(cudaErrorInvalidValue);
    enum cudaStreamCaptureMode old = current;
    current = *mode;
    *mode = old;
    return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
    (void)pGraph;
    (void)flags;
    return refuse("cudaGraphCreate", NO_GRAPHS);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
    (void)pGraphExec;
    (void)graph;
    (void)flags;
    return refuse("cudaGraphInstantiate", NO_GRAPHS);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
    (void)graphExec;
    (void)stream;
    return refuse("cudaGraphLaunch", NO_GRAPHS);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
    (void)graphExec;
    return refuse("cudaGraphExecDestroy", NO_GRAPHS);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    (void)graph;
    return refuse("cudaGraphDestroy", NO_GRAPHS);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
    (void)handle;
    (void)devPtr;
    return refuse("cudaIpcGetMemHandle", NO_IPC);
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
    (void)devPtr;
    (void)handle;
    (void)flags;
    return refuse("cudaIpcOpenMemHandle", NO_IPC);
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
    (void)devPtr;
    return refuse("cudaIpcCloseMemHandle", NO_IPC);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    (void)handle;
    (void)event;
    return refuse("cudaIpcGetEventHandle", NO_IPC);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    (void)event;
    (void)handle;
    return refuse("cudaIpcOpenEventHandle", NO_IPC);
}
