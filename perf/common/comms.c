/* comms.c - which devices this process has, and the communicators over all of them. */
#include "run.h"
#include "sizes.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int first_device(const struct perf_run *run)
{
    int chosen = run->options.first_device;

    return chosen >= 0 ? chosen : run->local_rank * run->device_count;
}

static enum perf_status describe_device(struct perf_run *run, int i, struct perf_device_info *info)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, run->devices[i].device);

    if (error != cudaSuccess)
        return perf_fail_cuda("cudaGetDeviceProperties", error);
    *info = (struct perf_device_info){
        .rank = (int)run->devices[i].rank,
        .group = run->group,
        .pid = (int)getpid(),
        .device = run->devices[i].device,
        .pci_domain = properties.pciDomainID,
        .pci_bus = properties.pciBusID,
        .pci_device = properties.pciDeviceID,
        .total_bytes = properties.totalGlobalMem,
    };
    snprintf(info->host, sizeof(info->host), "%s", perf_host_name());
    snprintf(info->name, sizeof(info->name), "%s", properties.name);
    return PERF_OK;
}

/* All processes' devices. */
static enum perf_status gather_infos(struct perf_run *run)
{
    int all = run->identity.size * run->device_count;
    struct perf_device_info *mine = calloc((size_t)run->device_count, sizeof(*mine));
    enum perf_status status = PERF_OK;

    run->infos = calloc((size_t)all, sizeof(*run->infos));
    if (!mine || !run->infos)
        status = perf_fail(PERF_INTERNAL, "no memory to list %d devices", all);
    for (int i = 0; i < run->device_count && status == PERF_OK; i++)
        status = describe_device(run, i, &mine[i]);
    if (status == PERF_OK)
        status = perf_rendezvous_exchange(run->rendezvous, "list devices", mine,
                                          (size_t)run->device_count * sizeof(*mine), run->infos);
    free(mine);
    return status;
}

void perf_comms_limit_sizes(struct perf_run *run)
{
    uint64_t smallest = UINT64_MAX;
    size_t limit;

    for (int i = 0; i < run->identity.size * run->device_count; i++)
        smallest = run->infos[i].total_bytes < smallest ? run->infos[i].total_bytes : smallest;
    limit = perf_size_limit(smallest, run->options.check_rounds > 0);
    if (run->options.max_bytes <= limit)
        return;
    run->options.max_bytes = limit;
    if (run->identity.rank == 0)
        printf("# Reducing maxBytes to %zu due to memory limitation\n", limit);
}

enum perf_status perf_comms_prepare(struct perf_run *run)
{
    int first = first_device(run), available = 0;
    cudaError_t error = cudaGetDeviceCount(&available);

    if (error != cudaSuccess)
        return perf_fail_cuda("cudaGetDeviceCount", error);
    if (first + run->device_count > available)
        return perf_fail(
            PERF_UNSUPPORTED,
            "rank %d needs devices %d to %d, there are %d; use fewer of -t, -g and processes, or without a "
            "GPU set RONDO_CPU_DEVICES to what is needed",
            run->identity.rank, first, first + run->device_count - 1, available);
    run->is_cpu_device = dlsym(RTLD_DEFAULT, "rondo_hostcuda_device") != NULL;
    run->devices = calloc((size_t)run->device_count, sizeof(*run->devices));
    if (!run->devices)
        return perf_fail(PERF_INTERNAL, "no memory for %d devices", run->device_count);
    for (int i = 0; i < run->device_count; i++) {
        run->devices[i].device = first + i;
        run->devices[i].rank = (unsigned)(run->group_process * run->device_count + i);
    }
    return gather_infos(run);
}

static enum perf_status make_stream(struct perf_run *run, struct perf_device *device)
{
    cudaError_t error = cudaSetDevice(device->device);

    if (error != cudaSuccess)
        return perf_fail_cuda("cudaSetDevice", error);
    if (run->options.null_stream)
        return PERF_OK;
    error = cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking);
    return error == cudaSuccess ? PERF_OK : perf_fail_cuda("cudaStreamCreateWithFlags", error);
}

static ncclResult_t init_one(struct perf_run *run, struct perf_device *device, ncclComm_t *comm)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.nvlinkCentricSched = 1;
    if (run->options.cta_policy >= 0)
        config.CTAPolicy = run->options.cta_policy;
    if (run->collective->max_p2p_peers > 0)
        config.maxP2pPeers = run->collective->max_p2p_peers;
    return ncclCommInitRankConfig(comm, (int)run->ranks, run->unique_id, (int)device->rank, &config);
}

enum perf_status perf_comms_open(struct perf_run *run, struct perf_device *devices, int count)
{
    ncclComm_t *comms = calloc((size_t)count, sizeof(*comms));
    const char *what = "ncclGroupStart";
    enum perf_status status =
        comms ? PERF_OK : perf_fail(PERF_INTERNAL, "no memory for %d communicators", count);
    ncclResult_t result, end;

    for (int i = 0; i < count && status == PERF_OK; i++)
        status = make_stream(run, &devices[i]);
    if (status != PERF_OK) {
        free(comms);
        return status;
    }
    result = ncclGroupStart();
    for (int i = 0; i < count && result == ncclSuccess; i++) {
        what = "ncclCommInitRankConfig";
        cudaSetDevice(devices[i].device);
        result = init_one(run, &devices[i], &comms[i]);
    }
    end = ncclGroupEnd();
    if (result == ncclSuccess && end != ncclSuccess) {
        what = "ncclCommInitRankConfig (ncclGroupEnd)";
        result = end;
    }
    if (result != ncclSuccess)
        status = perf_fail_nccl(what, result, NULL);
    for (int i = 0; i < count && status == PERF_OK;
         i++) /* pairs with the acquire loads of the watch thread */
        __atomic_store_n(&devices[i].comm, comms[i], __ATOMIC_RELEASE);
    free(comms);
    return status;
}

void perf_comms_abort(struct perf_run *run)
{
    for (int i = 0; i < run->device_count; i++) {
        ncclComm_t comm =
            __atomic_exchange_n(&run->devices[i].comm, NULL, __ATOMIC_ACQ_REL); /* one of us aborts it */

        if (comm)
            ncclCommAbort(comm);
    }
}

static enum perf_status destroy_comms(struct perf_run *run)
{
    ncclResult_t result = ncclGroupStart(), end;

    for (int i = 0; i < run->device_count; i++) {
        ncclComm_t comm =
            __atomic_exchange_n(&run->devices[i].comm, NULL, __ATOMIC_ACQ_REL); /* as in abort */

        if (comm && result == ncclSuccess)
            result = ncclCommDestroy(comm);
    }
    end = ncclGroupEnd();
    if (result == ncclSuccess)
        result = end;
    return result == ncclSuccess ? PERF_OK : perf_fail_nccl("ncclCommDestroy", result, NULL);
}

enum perf_status perf_comms_close(struct perf_run *run)
{
    enum perf_status status = PERF_OK;

    if (__atomic_load_n(&run->devices[0].comm, __ATOMIC_ACQUIRE)) /* not aborted */
        status = destroy_comms(run);
    for (int i = 0; i < run->device_count; i++) {
        if (!run->devices[i].stream)
            continue;
        cudaSetDevice(run->devices[i].device);
        cudaStreamDestroy(run->devices[i].stream);
        run->devices[i].stream = NULL;
    }
    return status;
}
