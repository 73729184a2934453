// port_emulator.h - the port of the lane emulator: what port.h promises, in terms of Machine.
//
// Every function that the machine sees takes the place of its call as a last argument, which callers leave
// out. In mutants (run_mutants.cc) it carries the number of the site, and the function does what is wrong
// there. load_acquire, store_release, poll_again and the accesses to a single flagged word are not in port.h:
// others here are made of them, and so are actors and the machine's own tests.
#ifndef RONDO_TESTS_EMULATOR_PORT_EMULATOR_H
#define RONDO_TESTS_EMULATOR_PORT_EMULATOR_H

#include "machine.h"
#include "mutation.h"

#include <cstring>

#define RONDO_INLINE static inline __attribute__((unused))
#define RONDO_MEMBER inline
#define RONDO_OUTLINE static __attribute__((noinline, unused))
#define RONDO_OUTLINED_MEMBER __attribute__((noinline))
#define RONDO_SPAN __attribute__((noinline))
#define RONDO_INDEPENDENT
#define RONDO_UNROLL
#define RONDO_SITE const emulator::Site &site = emulator::Site::Here()

namespace RONDO_KERNELS
{

using emulator::Effect;
using emulator::EffectAt;
using emulator::IsRemoved;
using emulator::Order;

struct machine {
    struct rondo_line *stop;
};

RONDO_INLINE emulator::Lane &lane()
{
    return emulator::Machine::Current();
}

RONDO_INLINE emulator::Machine &emulated()
{
    return *lane().machine;
}

constexpr emulator::Scope scope_of(scope s)
{
    return s == scope::BLOCK    ? emulator::Scope::BLOCK
           : s == scope::DEVICE ? emulator::Scope::DEVICE
                                : emulator::Scope::SYSTEM;
}

RONDO_INLINE Order order_at(const emulator::Site &site)
{
    return EffectAt(site.mutant) == Effect::RELAXED ? Order::RELAXED : Order::ACQUIRE_RELEASE;
}

RONDO_INLINE emulator::Scope scope_at(const emulator::Site &site, scope s)
{
    return EffectAt(site.mutant) == Effect::NARROWED && s == scope::SYSTEM ? emulator::Scope::DEVICE
                                                                           : scope_of(s);
}

RONDO_INLINE void enter_work(const machine &, const struct rondo_work *work, uint32_t index)
{
    lane().work = work;
    lane().work_index = index;
}

RONDO_INLINE unsigned lane_index()
{
    return lane().lane;
}

RONDO_INLINE unsigned lane_count()
{
    return static_cast<unsigned>(lane().of->lanes.size());
}

RONDO_INLINE void barrier(RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().Barrier(site);
}

RONDO_INLINE bool agree(bool verdict, RONDO_SITE)
{
    if (IsRemoved(site.mutant))
        return verdict;
    return emulated().Agree(verdict, EffectAt(site.mutant) != Effect::RELAXED, site);
}

RONDO_INLINE bool agree_all(bool verdict, RONDO_SITE)
{
    if (IsRemoved(site.mutant))
        return verdict;
    return emulated().AgreeAll(verdict, EffectAt(site.mutant) != Effect::RELAXED, site);
}

constexpr unsigned WARP_LANES = emulator::kWarp;

RONDO_INLINE unsigned warp_lane()
{
    return lane_index() % WARP_LANES;
}

RONDO_INLINE unsigned warp_index()
{
    return lane_index() / WARP_LANES;
}

template <class T> RONDO_INLINE T shuffle(T value, unsigned from, RONDO_SITE)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves one or two registers");
    uint64_t bits = 0;

