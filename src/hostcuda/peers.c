/*
 * peers.c - access of one device to another's memory. All devices of the process share its address space, so
 * every pair can; enabling is bookkeeping, kept because programs rely on the second enable being an error.
 */
#include "runtime.h"

static cudaError_t enter_pair(int device, int peer, struct rondo_call *call_out)
{
    cudaError_t error = rondo_runtime_enter(RONDO_NEED_DEVICE, call_out);

    if (error == cudaSuccess)
        error = rondo_runtime_check_device(call_out, device);
    if (error == cudaSuccess)
        error = rondo_runtime_check_device(call_out, peer);
    return error;
}

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    struct rondo_call call;
    cudaError_t error = enter_pair(device, peerDevice, &call);

    if (error == cudaSuccess && !canAccessPeer)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *canAccessPeer = device != peerDevice;
    return rondo_runtime_record(error);
}

static cudaError_t set_peer(int peer, bool is_enabled)
{
    struct rondo_call call;
    cudaError_t error = enter_pair(0, peer, &call);

    if (error != cudaSuccess)
        return error;
    if (peer == call.device)
        return rondo_runtime_fail(cudaErrorInvalidDevice, "change the access of device %d to itself", peer);
    call.context->state(call.device); /* peers belong to the primary context */
    if (!call.context->peer_set(call.device, peer, is_enabled))
        return is_enabled ? cudaErrorPeerAccessAlreadyEnabled : cudaErrorPeerAccessNotEnabled;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    return rondo_runtime_record(flags != 0 ? cudaErrorInvalidValue : set_peer(peerDevice, true));
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
    return rondo_runtime_record(set_peer(peerDevice, false));
}

static cudaError_t get_pair_attribute(int *value_out, enum cudaDeviceP2PAttr attr, int device, int peer)
{
    struct rondo_call call;
    cudaError_t error = enter_pair(device, peer, &call);

    if (error != cudaSuccess)
        return error;
    if (!value_out)
        return cudaErrorInvalidValue;
    if (device == peer)
        return cudaErrorInvalidDevice;
    switch (attr) {
    case cudaDevP2PAttrPerformanceRank:
    case cudaDevP2PAttrCudaArrayAccessSupported:
        *value_out = 0;
        return cudaSuccess;
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported:
        *value_out = 1;
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice)
{
    return rondo_runtime_record(get_pair_attribute(value, attr, srcDevice, dstDevice));
}
