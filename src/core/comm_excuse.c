/*
 * comm_excuse.c - telling the other ranks that this one cannot start.
 *
 * The root is told, and fails for all at once; whether the others have come yet or not does not matter.
 */
#include "comm_excuse.h"

#include "group.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"

#include <stdio.h>
#include <stdlib.h>

struct excuse {
    ncclUniqueId id;
    int rank, ranks;
    ncclResult_t code;
    uint32_t stop; /* atomic: no longer try to reach the root */
    char reason[RONDO_GROUP_TEXT];
};

static void tell(struct excuse *excuse, uint64_t deadline)
{
    rondo_bootstrap_excuse(&excuse->id, excuse->rank, excuse->ranks, excuse->code, excuse->reason, deadline,
                           &excuse->stop);
}

static ncclResult_t run_excuse(struct rondo_job *job)
{
    struct excuse *excuse = job->argument;

    tell(excuse, rondo_clock_ns() + RONDO_NOTICE_NS);
    return rondo_fail(excuse->code, "%s", excuse->reason);
}

static void stop_excuse(struct rondo_job *job)
{
    struct excuse *excuse = job->argument;

    __atomic_store_n(&excuse->stop, 1, __ATOMIC_RELEASE); /* pairs with the notice's load */
}

static void cancel_excuse(struct rondo_job *job, const struct rondo_group_failure *failure)
{
    if (!job->has_run)
        tell(job->argument, failure->deadline);
}

static void settle_excuse(struct rondo_job *job, uint64_t deadline)
{
    struct excuse *excuse = job->argument;

    rondo_bootstrap_settle(&excuse->id, deadline);
}

ncclResult_t rondo_excuse_record(const ncclUniqueId *id, int ranks, int rank, ncclResult_t code)
{
    struct excuse *excuse = malloc(sizeof(*excuse));

    if (!excuse)
        return code;
    *excuse = (struct excuse){.id = *id, .rank = rank, .ranks = ranks, .code = code};
    snprintf(excuse->reason, sizeof(excuse->reason), "%s", rondo_error_own());
    struct rondo_job job = {
        .run = run_excuse,
        .stop = stop_excuse,
        .cancel = cancel_excuse,
        .settle = settle_excuse,
        .handle = (ncclComm_t)(void *)excuse, /* no communicator's: jobs of one handle wait for each other */
        .argument = excuse,
    };
    if (rondo_group_add_job(&job) == ncclSuccess)
        return ncclSuccess;
    free(excuse);
    return code;
}
