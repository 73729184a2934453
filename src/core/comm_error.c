/*
 * comm_error.c - how a communicator fails: its first error stays, and reaches all its ranks with one text.
 *
 * Who finds a failure writes the text into a rank's page and then raises its stop line, by compare-and-swap
 * from 0. The owner's kernels see the line and end; the owner reads code and text when a launch ends, at its
 * next call, or when its watch thread looks.
 */
#include "comm.h"

#include "fault.h"

#include "base/clock.h"
#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* 50 ms for what takes microseconds unless its thread is held up; a choice. */
#define STOP_LOOKS 500
#define STOP_LOOK_NS UINT64_C(100000)

/* The text is in both places before the code is in one: who sees the code finds a sentence. */
static void set_error(struct ncclComm *comm, ncclResult_t code, const char *text, bool is_provisional)
{
    bool is_first, is_better;

    pthread_mutex_lock(&comm->lock);
    is_first = comm->error == ncclSuccess;
    is_better = comm->is_provisional && !is_provisional && comm->error == code;
    if (is_first || is_better) {
        snprintf(comm->error_text, sizeof(comm->error_text), "%s", text);
        comm->is_provisional = is_provisional;
        (void)rondo_fail(code, "%s", text);
    }
    if (is_first)
        __atomic_store_n(&comm->error, code, __ATOMIC_RELEASE); /* pairs with rondo_comm_error() */
    pthread_mutex_unlock(&comm->lock);
}

void rondo_comm_set_error(struct ncclComm *comm, ncclResult_t code, const char *text)
{
    set_error(comm, code, text, false);
}

void rondo_comm_set_provisional_error(struct ncclComm *comm, ncclResult_t code, const char *text)
{
    set_error(comm, code, text, true);
}

bool rondo_comm_is_settled(struct ncclComm *comm)
{
    bool is_settled;

    pthread_mutex_lock(&comm->lock);
    is_settled = comm->error != ncclSuccess && !comm->is_provisional;
    pthread_mutex_unlock(&comm->lock);
    return is_settled;
}

/* Another rank is writing its verdict and raises stop next: without this its text might come too late for who
 * sees ours. It may die meanwhile, so this wait is short. */
static void await_stop(const struct rondo_rank_page *page)
{
    for (int i = 0; i < STOP_LOOKS && __atomic_load_n(&page->stop.value, __ATOMIC_RELAXED) == 0; i++)
        rondo_clock_sleep_ns(STOP_LOOK_NS);
}

/* Raise one stop line. The text is only seen by who finds the bit in the value, so a claim that was lost
 * costs the text alone. */
static void raise_stop(struct rondo_rank_page *page, struct rondo_switchboard *board, uint32_t code,
                       int culprit, const char *text)
{
    uint64_t value;
    uint64_t expected = 0;
    uint32_t unclaimed = 0;

    if (text && __atomic_compare_exchange_n(&page->verdict_claim, &unclaimed, 1, false, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
        snprintf(page->verdict, sizeof(page->verdict), "%s", text);
        code |= RONDO_STOP_TEXT;
    } else if (text) {
        await_stop(page);
    }
    value = RONDO_STOP_VALUE(code, culprit);
    /* Release: the text comes first. Pairs with the acquire in rondo_line_read(). */
    if (__atomic_compare_exchange_n(&page->stop.value, &expected, value, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
        rondo_line_publish(&page->stop, value, board);
}

void rondo_comm_stop(struct ncclComm *comm, uint32_t code)
{
    raise_stop(comm->page, comm->members[comm->rank].board, code, comm->rank, NULL);
}

void rondo_comm_end_all(struct ncclComm *comm, ncclResult_t code, int culprit, const char *format, ...)
{
    char text[RONDO_VERDICT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    rondo_comm_set_error(comm, code, text);
    raise_stop(comm->page, comm->members[comm->rank].board, (uint32_t)code, culprit, text);
    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_member *member = &comm->members[r];

        if (r != comm->rank && member->page)
            raise_stop(member->page, member->board, (uint32_t)code, culprit, text);
    }
}

/* Copy a text that another process wrote: bounded, and printable whatever it holds. */
static void copy_verdict(const struct rondo_rank_page *page, char *out, size_t bytes)
{
    size_t length = strnlen(page->verdict, RONDO_VERDICT_BYTES);

    if (length >= bytes)
        length = bytes - 1;
    for (size_t i = 0; i < length; i++)
        out[i] = isprint((unsigned char)page->verdict[i]) ? page->verdict[i] : '?';
    out[length] = '\0';
}

/* Turn what a peer, or an abort, has raised into this rank's error. A stop without a text may be our own
 * kernel's, whose launch has not landed yet; fault.c says it better then. */
static void notice_stop(struct ncclComm *comm)
{
    uint64_t value = rondo_line_read(&comm->page->stop);
    uint32_t code = (uint32_t)value & ~RONDO_STOP_TEXT;
    int culprit = (int)(value >> 32) - 1;
    char text[RONDO_VERDICT_BYTES];
    char who[RONDO_RANK_TEXT];
    char name[RONDO_COMM_TEXT];

    if (value == 0)
        return;
    if (code == RONDO_STOP_ABORT) {
        snprintf(text, sizeof(text), "%s was aborted on rank %d", rondo_comm_text(comm, name), comm->rank);
        rondo_comm_set_error(comm, ncclInvalidUsage, text);
        return;
    }
    if (code == ncclSuccess || code >= ncclNumResults)
        code = ncclInternalError;
    if ((uint32_t)value & RONDO_STOP_TEXT) {
        copy_verdict(comm->page, text, sizeof(text));
        rondo_comm_set_error(comm, (ncclResult_t)code, text);
        return;
    }
    if (culprit >= 0 && culprit < comm->ranks)
        snprintf(text, sizeof(text), "%s was ended because of %s", rondo_comm_text(comm, name),
                 rondo_comm_rank_text(comm, culprit, who));
    else
        snprintf(text, sizeof(text), "%s was ended by another rank", rondo_comm_text(comm, name));
    rondo_comm_set_provisional_error(comm, (ncclResult_t)code, text);
}

ncclResult_t rondo_comm_error(struct ncclComm *comm)
{
    ncclResult_t error = __atomic_load_n(&comm->error, __ATOMIC_ACQUIRE);

    /* Acquire: pairs with the release in fault.c. The stop that is raised then is our own kernel's, without a
     * text. */
    if (error != ncclSuccess || !comm->page || __atomic_load_n(&comm->suspicion.is_pending, __ATOMIC_ACQUIRE))
        return error;
    notice_stop(comm);
    return __atomic_load_n(&comm->error, __ATOMIC_ACQUIRE);
}

ncclResult_t rondo_comm_check(struct ncclComm *comm)
{
    ncclResult_t error;

    rondo_fault_await(comm);
    error = rondo_comm_error(comm);
    if (error == ncclSuccess)
        return ncclSuccess;
    pthread_mutex_lock(&comm->lock);
    error = rondo_fail(error, "%s", comm->error_text);
    pthread_mutex_unlock(&comm->lock);
    return error;
}
