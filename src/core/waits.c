/*
 * waits.c - who waits for whom.
 *
 * Every list of a launch that cannot go on has a note. A list that has none is running, or has ended. So a
 * rank all of whose notes name ranks that wait themselves, and so on round, is waiting for ever: only a
 * launch could change a note, and each launch in the set waits.
 */
#include "waits.h"

#include "record.h"

#include "base/host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rondo_wait_read(const struct ncclComm *comm, const struct rondo_rank_page *page, int i,
                     struct rondo_wait *wait_out)
{
    const struct rondo_note *note = &page->notes[i];
    /* The kernel stores `wait` last and clears it first; see the kernels' port. */
    uint8_t kind = __atomic_load_n(&note->wait, __ATOMIC_ACQUIRE);

    if (kind != RONDO_WAIT_SEND && kind != RONDO_WAIT_RECV)
        return false;
    struct rondo_wait wait = {
        .peer = __atomic_load_n(&note->peer, __ATOMIC_RELAXED),
        .sequence = __atomic_load_n(&note->sequence, __ATOMIC_RELAXED),
        .number = __atomic_load_n(&note->number, __ATOMIC_RELAXED),
        .kind = (enum rondo_wait_kind)kind,
        .operation = (enum rondo_operation)__atomic_load_n(&note->operation, __ATOMIC_RELAXED),
    };
    if (wait.peer < 0 || wait.peer >= comm->ranks || wait.operation >= RONDO_OP_NUM)
        return false;
    *wait_out = wait;
    return true;
}

bool rondo_wait_needs(const struct ncclComm *comm, const struct rondo_wait *wait, int rank)
{
    return rank != comm->rank && (!rondo_operation_is_message(wait->operation) || wait->peer == rank);
}

bool rondo_wait_has_called(const struct ncclComm *comm, const struct rondo_wait *wait, int rank)
{
    const struct rondo_rank_page *page = comm->members[rank].page;
    struct rondo_record record;

    if (rondo_operation_is_message(wait->operation))
        return rondo_record_read_pair(page, wait->operation == RONDO_OP_SEND ? RONDO_OP_RECV : RONDO_OP_SEND,
                                      comm->rank, wait->number, &record);
    return __atomic_load_n(&page->enqueued, __ATOMIC_ACQUIRE) >= wait->number;
}

bool rondo_wait_is_busy(const struct rondo_rank_page *page)
{
    return __atomic_load_n(&page->launched, __ATOMIC_ACQUIRE) !=
           __atomic_load_n(&page->landed, __ATOMIC_ACQUIRE);
}

uint64_t rondo_wait_signature(const struct ncclComm *comm, int rank)
{
    const struct rondo_rank_page *page = comm->members[rank].page;
    uint64_t landed = __atomic_load_n(&page->landed, __ATOMIC_ACQUIRE);
    uint64_t hash = rondo_hash(&landed, sizeof(landed), 0);
    bool waits = false;

    for (int i = 0; i < RONDO_NOTES; i++) {
        struct rondo_wait wait;

        if (!rondo_wait_read(comm, page, i, &wait))
            continue;
        uint64_t facts[4] = {(uint64_t)i << 32 | (uint32_t)wait.peer, wait.sequence, wait.number,
                             (uint64_t)wait.kind << 8 | (uint64_t)wait.operation};
        hash = rondo_hash(facts, sizeof(facts), hash);
        waits = true;
    }
    return waits ? hash | 1 : 0;
}

/* Add everybody rank waits for to members. false: it does not wait, so that it may yet move. */
static bool add_waited_for(const struct ncclComm *comm, int rank, bool *members)
{
    const struct rondo_rank_page *page = comm->members[rank].page;
    bool waits = false;

    if (!rondo_wait_is_busy(page))
        return false;
    for (int i = 0; i < RONDO_NOTES; i++) {
        struct rondo_wait wait;

        if (rondo_wait_read(comm, page, i, &wait)) {
            members[wait.peer] = true;
            waits = true;
        }
    }
    return waits;
}

uint64_t rondo_wait_closure(const struct ncclComm *comm, bool *members_out)
{
    uint64_t hash = 0;
    int seen = 0, size = 1;
    bool *expanded = calloc((size_t)comm->ranks, sizeof(*expanded));

    if (!expanded)
        return 0;
    memset(members_out, 0, (size_t)comm->ranks * sizeof(*members_out));
    members_out[comm->rank] = true;
    while (seen < size) {
        for (int r = 0; r < comm->ranks; r++) {
            if (!members_out[r] || expanded[r])
                continue;
            if (!add_waited_for(comm, r, members_out)) {
                free(expanded);
                return 0;
            }
            expanded[r] = true;
            seen++;
        }
        size = 0;
        for (int r = 0; r < comm->ranks; r++)
            size += members_out[r];
    }
    free(expanded);
    for (int r = 0; r < comm->ranks; r++) {
        uint64_t signature = members_out[r] ? rondo_wait_signature(comm, r) : 0;

        hash = rondo_hash(&signature, sizeof(signature), hash);
    }
    return hash | 1;
}

bool rondo_wait_first(const struct ncclComm *comm, int rank, struct rondo_wait *wait_out)
{
    for (int i = 0; i < RONDO_NOTES; i++) {
        if (rondo_wait_read(comm, comm->members[rank].page, i, wait_out))
            return true;
    }
    return false;
}

static void append(char *out, size_t bytes, size_t *used, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(out + *used, bytes - *used, format, arguments);
    va_end(arguments);
    *used = length < 0 || *used + (size_t)length >= bytes ? bytes - 1 : *used + (size_t)length;
}

/* The lowest rank on the cycle that following waits from `from` leads into, -1 if it leads nowhere. */
static int find_cycle(const struct rondo_wait *waits, int ranks, int from)
{
    int lowest;

    for (int i = 0; i < ranks; i++) { /* after as many steps as there are ranks it is on the cycle */
        if (waits[from].kind == RONDO_WAIT_NONE)
            return -1;
        from = waits[from].peer;
    }
    lowest = from;
    for (int at = waits[from].peer; at != from; at = waits[at].peer)
        lowest = at < lowest ? at : lowest;
    return lowest;
}

static void tell_cycle(const struct rondo_wait *waits, int start, char *out, size_t bytes)
{
    size_t used = 0;
    int at = start;

    append(out, bytes, &used, "%d", start);
    do {
        at = waits[at].peer;
        append(out, bytes, &used, " -> %d", at);
    } while (at != start);
    do {
        append(out, bytes, &used, "%s rank %d in %s %llu waits %s rank %d", at == start ? ":" : ",", at,
               rondo_operation_name(waits[at].operation), (unsigned long long)waits[at].number,
               waits[at].kind == RONDO_WAIT_SEND ? "for room to send to" : "for data from", waits[at].peer);
        at = waits[at].peer;
    } while (at != start);
}

void rondo_wait_cycle_text(const struct ncclComm *comm, char *out, size_t bytes)
{
    struct rondo_wait *waits = calloc((size_t)comm->ranks, sizeof(*waits));
    int start = -1;

    for (int r = 0; waits && r < comm->ranks; r++)
        (void)rondo_wait_first(comm, r, &waits[r]);
    if (waits)
        start = find_cycle(waits, comm->ranks, comm->rank);
    if (start >= 0)
        tell_cycle(waits, start, out, bytes);
    else
        snprintf(out, bytes, "among ranks that wait for each other");
    free(waits);
}
