/*
 * comm_init.c - making a communicator: the call, the job that the group runs, and undoing it.
 */
#include "comm_init.h"

#include "comm_close.h"
#include "comm_excuse.h"
#include "comm_meet.h"
#include "group.h"
#include "roster.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "base/log.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"

#include <stdio.h>
#include <stdlib.h>

/* Argument of the job. */
struct init {
    ncclUniqueId id;
    ncclComm_t *handle;    /* the caller's variable */
    struct ncclComm *comm; /* a reference, NULL once it has failed */
    bool is_aborted;       /* by the caller, who does not want to wait */
};

static void set_handle(struct init *init, ncclComm_t value)
{
    __atomic_store_n(init->handle, value,
                     __ATOMIC_RELEASE); /* an abort on another thread may be reading it */
}

/* Everything of a communicator that never became one. */
static void discard(struct init *init)
{
    rondo_comm_dismantle(init->comm);
    set_handle(init, NULL);
    rondo_roster_remove(init->comm);
    rondo_comm_put(init->comm);
    init->comm = NULL;
}

static ncclResult_t meet_ranks(struct init *init)
{
    struct ncclComm *comm = init->comm;
    struct rondo_bootstrap *bootstrap;
    uint64_t start = rondo_clock_ns();
    uint64_t deadline = rondo_clock_deadline((uint64_t)rondo_param_int(RONDO_PARAM_INIT_TIMEOUT));
    ncclResult_t rc =
        rondo_bootstrap_join(&init->id, comm->rank, comm->ranks, deadline, &comm->init_stop, &bootstrap);

    if (rc != ncclSuccess)
        return rc;
    uint64_t joined = rondo_clock_ns();
    rc = rondo_comm_meet(comm, bootstrap, deadline);
    rondo_bootstrap_destroy(bootstrap);
    if (rc == ncclSuccess)
        rondo_log(RONDO_LOG_INFO, RONDO_LOG_INIT,
                  "rank %d of %d on %s device %d is ready: %u channels, %llu-byte slots; %.1f ms to join, "
                  "%.1f ms to connect",
                  comm->rank, comm->ranks, comm->ops->name, comm->device, comm->layout.channels,
                  (unsigned long long)comm->layout.ring_slot_bytes, (double)(joined - start) / 1e6,
                  (double)(rondo_clock_ns() - joined) / 1e6);
    return rc;
}

/* Waits below only know that they were to stop. */
static ncclResult_t report_stop(const struct ncclComm *comm, const char *when)
{
    char name[RONDO_COMM_TEXT];

    return rondo_fail(ncclInvalidUsage, "make rank %d of %d of %s: %s %s", comm->rank, comm->ranks,
                      rondo_comm_text(comm, name),
                      __atomic_load_n(&comm->init_stop, __ATOMIC_ACQUIRE) == RONDO_INIT_ABORTED
                          ? "ncclCommAbort ended its creation"
                          : "its creation was ended, as the group it is in failed,",
                      when);
}

/* The rank will not meet the others, who might wait for it. */
static void excuse(const struct init *init, ncclResult_t code, const char *reason, uint64_t deadline)
{
    rondo_bootstrap_excuse(&init->id, init->comm->rank, init->comm->ranks, code, reason, deadline, NULL);
}

static ncclResult_t run_init(struct rondo_job *job)
{
    struct init *init = job->argument;
    ncclResult_t rc;

    if (rondo_roster_begin_init(init->comm)) {
        rc = meet_ranks(init);
        if (rc == ncclInvalidUsage && __atomic_load_n(&init->comm->init_stop, __ATOMIC_ACQUIRE) != 0)
            rc = report_stop(init->comm, "before all ranks had met");
    } else {
        rc = report_stop(init->comm, "before it had begun");
        excuse(init, rc, rondo_error_own(), rondo_clock_ns() + RONDO_NOTICE_NS);
    }
    if (rc != ncclSuccess) {
        init->is_aborted = __atomic_load_n(&init->comm->init_stop, __ATOMIC_ACQUIRE) == RONDO_INIT_ABORTED;
        discard(init);
        return rc;
    }
    __atomic_store_n(&init->comm->page->owner, job->thread, __ATOMIC_RELAXED);
    rondo_roster_ready(init->comm);
    rondo_comm_put(init->comm); /* the roster's reference remains */
    return ncclSuccess;
}

static void stop_init(struct rondo_job *job)
{
    rondo_roster_stop_init(job->handle);
}

