/*
 * line.h - a counter that one side polls and the other advances, and how a sleeping poller is woken.
 *
 * A line lives with the side that polls it, alone in 128 bytes. On the CPU device the poller may be a
 * sleeping thread. The protocol, which needs no system call while nobody sleeps:
 *
 *     publisher (line_publish)                        sleeper (the CPU device's engine)
 *     1. store value, release  ........ pairs ......  5. load value, acquire
 *     2. fence, sequentially consistent               1. read its doorbell's sequence
 *     3. load waiter; nonzero: ring that doorbell     2. store its doorbell's number + 1 into waiter
 *                                                     3. fence, sequentially consistent
 *                                                     4. load value again; arrived: do not sleep
 *                                                     5. sleep while the sequence is the one read in 1
 *
 * Of the two fences one comes first: either the publisher sees the waiter, or the sleeper sees the value.
 *
 * Words that carry their own flags (LL, LL128) have no counter, but a line whose waiter serves them: what is
 * stored in step 1 and loaded in step 4 is then the words, wherever they are and in whatever order their
 * protocol asks for; the fences see to it that nobody sleeps for ever.
 */
#ifndef RONDO_DEVICE_LINE_H
#define RONDO_DEVICE_LINE_H

#include <stdint.h>

#define RONDO_LINE_BYTES 128

struct rondo_line {
    uint64_t value;
    uint32_t waiter; /* 0: nobody sleeps; k: the polling process's doorbell k - 1; RONDO_WAITER_MANY: all */
    uint32_t unused;
    unsigned char pad[RONDO_LINE_BYTES - 16];
} __attribute__((aligned(RONDO_LINE_BYTES)));

#define RONDO_WAITER_MANY UINT32_MAX

/* What a thread sleeps on: a futex word, shared between processes. */
struct rondo_doorbell {
    uint32_t sequence; /* advanced by every ring; the futex word */
    uint32_t sleepers; /* threads in (or about to enter) the futex wait; 0 lets a ring skip the system call */
    unsigned char pad[56];
} __attribute__((aligned(64)));

/* As many threads of a process can have one for themselves; more share, and are woken for each other. A
 * choice, not measured: it makes a switchboard of 16 KiB. */
#define RONDO_DOORBELLS 256

/* One a process, in a sealed memfd that peers map. */
struct rondo_switchboard {
    struct rondo_doorbell bells[RONDO_DOORBELLS];
};

#ifdef __cplusplus
extern "C" {
#endif

/* Wake who registered as waiter on a line polled by the process that owns board. Any thread; never blocks. */
void rondo_doorbell_ring(struct rondo_switchboard *board, uint32_t waiter);

#ifdef __cplusplus
}
#endif

/* Steps 2 and 3 above, after step 1 was done with words of their own. */
static inline void rondo_line_wake(struct rondo_line *line, struct rondo_switchboard *board)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint32_t waiter = __atomic_load_n(&line->waiter, __ATOMIC_RELAXED);
    if (waiter != 0)
        rondo_doorbell_ring(board, waiter);
}

/* Advance a line so that all earlier writes of this thread may be read by who sees the value. The three
 * steps above. */
static inline void rondo_line_publish(struct rondo_line *line, uint64_t value,
                                      struct rondo_switchboard *board)
{
    __atomic_store_n(&line->value, value, __ATOMIC_RELEASE);
    rondo_line_wake(line, board);
}

/* Pairs with rondo_line_publish: after it returns v, everything written before v was published may be
 * read. */
static inline uint64_t rondo_line_read(const struct rondo_line *line)
{
    return __atomic_load_n(&line->value, __ATOMIC_ACQUIRE);
}

#endif
