// port_calls.h - one call of every function of the port that today's kernels leave out, so that each port compiles
// it. Nobody runs this.
#ifndef RONDO_TESTS_KERNELS_PORT_CALLS_H
#define RONDO_TESTS_KERNELS_PORT_CALLS_H

#include "kernels/port.h"

namespace RONDO_KERNELS
{

template <scope S> RONDO_INLINE void call_ordered(uint32_t *word, uint64_t *wide)
{
    store_release<S>(word, load_acquire<S>(word) + load_relaxed<S>(word));
    store_release<S>(wide, load_acquire<S>(wide) + load_relaxed<S>(wide));
    store_relaxed<S>(word, 1u);
    store_relaxed<S>(wide, uint64_t{1});
    fence<S>();
}

RONDO_INLINE bool call_words(const machine &m, struct ll_pair *pair, void *line)
{
    unsigned polls = 0;

    store_ll_pair(pair, load_ll_pair(pair + 1));
    store_ll(&pair->word[0], load_ll(&pair->word[1]));
    store_line(line, load_line(line));
    while (load_ll(&pair->word[0]).flag != 1)
        if (!poll_again(m, polls))
            return false;
    return true;
}

RONDO_INLINE bool call_all(const machine &m, uint32_t *word, uint64_t *wide, struct ll_pair *pair, void *line)
{
    call_ordered<scope::BLOCK>(word, wide);
    call_ordered<scope::DEVICE>(word, wide);
    call_ordered<scope::SYSTEM>(word, wide);
    store_plain(word, load_plain(word) + load_bytes<uint32_t>(wide));
    store_bytes((unsigned char *)wide + 1, *word);
    store_pack(pair, load_pack<struct ll_pair>(pair + 1));
    barrier_some(1, lane_count());
    warp_barrier();
    bool any = vote_any(*word != 0) && vote_all(*word != 1);
    store_plain(word, shuffle(*word, 0) + vote_mask(any) + warp_lane() + warp_index() + warp_count());
    store_plain(wide, shuffle(*wide, WARP_LANES - 1));
    return call_words(m, pair, line);
}

} // namespace RONDO_KERNELS

#endif