/* The group failed. What was made is ended at once, since the other ranks may never be made. */
static void cancel_init(struct rondo_job *job, const struct rondo_group_failure *failure)
{
    struct init *init = job->argument;
    char reason[RONDO_GROUP_TEXT];

    if (job->has_run) {
        if (init->comm)
            (void)rondo_comm_abort(job->handle);
        set_handle(init, NULL);
        return;
    }
    snprintf(reason, sizeof(reason), "its group failed: %.*s", (int)sizeof(reason) - 40, failure->text);
    excuse(init, failure->code, reason, failure->deadline);
    discard(init);
}

static void settle_init(struct rondo_job *job, uint64_t deadline)
{
    struct init *init = job->argument;

    if (!init->is_aborted)
        rondo_bootstrap_settle(&init->id, deadline);
}

static ncclResult_t record_job(ncclComm_t *comm_out, const ncclUniqueId *id, struct ncclComm *comm)
{
    struct init *init = malloc(sizeof(*init));
    struct rondo_job job = {.run = run_init,
                            .stop = stop_init,
                            .cancel = cancel_init,
                            .settle = settle_init,
                            .handle = comm,
                            .argument = init};
    ncclResult_t rc;

    if (!init)
        return rondo_fail(ncclSystemError, "make rank %d of a communicator: out of memory", comm->rank);
    *init = (struct init){.id = *id, .handle = comm_out, .comm = comm};
    rondo_roster_add(comm);
    set_handle(init, comm);
    rc = rondo_group_add_job(&job);
    if (rc != ncclSuccess) {
        set_handle(init, NULL);
        rondo_roster_remove(comm);
        free(init);
    }
    return rc;
}

static ncclResult_t check_arguments(const char *function, const ncclComm_t *comm_out, int ranks, int rank)
{
    ncclResult_t rc = rondo_roster_check_process(function);

    if (rc != ncclSuccess)
        return rc;
    if (ranks < 1)
        return rondo_fail(ncclInvalidArgument, "%s: nranks is %d, but must be at least 1", function, ranks);
    if (rank < 0 || rank >= ranks)
        return rondo_fail(ncclInvalidArgument, "%s: rank %d is outside 0..%d", function, rank, ranks - 1);
    if (!comm_out)
        return rondo_fail(ncclInvalidArgument, "%s: the communicator's address is NULL", function);
    return ncclSuccess;
}

/* Once a process, in the form that log readers look for. */
static void announce_version(void)
{
    static uint32_t is_announced;

    if (rondo_log_enabled(RONDO_LOG_VERSION, 0) && !__atomic_exchange_n(&is_announced, 1, __ATOMIC_RELAXED))
        rondo_log(RONDO_LOG_VERSION, 0, "NCCL version %d.%d.%d%s (Rondo)", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH,
                  NCCL_SUFFIX);
}

static ncclResult_t prepare(const char *function, int ranks, const ncclUniqueId *id, int rank,
                            const struct rondo_config *config, int device, struct ncclComm **comm_out)
{
    const struct rondo_device_ops *ops;
    ncclResult_t rc;

    if (!config->is_blocking)
        return rondo_fail(ncclInvalidUsage,
                          "%s: nonblocking communicators (blocking=0, or NCCL_COMM_BLOCKING=0) are not in "
                          "this version; leave blocking at 1",
                          function);
    announce_version();
    rc = rondo_device_select(&ops);
    if (rc == ncclSuccess && device < 0)
        rc = ops->get_current(&device);
    if (rc == ncclSuccess)
        rc = rondo_comm_create(rank, ranks, device, config, ops, comm_out);
    if (rc == ncclSuccess)
        (*comm_out)->id = rondo_hash(id, sizeof(*id), 0);
    return rc;
}

ncclResult_t rondo_init_record(const char *function, ncclComm_t *comm_out, int ranks, const ncclUniqueId *id,
                               int rank, const ncclConfig_t *settings, int device)
{
    struct rondo_config config;
    struct ncclComm *comm = NULL;
    ncclResult_t rc = check_arguments(function, comm_out, ranks, rank);

    if (comm_out) /* another thread may be looking for the handle already */
        __atomic_store_n(comm_out, NULL, __ATOMIC_RELAXED);
    if (rc == ncclSuccess)
        rc = rondo_config_read(settings, &config);
    if (rc != ncclSuccess)
        return rc;
    rc = prepare(function, ranks, id, rank, &config, device, &comm);
    if (rc == ncclSuccess) {
        rc = record_job(comm_out, id, comm);
        if (rc != ncclSuccess)
            rondo_comm_put(comm);
    }
    if (rc != ncclSuccess) /* the arguments are right, so the other ranks are on their way */
        rc = rondo_excuse_record(id, ranks, rank, rc);
    return rc;
}
