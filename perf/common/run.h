/* run.h - the state of a run in one process, and the steps of it that have files of their own. */
#ifndef PERF_RUN_H
#define PERF_RUN_H

#include "collective.h"
#include "failure.h"
#include "guard.h"
#include "options.h"
#include "processes.h"
#include "team.h"

struct perf_json;

/* One rank: a device with its buffers and its place in the communicator. */
struct perf_device {
    unsigned rank;
    int device;
    cudaStream_t stream;
    ncclComm_t comm; /* NULL before it is made and after it is aborted */
    char *send;
    char *recv;
    void *send_registration; /* handle of ncclCommRegister, or window */
    void *recv_registration;
    size_t bytes;            /* of each buffer */
    bool is_host_accessible; /* both can be read and written in place */
};

/* What everyone knows of every rank; gathered over the processes. */
struct perf_device_info {
    int rank;
    int group;
    int pid;
    int device;
    int pci_domain;
    int pci_bus;
    int pci_device;
    char host[256];
    char name[256];
    uint64_t total_bytes;
};

struct perf_run {
    struct perf_options options; /* max_bytes may have been lowered to what fits */
    const struct perf_collective *collective;
    struct perf_identity identity;
    struct perf_rendezvous *rendezvous;
    struct perf_team team;
    struct perf_watch watch;
    int local_rank; /* among the processes of this host */
    int local_processes;
    int group; /* color of NCCL_TESTS_SPLIT */
    int group_processes;
    int group_process; /* this process among those of its group */
    unsigned ranks;    /* in this group's communicator */
    bool is_cpu_device;
    ncclUniqueId unique_id;
    int device_count; /* threads * gpus */
    struct perf_device *devices;
    struct perf_device_info *infos; /* of all processes' devices */
    struct perf_json *json;         /* rank 0 with -J, else NULL */
    int64_t memory_init;            /* -M: device memory taken by communicators, buffers, operations */
    int64_t memory_buffers;
    int64_t memory_operations;
    double bus_bandwidth_sum; /* of rank 0's thread 0 */
    uint64_t bus_bandwidth_count;
    uint64_t compared; /* lines of rank 0's thread 0 in which something was compared with what it must be */
    double out_of_bounds; /* results with errors, over everything; set at the end */
    bool is_injected;     /* RONDO_PERF_INJECT has found its byte */
};

/* One thread's part. */
struct perf_worker {
    struct perf_run *run;
    int index;
    struct perf_device *devices; /* options.gpus of them */
    uint32_t round;              /* verification rounds so far: seeds the data */
    unsigned errors;             /* results with wrong elements */
    bool prints;
};

/* comms.c: devices and communicators. */
enum perf_status perf_comms_prepare(struct perf_run *run); /* devices known, infos gathered */
void perf_comms_limit_sizes(
    struct perf_run *run); /* max_bytes is what the smallest device can hold; rank 0 says so */
enum perf_status perf_comms_open(struct perf_run *run, struct perf_device *devices, int count);
void perf_comms_abort(struct perf_run *run); /* from any thread, once; ends what waits on a stream */
enum perf_status perf_comms_close(struct perf_run *run);

/* buffers.c: what the operations work on. */
enum perf_status perf_buffers_open(struct perf_run *run, struct perf_device *devices, int count);
enum perf_status perf_buffers_close(struct perf_run *run);

/* sweep.c: all types, operations, roots and sizes; every worker's thread function. */
enum perf_status perf_sweep(struct perf_worker *worker);

#endif
