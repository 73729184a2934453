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

static bool is_gone(const struct ncclComm *comm, const struct rondo_wait *wait, int rank,
                    uint64_t *goodbye_out)
{
    /* Acquire: pairs with who says goodbye, so that a stop it has raised here before is seen after. */
    uint64_t goodbye = rondo_wait_needs(comm, wait, rank)
                           ? __atomic_load_n(&comm->members[rank].page->goodbye, __ATOMIC_ACQUIRE)
                           : RONDO_GOODBYE_NONE;

    *goodbye_out = goodbye;
    return goodbye != RONDO_GOODBYE_NONE && goodbye <= RONDO_GOODBYE_EXITED &&
           !has_done_its_part(comm, wait, rank, goodbye);
}

/* Who was seen gone first, or the lowest rank that is gone, or -1. Others may leave because of the first. */
static int find_gone(const struct ncclComm *comm, const struct rondo_wait *wait, uint64_t *goodbye_out)
{
    if (comm->look.gone_since != 0 && is_gone(comm, wait, comm->look.gone, goodbye_out))
        return comm->look.gone;
    for (int r = 0; r < comm->ranks; r++) {
        if (is_gone(comm, wait, r, goodbye_out))
            return r;
    }
    return -1;
}

bool rondo_departure_look(struct ncclComm *comm, const struct rondo_wait *wait, uint64_t now)
{
    static const char *const ways[] = {[RONDO_GOODBYE_CLOSED] = "has finalized or destroyed its communicator",
                                       [RONDO_GOODBYE_ABORTED] = "has aborted its communicator",
                                       [RONDO_GOODBYE_EXITED] = "has exited"};
    uint64_t goodbye;
    int gone = find_gone(comm, wait, &goodbye);
    char who[RONDO_RANK_TEXT], name[RONDO_COMM_TEXT];

    if (gone < 0)
        return false;
    if (comm->look.gone_since == 0 || gone != comm->look.gone) {
        comm->look.gone = gone;
        comm->look.gone_since = now;
    }
    if (now - comm->look.gone_since < PATIENCE_NS)
        return false;
    if (rondo_comm_error(comm) != ncclSuccess) /* it has left because all have been ended, this one too */
        return true;
    rondo_comm_end_all(comm, ncclRemoteError, gone, "%s %s, but %s %llu of %s on rank %d still waits for it",
                       rondo_comm_rank_text(comm, gone, who), ways[goodbye],
                       rondo_operation_name(wait->operation), (unsigned long long)wait->number,
                       rondo_comm_text(comm, name), comm->rank);
    return true;
}
