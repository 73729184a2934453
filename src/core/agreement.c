/* agreement.c - whether the ranks have called the same collectives, also those that nobody waits in. */
#include "agreement.h"

#include "record.h"

/* The newest collective that all ranks have called. Acquire: its records come before it. */
static uint64_t newest_of_all(const struct ncclComm *comm)
{
    uint64_t newest = UINT64_MAX;

    for (int r = 0; r < comm->ranks; r++) {
        uint64_t enqueued = __atomic_load_n(&comm->members[r].page->enqueued, __ATOMIC_ACQUIRE);

        if (enqueued < newest)
            newest = enqueued;
    }
    return newest;
}

/* Where the histories up to newest parted, if the records are still there, and else only who differs. */
static bool explain(const struct ncclComm *comm, uint64_t agreed, uint64_t newest, char *text, size_t bytes,
                    int *culprit_out)
{
    uint64_t oldest = newest < RONDO_RECORDS ? 1 : newest - RONDO_RECORDS + 1; /* that is still there */

    for (uint64_t number = oldest > agreed ? oldest : agreed + 1; number <= newest; number++) {
        if (rondo_record_disagree(comm, number, text, bytes, culprit_out))
            return true;
    }
    return rondo_record_disagree_before(comm, newest, text, bytes, culprit_out);
}

bool rondo_agreement_look(struct ncclComm *comm, uint64_t *agreed)
{
    uint64_t newest = newest_of_all(comm);
    struct rondo_record own, other;
    bool differs = false;
    char text[768];
    int culprit;

    if (newest <= *agreed || !rondo_record_read(comm->page, newest, &own))
        return false;
    for (int r = 0; r < comm->ranks; r++) {
        if (!rondo_record_read(comm->members[r].page, newest, &other))
            return false;
        differs |= other.history != own.history;
    }
    if (!differs) {
        *agreed = newest;
        return false;
    }
    if (!explain(comm, *agreed, newest, text, sizeof(text), &culprit))
        return false; /* the records have just been overwritten */
    rondo_comm_end_all(comm, ncclInvalidUsage, culprit, "%s", text);
    return true;
}
