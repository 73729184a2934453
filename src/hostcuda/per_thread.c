/*
 * per_thread.c - twins of the calls that take a stream, for programs built so that the default stream is the
 * calling thread's own (CUDA_API_PER_THREAD_DEFAULT_STREAM, nvcc --default-stream per-thread): NULL means
 * cudaStreamPerThread.
 */
#include "runtime.h"

static cudaStream_t own(cudaStream_t stream)
{
    return stream ? stream : cudaStreamPerThread;
}

/* A twin and its declaration: name, parameters, and what the plain function is called with. */
#define TWIN(name, parameters, ...)                                            \
    __attribute__((visibility("default"))) cudaError_t name##_ptsz parameters; \
    cudaError_t name##_ptsz parameters                                         \
    {                                                                          \
        return name(__VA_ARGS__);                                              \
    }

/* Same, of a synchronous call: queued on the thread's stream, then waited for. */
#define SYNCHRONOUS_TWIN(name, parameters, ...)                                           \
    __attribute__((visibility("default"))) cudaError_t name##_ptds parameters;            \
    cudaError_t name##_ptds parameters                                                    \
    {                                                                                     \
        cudaError_t error = name##Async(__VA_ARGS__, cudaStreamPerThread);                \
        return error == cudaSuccess ? cudaStreamSynchronize(cudaStreamPerThread) : error; \
    }

SYNCHRONOUS_TWIN(cudaMemcpy, (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind), dst, src,
                 count, kind)
SYNCHRONOUS_TWIN(cudaMemcpy2D,
                 (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                  enum cudaMemcpyKind kind),
                 dst, dpitch, src, spitch, width, height, kind)
SYNCHRONOUS_TWIN(cudaMemset, (void *devPtr, int value, size_t count), devPtr, value, count)
SYNCHRONOUS_TWIN(cudaMemset2D, (void *devPtr, size_t pitch, int value, size_t width, size_t height), devPtr,
                 pitch, value, width, height)

TWIN(cudaMemcpyAsync,
     (void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream), dst, src,
     count, kind, own(stream))
TWIN(cudaMemcpy2DAsync,
     (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
      enum cudaMemcpyKind kind, cudaStream_t stream),
     dst, dpitch, src, spitch, width, height, kind, own(stream))
TWIN(cudaMemsetAsync, (void *devPtr, int value, size_t count, cudaStream_t stream), devPtr, value, count,
     own(stream))
TWIN(cudaMemset2DAsync,
     (void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream), devPtr, pitch,
     value, width, height, own(stream))
TWIN(cudaMallocAsync, (void **devPtr, size_t size, cudaStream_t stream), devPtr, size, own(stream))
TWIN(cudaFreeAsync, (void *devPtr, cudaStream_t stream), devPtr, own(stream))
#if CUDART_VERSION < 13000
TWIN(cudaMemPrefetchAsync, (const void *devPtr, size_t count, int dstDevice, cudaStream_t stream), devPtr,
     count, dstDevice, own(stream))
#else
TWIN(cudaMemPrefetchAsync,
     (const void *devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
      cudaStream_t stream),
     devPtr, count, location, flags, own(stream))
#endif

TWIN(cudaStreamSynchronize, (cudaStream_t stream), own(stream))
TWIN(cudaStreamQuery, (cudaStream_t stream), own(stream))
TWIN(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags), own(stream), event,
     flags)
TWIN(cudaStreamGetPriority, (cudaStream_t stream, int *priority), own(stream), priority)
TWIN(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags), own(stream), flags)
TWIN(cudaStreamGetDevice, (cudaStream_t stream, int *device), own(stream), device)
TWIN(cudaStreamAddCallback,
     (cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned int flags), own(stream),
     callback, userData, flags)
TWIN(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *userData), own(stream), fn, userData)
TWIN(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, own(stream))
TWIN(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event,
     own(stream), flags)

TWIN(cudaLaunchKernel,
     (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream),
     func, gridDim, blockDim, args, sharedMem, own(stream))
TWIN(cudaLaunchCooperativeKernel,
     (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream),
     func, gridDim, blockDim, args, sharedMem, own(stream))
TWIN(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *func, void **args), config, func,
     args) /* no kernel runs, so the stream inside config does not matter */
TWIN(cudaGraphLaunch, (cudaGraphExec_t graphExec, cudaStream_t stream), graphExec, own(stream))
TWIN(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), own(stream), mode)
TWIN(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *pGraph), own(stream), pGraph)
TWIN(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status), own(stream), status)
#if CUDART_VERSION < 13000
TWIN(cudaStreamGetCaptureInfo_v2,
     (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
      const cudaGraphNode_t **dependencies, size_t *count),
     own(stream), status, id, graph, dependencies, count)
TWIN(cudaStreamGetCaptureInfo_v3,
     (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
      const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
     own(stream), status, id, graph, dependencies, edges, count)
#else
TWIN(cudaStreamGetCaptureInfo,
     (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
      const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
     own(stream), status, id, graph, dependencies, edges, count)
#endif
