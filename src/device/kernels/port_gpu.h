/*
 * port_gpu.h - the port of CUDA GPUs: a block is a thread block, a lane is a thread. See port.h for the
 * contract.
 *
 * All PTX of the kernels is here. Peers may be other GPUs or the host, so what crosses between ranks is of
 * system scope. This port has been compiled but never run: no GPU was at hand.
 */
#ifndef RONDO_KERNELS_PORT_GPU_H
#define RONDO_KERNELS_PORT_GPU_H

#define RONDO_INLINE static __device__ __forceinline__
#define RONDO_MEMBER __device__ __forceinline__
#define RONDO_OUTLINE static __device__ __noinline__
#define RONDO_OUTLINED_MEMBER __device__ __noinline__
#define RONDO_SPAN __device__ __noinline__
#define RONDO_INDEPENDENT
#define RONDO_UNROLL _Pragma("unroll")

#include "kernels/no_vectors.h"
#include "kernels/plain_access.h"

namespace RONDO_KERNELS
{

struct machine {
    struct rondo_line *stop;
};

RONDO_INLINE unsigned lane_index()
{
    return threadIdx.x;
}

RONDO_INLINE unsigned lane_count()
{
    return blockDim.x;
}

RONDO_INLINE void barrier()
{
    __syncthreads();
}

/* Lanes other than 0 vote no, so that lane 0's vote decides. */
RONDO_INLINE bool agree(bool verdict)
{
    return __syncthreads_or(threadIdx.x == 0 && verdict) != 0;
}

RONDO_INLINE bool agree_all(bool verdict)
{
    return __syncthreads_and(verdict) != 0;
}

constexpr unsigned WARP_LANES = 32;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

RONDO_INLINE unsigned warp_lane()
{
    return threadIdx.x % WARP_LANES;
}

RONDO_INLINE unsigned warp_index()
{
    return threadIdx.x / WARP_LANES;
}

template <class T> RONDO_INLINE T shuffle(T value, unsigned from)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves one or two registers");
    return __shfl_sync(WHOLE_WARP, value, (int)from);
}

RONDO_INLINE bool vote_all(bool yes)
{
    return __all_sync(WHOLE_WARP, yes) != 0;
}

/* What a pack travels as: a plain aligned copy would be taken apart into bytes. */
template <unsigned BYTES> struct pack_word;
template <> struct pack_word<16> {
    using type = uint4;
};
template <> struct pack_word<8> {
    using type = uint64_t;
};
template <> struct pack_word<4> {
    using type = uint32_t;
};
template <> struct pack_word<2> {
    using type = uint16_t;
};

template <class P> RONDO_INLINE P load_pack(const void *at)
{
    typename pack_word<sizeof(P)>::type word = *(const typename pack_word<sizeof(P)>::type *)at;

    return load_bytes<P>(&word);
}

template <class P> RONDO_INLINE void store_pack(void *at, const P &value)
{
    using word = typename pack_word<sizeof(P)>::type;

    *(word *)at = load_bytes<word>(&value);
}

/* One function an access: order, scope and size are chosen at compile time. */
#define RONDO_PTX_SCOPED(instruction, type, ...)                         \
    do {                                                                 \
        if constexpr (S == scope::BLOCK)                                 \
            asm volatile(instruction(cta, type) __VA_ARGS__ : "memory"); \
        else if constexpr (S == scope::DEVICE)                           \
            asm volatile(instruction(gpu, type) __VA_ARGS__ : "memory"); \
        else                                                             \
            asm volatile(instruction(sys, type) __VA_ARGS__ : "memory"); \
    } while (0)
#define RONDO_PTX_LOAD_RELAXED(scope, type) "ld.relaxed." #scope ".global." #type " %0, [%1];"
#define RONDO_PTX_LOAD_ACQUIRE(scope, type) "ld.acquire." #scope ".global." #type " %0, [%1];"
#define RONDO_PTX_STORE_RELAXED(scope, type) "st.relaxed." #scope ".global." #type " [%0], %1;"
#define RONDO_PTX_STORE_RELEASE(scope, type) "st.release." #scope ".global." #type " [%0], %1;"

template <scope S = scope::SYSTEM, class T> RONDO_INLINE T load_relaxed(const T *word)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
    if constexpr (sizeof(T) == 4) {
        uint32_t value;
        RONDO_PTX_SCOPED(RONDO_PTX_LOAD_RELAXED, u32, : "=r"(value) : "l"(word));
        return (T)value;
    } else {
        uint64_t value;
        RONDO_PTX_SCOPED(RONDO_PTX_LOAD_RELAXED, u64, : "=l"(value) : "l"(word));
        return (T)value;
    }
}

template <scope S, class T> RONDO_INLINE T load_acquire(const T *word)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
    if constexpr (sizeof(T) == 4) {
        uint32_t value;
        RONDO_PTX_SCOPED(RONDO_PTX_LOAD_ACQUIRE, u32, : "=r"(value) : "l"(word));
        return (T)value;
    } else {
        uint64_t value;
        RONDO_PTX_SCOPED(RONDO_PTX_LOAD_ACQUIRE, u64, : "=l"(value) : "l"(word));
        return (T)value;
    }
}

template <scope S = scope::SYSTEM, class T> RONDO_INLINE void store_relaxed(T *word, T value)
{
    static_assert(sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8, "words of 1, 4 or 8 bytes");
    if constexpr (sizeof(T) == 1)
        RONDO_PTX_SCOPED(RONDO_PTX_STORE_RELAXED, u8, ::"l"(word), "r"((uint32_t)value));
    else if constexpr (sizeof(T) == 4)
        RONDO_PTX_SCOPED(RONDO_PTX_STORE_RELAXED, u32, ::"l"(word), "r"((uint32_t)value));
    else
        RONDO_PTX_SCOPED(RONDO_PTX_STORE_RELAXED, u64, ::"l"(word), "l"((uint64_t)value));
}

