/* fault.c - what a kernel found wrong, told to all ranks in words. */
#include "fault.h"

#include "agreement.h"
#include "record.h"
#include "watch.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>

/* Choices, not measured: a failure is told a second late at most, and then without the late ranks' words. */
#define PATIENCE_NS 1000000000ull /* for the records of late ranks */
#define PAUSE_NS 1000000ull

/* What this rank alone can say. */
static void describe(const struct ncclComm *comm, const struct rondo_suspicion *what, char *out, size_t bytes)
{
    char name[RONDO_COMM_TEXT];
    const char *operation = rondo_operation_name(what->operation);
    unsigned long long number = what->number;

    (void)rondo_comm_text(comm, name);
    if (what->code == ncclInternalError)
        snprintf(out, bytes,
                 "%s: rank %d was given %s %llu cut in another way than its peer; please report it", name,
                 comm->rank, operation, number);
    else if (what->peer < 0) /* no peer's data: the device has recorded why, just before the launch ended */
        snprintf(out, bytes, "%s: rank %d could not run its launch that begins with %s %llu: %s", name,
                 comm->rank, operation, number, rondo_error_last());
    else
        snprintf(out, bytes,
                 "%s: rank %d expected data of %s %llu from rank %d, and got that of another operation "
                 "(%llu bytes where %llu were expected); the ranks must call the same operations in the "
                 "same order",
                 name, comm->rank, operation, number, what->peer, (unsigned long long)what->found_bytes,
                 (unsigned long long)what->expected_bytes);
}

/* What the ranks' records say. false: they have been overwritten, or the peer is at another operation
 * altogether. */
static bool explain(const struct ncclComm *comm, const struct rondo_suspicion *what, char *out, size_t bytes,
                    int *culprit_out)
{
    if (what->code != ncclInvalidUsage || what->peer < 0)
        return false;
    if (what->operation == RONDO_OP_RECV)
        return rondo_record_disagree_pair(comm, what->peer, comm->rank, what->number, out, bytes,
                                          culprit_out);
    return rondo_record_disagree(comm, what->number, out, bytes, culprit_out);
}

/* End everything, with the ranks' records if they explain it: those of this operation, or of one before it in
 * which nobody waited and whose data came now. */
static void tell(struct ncclComm *comm, const struct rondo_suspicion *what)
{
    bool is_collective =
        what->code == ncclInvalidUsage && what->peer >= 0 && what->operation != RONDO_OP_RECV;
    bool is_explained;
    uint64_t agreed = 0;
    char text[768];
    int culprit;

    is_explained = explain(comm, what, text, sizeof(text), &culprit);
    if (!is_explained && is_collective && rondo_agreement_look(comm, &agreed))
        return;
    if (!is_explained) {
        describe(comm, what, text, sizeof(text));
        culprit = what->peer;
    }
    rondo_comm_end_all(comm, what->code, culprit, "%s", text);
}

/* Whether more records may still come that say more. */
static bool is_incomplete(const struct ncclComm *comm, const struct rondo_suspicion *what)
{
    return what->code == ncclInvalidUsage && what->peer >= 0 && what->operation != RONDO_OP_RECV &&
           !rondo_record_is_complete(comm, what->number);
}

void rondo_fault_report(struct ncclComm *comm, const struct rondo_plan *plan)
{
    const struct rondo_fault *fault = &plan->fault;
    const struct rondo_work *work = fault->work < plan->args.works ? &plan->works[fault->work] : NULL;
    struct rondo_suspicion what = {
        .code = (ncclResult_t)fault->code,
        .operation =
            work && work->operation < RONDO_OP_NUM ? (enum rondo_operation)work->operation : RONDO_OP_NONE,
        .number = work ? work->number : 0,
        .peer = fault->peer >= 0 && fault->peer < comm->ranks ? fault->peer : -1,
        .expected_bytes = fault->expected_bytes,
        .found_bytes = fault->found_bytes,
        .since = rondo_clock_ns(),
    };
    char text[768];

    if (rondo_comm_is_settled(comm) || __atomic_load_n(&comm->suspicion.is_pending, __ATOMIC_ACQUIRE))
        return;
    if (!is_incomplete(comm, &what)) {
        tell(comm, &what);
        return;
    }
    comm->suspicion = what;
    __atomic_store_n(&comm->suspicion.is_pending, 1, __ATOMIC_RELEASE); /* what it is comes first */
    /* Before the launch is seen to end; and after is_pending, so that who sees the code can wait for the
     * final text. */
    describe(comm, &what, text, sizeof(text));
    rondo_comm_set_provisional_error(comm, what.code, text);
    rondo_watch_kick();
}

bool rondo_fault_look(struct ncclComm *comm, uint64_t now)
{
    if (!__atomic_load_n(&comm->suspicion.is_pending, __ATOMIC_ACQUIRE))
        return false;
    if (is_incomplete(comm, &comm->suspicion) &&
        now < comm->suspicion.since + PATIENCE_NS) /* the round may have begun before it */
        return true;
    tell(comm, &comm->suspicion);
    __atomic_store_n(&comm->suspicion.is_pending, 0, __ATOMIC_RELEASE); /* after the text */
    return false;
}

void rondo_fault_await(struct ncclComm *comm)
{
    /* The watch thread ends this; the bound is for a process in which it cannot run. */
    for (int i = 0; i < 5000 && __atomic_load_n(&comm->suspicion.is_pending, __ATOMIC_ACQUIRE); i++)
        rondo_clock_sleep_ns(PAUSE_NS);
}
