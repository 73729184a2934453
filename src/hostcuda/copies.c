/*
 * copies.c - cudaMemcpy, cudaMemset and their relatives: checks, then work for the device's queues.
 *
 * A copy's direction says nothing the device needs, as both sides share the addresses; it is only checked to
 * be one. A synchronous copy is work of the legacy stream that the caller waits for, so it is ordered as CUDA
 * orders it.
 */
#include "runtime.h"

/* A rectangle: height rows of width bytes, pitch bytes apart. */
struct rows {
    char *base;
    size_t pitch;
};

static cudaError_t check_kind(enum cudaMemcpyKind kind)
{
    if ((unsigned)kind > cudaMemcpyDefault)
        return rondo_runtime_fail(cudaErrorInvalidMemcpyDirection, "copy in direction %d: there are 0 to 4",
                                  (int)kind);
    return cudaSuccess;
}

static cudaError_t queue_copy(const struct rondo_call *call, int device, void *stream, void *to,
                              const void *from, size_t bytes)
{
    cudaError_t error = rondo_runtime_check_span(call, to, bytes, "destination of a copy");

    if (error == cudaSuccess)
        error = rondo_runtime_check_span(call, from, bytes, "source of a copy");
    if (error != cudaSuccess || bytes == 0)
        return error;
    return rondo_runtime_translate(call->cpu->copy_async(device, stream, to, from, bytes),
                                   cudaErrorInvalidResourceHandle);
}

static cudaError_t wait_for(const struct rondo_call *call, int device, void *stream)
{
    return rondo_runtime_translate(call->cpu->device.synchronize(device, stream),
                                   cudaErrorInvalidResourceHandle);
}

static cudaError_t copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, void *stream,
                        bool is_async)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess)
        error = check_kind(kind);
    if (error == cudaSuccess)
        error = queue_copy(&call, call.device, stream, to, from, bytes);
    if (error == cudaSuccess && !is_async)
        error = wait_for(&call, call.device, stream);
    return error;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    return rondo_runtime_record(copy(dst, src, count, kind, NULL, false));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return rondo_runtime_record(copy(dst, src, count, kind, stream, true));
}

static cudaError_t enter_peer_copy(int to_device, int from_device, struct rondo_call *call_out)
{
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, call_out);

    if (error == cudaSuccess)
        error = rondo_runtime_check_device(call_out, to_device);
    if (error == cudaSuccess)
        error = rondo_runtime_check_device(call_out, from_device);
    return error;
}

/* Ordered with all work of both devices: waits for the source's, then runs and waits on the destination. */
static cudaError_t copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    struct rondo_call call;
    cudaError_t error = enter_peer_copy(to_device, from_device, &call);

    if (error == cudaSuccess)
        error = wait_for(&call, from_device, NULL);
    if (error == cudaSuccess)
        error = queue_copy(&call, to_device, NULL, to, from, bytes);
    if (error == cudaSuccess)
        error = wait_for(&call, to_device, NULL);
    return error;
}

cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
    return rondo_runtime_record(copy_peer(dst, dstDevice, src, srcDevice, count));
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
                                cudaStream_t stream)
{
    struct rondo_call call;
    cudaError_t error = enter_peer_copy(dstDevice, srcDevice, &call);

    if (error == cudaSuccess)
        error = queue_copy(&call, call.device, stream, dst, src, count);
    return rondo_runtime_record(error);
}

/* The bytes from the first row's first to the last row's last; false when they do not fit in a size_t. */
static bool rows_span(size_t pitch, size_t width, size_t height, size_t *bytes_out)
{
    if (width == 0 || height == 0) {
        *bytes_out = 0;
        return true;
    }
    return !__builtin_mul_overflow(pitch, height - 1, bytes_out) &&
           !__builtin_add_overflow(*bytes_out, width, bytes_out);
}