template <scope S, class T> RONDO_INLINE void store_release(T *word, T value)
{
    static_assert(sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8, "words of 1, 4 or 8 bytes");
    if constexpr (sizeof(T) == 1)
        RONDO_PTX_SCOPED(RONDO_PTX_STORE_RELEASE, u8, ::"l"(word), "r"((uint32_t)value));
    else if constexpr (sizeof(T) == 4)
        RONDO_PTX_SCOPED(RONDO_PTX_STORE_RELEASE, u32, ::"l"(word), "r"((uint32_t)value));
    else
        RONDO_PTX_SCOPED(RONDO_PTX_STORE_RELEASE, u64, ::"l"(word), "l"((uint64_t)value));
}

#undef RONDO_PTX_SCOPED

template <scope S> RONDO_INLINE void fence()
{
    if constexpr (S == scope::BLOCK)
        asm volatile("fence.acq_rel.cta;" ::: "memory");
    else if constexpr (S == scope::DEVICE)
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
    else
        asm volatile("fence.acq_rel.sys;" ::: "memory");
}

RONDO_INLINE bool stop_raised(const machine &m)
{
    return load_relaxed(&m.stop->value) != 0;
}

/* The acquire pairs with the release in publish() of the other end; the barrier in agree() hands it on to all
 * lanes. */
RONDO_INLINE bool has_reached(const struct rondo_line *line, uint64_t target)
{
    return (int64_t)(load_acquire<scope::SYSTEM>(&line->value) - target) >= 0;
}

/* Looks for stop, which may be behind a slow bus, once in a while only. */
RONDO_INLINE bool poll_again(const machine &m, unsigned &polls)
{
    return ++polls % 256 != 0 || !stop_raised(m);
}

RONDO_INLINE bool wait_flag(const machine &m, struct rondo_line *, const uint32_t *, uint32_t,
                            unsigned &polls)
{
    return poll_again(m, polls);
}

RONDO_INLINE void announce(const machine &, struct rondo_line *, struct rondo_switchboard *)
{
}

RONDO_INLINE bool wait_until(const machine &m, struct rondo_line *line, uint64_t target)
{
    unsigned polls = 0;

    while (!has_reached(line, target))
        if (!poll_again(m, polls))
            return false;
    return true;
}

/* The release is of system scope and covers what the other lanes wrote before the barrier that precedes it.
 * Pairs with has_reached(). GPUs poll and never sleep, so no doorbell is rung. */
RONDO_INLINE void publish(const machine &, struct rondo_line *line, uint64_t value,
                          struct rondo_switchboard *)
{
    store_release<scope::SYSTEM>(&line->value, value);
}

/* The fence makes the fault visible before the stop that points to it; pairs with the host's acquire load. */
RONDO_INLINE void raise_stop(const machine &, struct rondo_rank_page *page, uint64_t value,
                             struct rondo_switchboard *)
{
    fence<scope::SYSTEM>();
    atomicCAS_system((unsigned long long *)&page->stop.value, 0ull, (unsigned long long)value);
}

RONDO_INLINE void enter_work(const machine &, const struct rondo_work *, uint32_t)
{
}

RONDO_INLINE void breathe(const machine &)
{
}

/* Pairs with the watcher's acquire load of the same word. */
template <class T> RONDO_INLINE void store_last(T *word, T value)
{
    store_release<scope::SYSTEM>(word, value);
}

RONDO_INLINE bool claim(uint32_t *word)
{
    return atomicCAS_system(word, 0u, 1u) == 0u;
}

/* 8-byte accesses are single-copy atomic; a vector of two is two of them. */
RONDO_INLINE void load_two_words(const void *from, uint64_t &low, uint64_t &high)
{
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(low), "=l"(high)
                 : "l"(from)
                 : "memory");
}

RONDO_INLINE void store_two_words(void *to, uint64_t low, uint64_t high)
{
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high) : "memory");
}

RONDO_INLINE struct ll_pair load_ll_pair(const struct ll_pair *from)
{
    uint64_t low, high;

    load_two_words(from, low, high);
    return {{{(uint32_t)low, (uint32_t)(low >> 32)}, {(uint32_t)high, (uint32_t)(high >> 32)}}};
}

RONDO_INLINE void store_ll_pair(struct ll_pair *to, const struct ll_pair &pair)
{
    store_two_words(to, pair.word[0].data | (uint64_t)pair.word[0].flag << 32,
                    pair.word[1].data | (uint64_t)pair.word[1].flag << 32);
}

/* A converged warp's 16-byte accesses to whole 128-byte lines travel as lines. PTX promises no such thing: it
 * holds on NVLink and inside a GPU, and who plans must know where else. */
constexpr unsigned LINE_LANES = 8, LINE_WORDS = 2;

struct line_part {
    uint64_t word[LINE_WORDS];
};

RONDO_INLINE struct line_part load_line(const void *line)
{
    struct line_part part = {};

    __syncwarp();
    if (line)
        load_two_words((const ll_pair *)line + threadIdx.x % LINE_LANES, part.word[0], part.word[1]);
    return part;
}

RONDO_INLINE void store_line(void *line, const struct line_part &part)
{
    __syncwarp();
    if (line)
        store_two_words((ll_pair *)line + threadIdx.x % LINE_LANES, part.word[0], part.word[1]);
}

constexpr unsigned PACK_BYTES = 16;
} // namespace RONDO_KERNELS

#include "kernels/copy_lanes.cuh"

#endif
