/*
 * port_cpu.h - the port of the CPU device: one lane a block, which is a fiber. See port.h for the contract.
 *
 * All that a kernel needs from the rest of the library it gets from struct rondo_lane, so that a build for
 * one instruction set refers to no function of another.
 */
#ifndef RONDO_KERNELS_PORT_CPU_H
#define RONDO_KERNELS_PORT_CPU_H

#include "device/lane.h"

#define RONDO_INLINE static inline __attribute__((always_inline))
#define RONDO_MEMBER inline __attribute__((always_inline))
#define RONDO_OUTLINE static __attribute__((noinline, unused)) /* not every unit uses every loop */
#define RONDO_OUTLINED_MEMBER __attribute__((noinline))
#define RONDO_SPAN __attribute__((noinline))
#define RONDO_INDEPENDENT _Pragma("GCC ivdep")

#include "kernels/plain_access.h"
#include "kernels/vector_cpu.h"

namespace RONDO_KERNELS
{

struct machine {
    struct rondo_lane *lane;
};

RONDO_INLINE unsigned lane_index()
{
    return 0;
}

RONDO_INLINE unsigned lane_count()
{
    return 1;
}

RONDO_INLINE void barrier()
{
}

RONDO_INLINE bool agree(bool verdict)
{
    return verdict;
}

RONDO_INLINE bool agree_all(bool verdict)
{
    return verdict;
}

/* A warp of one lane. */
constexpr unsigned WARP_LANES = 1;

RONDO_INLINE unsigned warp_lane()
{
    return 0;
}

RONDO_INLINE unsigned warp_index()
{
    return 0;
}

template <class T> RONDO_INLINE T shuffle(T value, unsigned)
{
    return value;
}

RONDO_INLINE bool vote_all(bool yes)
{
    return yes;
}

template <class P> RONDO_INLINE P load_pack(const void *at)
{
    return load_bytes<P>(at);
}

template <class P> RONDO_INLINE void store_pack(void *at, const P &value)
{
    store_bytes(at, value);
}

/* Every CPU sees what every other wrote: scopes make no difference here. */
template <scope S = scope::SYSTEM, class T> RONDO_INLINE T load_relaxed(const T *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

template <scope S = scope::SYSTEM, class T> RONDO_INLINE void store_relaxed(T *word, T value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

template <scope S> RONDO_INLINE void fence()
{
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
}

RONDO_INLINE bool stop_raised(const machine &m)
{
    return __atomic_load_n(&m.lane->stop->value, __ATOMIC_RELAXED) != 0;
}

/* The acquire pairs with the release in publish() of the other end. */
RONDO_INLINE bool has_reached(const struct rondo_line *line, uint64_t target)
{
    return (int64_t)(__atomic_load_n(&line->value, __ATOMIC_ACQUIRE) - target) >= 0;
}

RONDO_INLINE bool wait_until(const machine &m, struct rondo_line *line, uint64_t target)
{
    return m.lane->ops->wait(m.lane, line, target);
}

/* Step 2 and 3 of line.h: the fence orders the value before the look for a sleeper. Pairs with the sleeper's
 * fence. */
RONDO_INLINE void wake(const machine &m, struct rondo_line *line, struct rondo_switchboard *board)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint32_t waiter = __atomic_load_n(&line->waiter, __ATOMIC_RELAXED);
    if (waiter != 0)
        m.lane->ops->ring(board, waiter);
}

/* The release pairs with has_reached() and with the acquire in the lane's wait. */
RONDO_INLINE void publish(const machine &m, struct rondo_line *line, uint64_t value,
                          struct rondo_switchboard *board)
{
    __atomic_store_n(&line->value, value, __ATOMIC_RELEASE);
    wake(m, line, board);
}

/* The release lets who sees the stop read the fault behind it. */
RONDO_INLINE void raise_stop(const machine &m, struct rondo_rank_page *page, uint64_t value,
                             struct rondo_switchboard *board)
{
    uint64_t none = 0;

    if (__atomic_compare_exchange_n(&page->stop.value, &none, value, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED))
        wake(m, &page->stop, board);
}

RONDO_INLINE void enter_work(const machine &, const struct rondo_work *, uint32_t)
{
}

RONDO_INLINE void breathe(const machine &m)
{
    m.lane->ops->yield(m.lane);
}

RONDO_INLINE bool wait_flag(const machine &m, struct rondo_line *line, const uint32_t *flag, uint32_t value,
                            unsigned &polls)
{
    polls++;
    return m.lane->ops->wait_flag(m.lane, line, flag, value);
}

RONDO_INLINE void announce(const machine &m, struct rondo_line *line, struct rondo_switchboard *board)
{
    wake(m, line, board);
}

/* Pairs with the watcher's acquire load of the same word. */
template <class T> RONDO_INLINE void store_last(T *word, T value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

RONDO_INLINE bool claim(uint32_t *word)
{
    uint32_t none = 0;

    return __atomic_compare_exchange_n(word, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

RONDO_INLINE struct ll_word load_ll(const struct ll_word *from)
{
    uint64_t bits = __atomic_load_n((const uint64_t *)from, __ATOMIC_RELAXED);

    return {(uint32_t)bits, (uint32_t)(bits >> 32)};
}

RONDO_INLINE void store_ll(struct ll_word *to, struct ll_word word)
{
    __atomic_store_n((uint64_t *)to, word.data | (uint64_t)word.flag << 32, __ATOMIC_RELAXED);
}

RONDO_INLINE struct ll_pair load_ll_pair(const struct ll_pair *from)
{
    return {{load_ll(&from->word[0]), load_ll(&from->word[1])}};
}

RONDO_INLINE void store_ll_pair(struct ll_pair *to, const struct ll_pair &pair)
{
    store_ll(&to->word[0], pair.word[0]);
    store_ll(&to->word[1], pair.word[1]);
}

/* One lane holds a line. CPUs move no 128 bytes at once, so the flag is released after the words it vouches
 * for, and acquired before them: that is all that the contract asks for. */
constexpr unsigned LINE_LANES = 1, LINE_WORDS = 16;

struct line_part {
    uint64_t word[LINE_WORDS];
};

RONDO_INLINE struct line_part load_line(const void *line)
{
    const uint64_t *words = (const uint64_t *)line;
    struct line_part part = {};

    if (!words)
        return part;
    part.word[LINE_WORDS - 1] = __atomic_load_n(&words[LINE_WORDS - 1], __ATOMIC_ACQUIRE);
    for (unsigned k = 0; k < LINE_WORDS - 1; k++)
        part.word[k] = __atomic_load_n(&words[k], __ATOMIC_RELAXED);
    return part;
}

RONDO_INLINE void store_line(void *line, const struct line_part &part)
{
    uint64_t *words = (uint64_t *)line;

    if (!words)
        return;
    for (unsigned k = 0; k < LINE_WORDS - 1; k++)
        __atomic_store_n(&words[k], part.word[k], __ATOMIC_RELAXED);
    __atomic_store_n(&words[LINE_WORDS - 1], part.word[LINE_WORDS - 1], __ATOMIC_RELEASE);
}

/* The C library's copy: it knows the CPU's best way, and fences the streaming stores it may use. With two
 * destinations the copy goes in pieces that stay in the nearest cache, so that the source is read from memory
 * once. */
RONDO_INLINE void copy_bytes(void *to, void *also, const void *from, uint64_t bytes)
{
    const uint64_t piece = 16384;

    if (bytes == 0) /* then pointers may be NULL, which memcpy must not get */
        return;
    if (!also) {
        __builtin_memcpy(to, from, bytes);
        return;
    }
    for (uint64_t done = 0; done < bytes; done += piece) {
        uint64_t part = bytes - done < piece ? bytes - done : piece;

        __builtin_memcpy((unsigned char *)to + done, (const unsigned char *)from + done, part);
        __builtin_memcpy((unsigned char *)also + done, (const unsigned char *)from + done, part);
    }
}

constexpr unsigned PACK_BYTES = 0;

} // namespace RONDO_KERNELS

#endif