    if (IsRemoved(site.mutant))
        return value;
    std::memcpy(&bits, &value, sizeof(T));
    bits = emulated().Shuffle(bits, from, site);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

RONDO_INLINE bool vote_all(bool yes, RONDO_SITE)
{
    return IsRemoved(site.mutant) ? yes : emulated().VoteAll(yes, site);
}

template <class P>
RONDO_INLINE P load_from(const void *at, size_t alignment, const char *what, const emulator::Site &site)
{
    P value;

    std::memcpy(&value, emulated().Touch(at, sizeof(P), alignment, false, what, site), sizeof(P));
    return value;
}

template <class P>
RONDO_INLINE void store_to(void *at, const P &value, size_t alignment, const char *what,
                           const emulator::Site &site)
{
    if (!IsRemoved(site.mutant))
        std::memcpy(emulated().Touch(at, sizeof(P), alignment, true, what, site), &value, sizeof(P));
}

template <class T> RONDO_INLINE T load_plain(const T *object, RONDO_SITE)
{
    return load_from<T>(object, alignof(T), "load", site);
}

template <class T> RONDO_INLINE void store_plain(T *object, T value, RONDO_SITE)
{
    store_to(object, value, alignof(T), "store", site);
}

template <class P> RONDO_INLINE P load_bytes(const void *at, RONDO_SITE)
{
    return load_from<P>(at, 1, "load", site);
}

template <class P> RONDO_INLINE void store_bytes(void *at, const P &value, RONDO_SITE)
{
    store_to(at, value, 1, "store", site);
}

template <class P> RONDO_INLINE P load_pack(const void *at, RONDO_SITE)
{
    return load_from<P>(at, sizeof(P), "load of a pack", site);
}

template <class P> RONDO_INLINE void store_pack(void *at, const P &value, RONDO_SITE)
{
    store_to(at, value, sizeof(P), "store of a pack", site);
}

template <scope S = scope::SYSTEM, class T> RONDO_INLINE T load_relaxed(const T *word, RONDO_SITE)
{
    return (T)emulated().Load(word, sizeof(T), Order::RELAXED, scope_at(site, S), site);
}

template <scope S = scope::SYSTEM, class T> RONDO_INLINE void store_relaxed(T *word, T value, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().Store(word, sizeof(T), (uint64_t)value, Order::RELAXED, scope_at(site, S), site);
}

template <scope S, class T> RONDO_INLINE T load_acquire(const T *word, RONDO_SITE)
{
    return (T)emulated().Load(word, sizeof(T), order_at(site), scope_at(site, S), site);
}

template <scope S, class T> RONDO_INLINE void store_release(T *word, T value, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().Store(word, sizeof(T), (uint64_t)value, order_at(site), scope_at(site, S), site);
}

template <scope S> RONDO_INLINE void fence(RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().Fence(scope_at(site, S), site);
}

RONDO_INLINE bool stop_raised(const machine &m, RONDO_SITE)
{
    return !IsRemoved(site.mutant) &&
           emulated().Load(&m.stop->value, 8, Order::RELAXED, emulator::Scope::SYSTEM, site) != 0;
}

RONDO_INLINE bool has_reached(const struct rondo_line *line, uint64_t target, RONDO_SITE)
{
    if (IsRemoved(site.mutant))
        return true;
    uint64_t value = emulated().Load(&line->value, 8, order_at(site), scope_at(site, scope::SYSTEM), site);
    return (int64_t)(value - target) >= 0;
}

RONDO_INLINE bool wait_until(const machine &m, struct rondo_line *line, uint64_t target, RONDO_SITE)
{
    return IsRemoved(site.mutant) ||
           emulated().WaitUntil(line, target, m.stop, order_at(site), scope_at(site, scope::SYSTEM), site);
}

RONDO_INLINE bool poll_again(const machine &m, unsigned &polls, RONDO_SITE)
{
    polls++;
    return emulated().PollAgain(m.stop, site) || IsRemoved(site.mutant);
}

RONDO_INLINE bool wait_flag(const machine &m, struct rondo_line *line, const uint32_t *flag, uint32_t value,
                            unsigned &polls, RONDO_SITE)
{
    polls++;
    return emulated().WaitFlag(line, flag, value, m.stop, site) || IsRemoved(site.mutant);
}

RONDO_INLINE void announce(const machine &, struct rondo_line *line, struct rondo_switchboard *, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().Announce(line, site);
}

RONDO_INLINE void publish(const machine &, struct rondo_line *line, uint64_t value,
                          struct rondo_switchboard *, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().Store(&line->value, 8, value, order_at(site), scope_at(site, scope::SYSTEM), site);
}

RONDO_INLINE void raise_stop(const machine &, struct rondo_rank_page *page, uint64_t value,
                             struct rondo_switchboard *, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().CompareSwap(&page->stop.value, 8, 0, value, order_at(site), site);
}

RONDO_INLINE void breathe(const machine &, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().Breathe(site);
}

template <class T> RONDO_INLINE void store_last(T *word, T value, RONDO_SITE)
{
    store_release<scope::SYSTEM>(word, value, site);
}

RONDO_INLINE bool claim(uint32_t *word, RONDO_SITE)
{
    return IsRemoved(site.mutant) || emulated().CompareSwap(word, 4, 0, 1, Order::RELAXED, site);
}

RONDO_INLINE struct ll_word load_ll(const struct ll_word *from, RONDO_SITE)
{
    uint64_t bits = emulated().LoadFlagged(from, site);

    return {(uint32_t)bits, (uint32_t)(bits >> 32)};
}

RONDO_INLINE void store_ll(struct ll_word *to, struct ll_word word, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().StoreFlagged(to, word.data | (uint64_t)word.flag << 32, site);
}

// Two accesses, in either order, with other lanes between them: that is what may be seen of one.
RONDO_INLINE struct ll_pair load_ll_pair(const struct ll_pair *from, RONDO_SITE)
{
    bool second = emulated().random().OneIn(2);
    struct ll_pair pair;

    pair.word[second] = load_ll(&from->word[second], site);
    pair.word[!second] = load_ll(&from->word[!second], site);
    return pair;
}

RONDO_INLINE void store_ll_pair(struct ll_pair *to, const struct ll_pair &pair, RONDO_SITE)
{
    bool second = emulated().random().OneIn(2);

    store_ll(&to->word[second], pair.word[second], site);
    store_ll(&to->word[!second], pair.word[!second], site);
}

constexpr unsigned LINE_LANES = emulator::kLineLanes, LINE_WORDS = 2;

struct line_part {
    uint64_t word[LINE_WORDS];
};

RONDO_INLINE struct line_part load_line(const void *line, RONDO_SITE)
{
    struct line_part part;

    emulated().LoadLine(line, &part.word[0], &part.word[1], site);
    return part;
}

RONDO_INLINE void store_line(void *line, const struct line_part &part, RONDO_SITE)
{
    if (!IsRemoved(site.mutant))
        emulated().StoreLine(line, part.word[0], part.word[1], site);
}

constexpr unsigned PACK_BYTES = 16;
} // namespace RONDO_KERNELS

#include "kernels/copy_lanes.cuh"
#include "kernels/no_vectors.h"

#endif