static cudaError_t check_rows(const struct rondo_call *call, const void *base, size_t pitch, size_t width,
                              size_t height, const char *role)
{
    size_t bytes = 0;

    if (width > pitch && height > 1)
        return rondo_runtime_fail(cudaErrorInvalidPitchValue,
                                  "%s: rows of %zu bytes do not fit a pitch of %zu", role, width, pitch);
    if (!rows_span(pitch, width, height, &bytes))
        return rondo_runtime_fail(cudaErrorInvalidValue,
                                  "%s: %zu rows of pitch %zu are more than there are addresses", role, height,
                                  pitch);
    return rondo_runtime_check_span(call, base, bytes, role);
}

static cudaError_t copy_rows(struct rows to, struct rows from, size_t width, size_t height,
                             enum cudaMemcpyKind kind, void *stream, bool is_async)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess)
        error = check_kind(kind);
    if (error == cudaSuccess)
        error = check_rows(&call, to.base, to.pitch, width, height, "destination of a 2D copy");
    if (error == cudaSuccess)
        error = check_rows(&call, from.base, from.pitch, width, height, "source of a 2D copy");
    if (error == cudaSuccess && to.pitch == width && from.pitch == width && height > 1) {
        width *= height; /* one piece; cannot overflow, the span was checked */
        height = 1;
    }
    for (size_t row = 0; error == cudaSuccess && width > 0 && row < height; row++)
        error = rondo_runtime_translate(call.cpu->copy_async(call.device, stream, to.base + row * to.pitch,
                                                             from.base + row * from.pitch, width),
                                        cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess && !is_async)
        error = wait_for(&call, call.device, stream);
    return error;
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind)
{
    struct rows to = {dst, dpitch}, from = {(char *)(uintptr_t)src, spitch};

    return rondo_runtime_record(copy_rows(to, from, width, height, kind, NULL, false));
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct rows to = {dst, dpitch}, from = {(char *)(uintptr_t)src, spitch};

    return rondo_runtime_record(copy_rows(to, from, width, height, kind, stream, true));
}

/* Whether the host may look at the memory without synchronizing: then a fill must be done when the call
 * returns. */
static bool is_host_visible(const struct rondo_call *call, const void *address)
{
    struct rondo_pointer_info info;
    struct rondo_range range;

    if (call->context->range_find(address, &range))
        return true;
    return call->cpu->device.query_pointer(address, &info) != ncclSuccess || info.kind != RONDO_MEMORY_DEVICE;
}

static cudaError_t fill_rows(struct rows to, int value, size_t width, size_t height, void *stream,
                             bool is_async)
{
    struct rondo_call call;
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_CONTEXT, &call);

    if (error == cudaSuccess)
        error = check_rows(&call, to.base, to.pitch, width, height, "destination of a fill");
    if (error == cudaSuccess && to.pitch == width && height > 1) {
        width *= height; /* one piece; cannot overflow, the span was checked */
        height = 1;
    }
    for (size_t row = 0; error == cudaSuccess && width > 0 && row < height; row++)
        error = rondo_runtime_translate(
            call.cpu->fill_async(call.device, stream, to.base + row * to.pitch, value & 0xff, width),
            cudaErrorInvalidResourceHandle);
    if (error == cudaSuccess && !is_async && width > 0 && height > 0 && is_host_visible(&call, to.base))
        error = wait_for(&call, call.device, stream);
    return error;
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    struct rows to = {devPtr, count};

    return rondo_runtime_record(fill_rows(to, value, count, 1, NULL, false));
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    struct rows to = {devPtr, count};

    return rondo_runtime_record(fill_rows(to, value, count, 1, stream, true));
}

cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
    struct rows to = {devPtr, pitch};

    return rondo_runtime_record(fill_rows(to, value, width, height, NULL, false));
}

cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    struct rows to = {devPtr, pitch};

    return rondo_runtime_record(fill_rows(to, value, width, height, stream, true));
}
