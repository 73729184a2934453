/*
 * death.c - peers whose processes have ended, or run another program, without a goodbye.
 *
 * The end of a process is certain: its pidfd says so. After exec() the process lives on, without the memory,
 * threads and descriptors that were the rank's: its life pipe hangs up and it beats no more. A process that
 * was told to close descriptors which it did not open hangs up too, but it goes on beating and will tell of
 * it itself (watch.c); and one that ends hangs up a moment before its pidfd is readable. So a hang-up alone
 * proves nothing.
 */
#include "death.h"

#include <poll.h>

static bool has_event(int fd, short event)
{
    struct pollfd process = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&process, 1, 0) == 1 && (process.revents & event);
}

static void end_without(struct ncclComm *comm, int rank, const char *how)
{
    struct rondo_member *member = &comm->members[rank];
    char who[RONDO_RANK_TEXT], name[RONDO_COMM_TEXT];

    __atomic_store_n(&member->is_dead, true, __ATOMIC_RELAXED);
    if (__atomic_load_n(&member->page->goodbye, __ATOMIC_ACQUIRE) == RONDO_GOODBYE_NONE)
        rondo_comm_end_all(comm, ncclRemoteError, rank,
                           "%s of %s %s; abort the communicator and make a new one without it",
                           rondo_comm_rank_text(comm, rank, who), rondo_comm_text(comm, name), how);
}

/* Take up what the descriptors say. */
static void look_at_descriptors(struct ncclComm *comm, uint64_t now)
{
    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_member *member = &comm->members[r];

        if (member->is_dead || !member->reach)
            continue;
        if (has_event(member->transport->death(member->reach), POLLIN))
            end_without(comm, r, "died");
        else if (member->hung_up == 0 && has_event(member->transport->life(member->reach), POLLHUP))
            member->hung_up = now;
    }
}

bool rondo_death_look(struct ncclComm *comm, uint64_t now, bool has_news)
{
    bool is_unsure = false;

    if (has_news)
        look_at_descriptors(comm, now);
    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_member *member = &comm->members[r];
        uint64_t heard = comm->look.pulses[r].at;

        if (member->hung_up == 0 || member->is_dead ||
            __atomic_load_n(&member->page->goodbye, __ATOMIC_ACQUIRE) != RONDO_GOODBYE_NONE)
            continue;
        if (now - (heard > member->hung_up ? heard : member->hung_up) > RONDO_SILENCE_NS)
            end_without(comm, r,
                        "replaced its program (exec), or closed the library's descriptors and does not run");
        else
            is_unsure = true;
    }
    return is_unsure;
}
