/* departure.c - ranks that have left while this one waits. */
#include "departure.h"

#define PATIENCE_NS 1000000000ull /* a choice, not measured: see departure.h */

/* Whether this wait will end although rank has left. A rank closes only after its operations have ended, so
 * what this one needs of it is here already. */
static bool has_done_its_part(const struct ncclComm *comm, const struct rondo_wait *wait, int rank,
                              uint64_t goodbye)
{
    return rondo_wait_has_called(comm, wait, rank) && (rank != wait->peer || goodbye == RONDO_GOODBYE_CLOSED);
}

bool rondo_departure_look(struct ncclComm *comm, const struct rondo_wait *wait, uint64_t now)
{
    static const char *const ways[] = {[RONDO_GOODBYE_CLOSED] = "has finalized or destroyed its communicator",
                                       [RONDO_GOODBYE_ABORTED] = "has aborted its communicator",
                                       [RONDO_GOODBYE_EXITED] = "has exited"};

    for (int r = 0; r < comm->ranks; r++) {
        uint64_t goodbye = rondo_wait_needs(comm, wait, r)
                               ? __atomic_load_n(&comm->members[r].page->goodbye, __ATOMIC_ACQUIRE)
                               : 0;
        char who[RONDO_RANK_TEXT], name[RONDO_COMM_TEXT];

        if (goodbye == RONDO_GOODBYE_NONE || goodbye > RONDO_GOODBYE_EXITED ||
            has_done_its_part(comm, wait, r, goodbye))
            continue;
        if (comm->look.gone_since == 0)
            comm->look.gone_since = now;
        if (now - comm->look.gone_since < PATIENCE_NS)
            return false;
        rondo_comm_end_all(comm, ncclRemoteError, r, "%s %s, but %s %llu of %s on rank %d still waits for it",
                           rondo_comm_rank_text(comm, r, who), ways[goodbye],
                           rondo_operation_name(wait->operation), (unsigned long long)wait->number,
                           rondo_comm_text(comm, name), comm->rank);
        return true;
    }
    return false;
}
