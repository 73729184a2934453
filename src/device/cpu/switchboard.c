/* switchboard.c - the doorbells of this process, in a sealed memfd that peers map to ring them. */
#include "cpu/switchboard.h"

#include "base/error.h"
#include "cpu/arena.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rondo_switchboard *own;
static int own_fd = -1;
static uint32_t users[RONDO_DOORBELLS]; /* threads that have each bell */

struct rondo_switchboard *rondo_switchboard_own(void)
{
    struct rondo_switchboard *board =
        __atomic_load_n(&own, __ATOMIC_ACQUIRE); /* pairs with the store below */

    if (board)
        return board;
    pthread_mutex_lock(&lock);
    if (!own) {
        void *base;
        if (rondo_sealed_create("doorbells", sizeof(struct rondo_switchboard), &own_fd, &base) == ncclSuccess)
            __atomic_store_n(&own, base, __ATOMIC_RELEASE);
    }
    board = own;
    pthread_mutex_unlock(&lock);
    return board;
}

ncclResult_t rondo_switchboard_export(int *fd_out)
{
    if (!rondo_switchboard_own())
        return ncclSystemError;
    return rondo_sealed_export("doorbells", own_fd, fd_out);
}

ncclResult_t rondo_switchboard_map(int fd, struct rondo_switchboard **board_out)
{
    void *base;
    ncclResult_t rc = rondo_sealed_map("doorbells", fd, sizeof(struct rondo_switchboard), &base);

    if (rc == ncclSuccess)
        *board_out = base;
    return rc;
}

ncclResult_t rondo_switchboard_unmap(struct rondo_switchboard *board)
{
    if (board && munmap(board, sizeof(*board)) != 0)
        return rondo_fail(ncclInvalidArgument, "unmap a peer's doorbells at %p: %s", (void *)board,
                          strerror(errno));
    return ncclSuccess;
}

uint32_t rondo_doorbell_take(uint32_t *waiter_out)
{
    uint32_t least = 0;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 1; i < RONDO_DOORBELLS && users[least] > 0; i++)
        least = users[i] < users[least] ? i : least;
    *waiter_out = users[least]++ == 0 ? least + 1 : RONDO_WAITER_MANY;
    pthread_mutex_unlock(&lock);
    return least;
}

void rondo_doorbell_give_back(uint32_t bell)
{
    pthread_mutex_lock(&lock);
    users[bell]--;
    pthread_mutex_unlock(&lock);
}

/* Shared between processes: no FUTEX_PRIVATE_FLAG. */
static void wake_all(struct rondo_doorbell *bell)
{
    syscall(SYS_futex, &bell->sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The sequence is advanced even when nobody seems to sleep, for a thread that has read it and not slept yet.
 * Sequentially consistent, like rondo_doorbell_prepare: one of the two sees the other. */
static void ring_one(struct rondo_doorbell *bell)
{
    __atomic_fetch_add(&bell->sequence, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&bell->sleepers, __ATOMIC_SEQ_CST) != 0)
        wake_all(bell);
}

void rondo_doorbell_ring(struct rondo_switchboard *board, uint32_t waiter)
{
    if (!board || waiter == 0)
        return;
    if (waiter <= RONDO_DOORBELLS) { /* the number comes from memory that other processes write */
        ring_one(&board->bells[waiter - 1]);
        return;
    }
    /* All: those without a sleeper can be left out, since a thread counts itself before it enlists. */
    for (uint32_t i = 0; i < RONDO_DOORBELLS; i++) {
        if (__atomic_load_n(&board->bells[i].sleepers, __ATOMIC_SEQ_CST) != 0)
            ring_one(&board->bells[i]);
    }
}

uint32_t rondo_doorbell_prepare(struct rondo_doorbell *bell)
{
    __atomic_fetch_add(&bell->sleepers, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&bell->sequence, __ATOMIC_SEQ_CST);
}

void rondo_doorbell_sleep(struct rondo_doorbell *bell, uint32_t sequence, uint64_t deadline)
{
    struct timespec limit = {.tv_sec = (time_t)(deadline / 1000000000),
                             .tv_nsec = (long)(deadline % 1000000000)};

    /* Returns at once when the sequence has moved; early returns (a signal) are as good as a ring: callers
     * look again. */
    syscall(SYS_futex, &bell->sequence, FUTEX_WAIT_BITSET, sequence, deadline == UINT64_MAX ? NULL : &limit,
            NULL, FUTEX_BITSET_MATCH_ANY);
}

void rondo_doorbell_done(struct rondo_doorbell *bell)
{
    __atomic_fetch_sub(&bell->sleepers, 1, __ATOMIC_SEQ_CST);
}

void rondo_line_enlist(struct rondo_line *line, uint32_t waiter)
{
    uint32_t found =
        __atomic_load_n(&line->waiter, __ATOMIC_RELAXED); /* ordered by the sleeper's fence, line.h step 3 */
    uint32_t wanted;

    do {
        if (found == waiter || found == RONDO_WAITER_MANY)
            return;
        wanted = found == 0 ? waiter : RONDO_WAITER_MANY;
    } while (!__atomic_compare_exchange_n(&line->waiter, &found, wanted, true, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
}

void rondo_line_delist(struct rondo_line *line, uint32_t waiter)
{
    if (waiter != RONDO_WAITER_MANY && __atomic_load_n(&line->waiter, __ATOMIC_RELAXED) == waiter)
        __atomic_compare_exchange_n(&line->waiter, &waiter, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
