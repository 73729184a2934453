/*
 * protocol_ll.cuh - words of 8 bytes, 4 of data and 4 of flag: the least latency, at half the bandwidth.
 *
 * A line of 16 bytes is two words and holds one cell. The flag of step s is s + 1, in 32 bits: after 2^32
 * steps it comes again, so twice on the way there each slot gets the flag of that step in all its words, also
 * in those that its part does not need. No word is older than 2^31 steps and two rounds then, and none is
 * still 0 when 0 is a flag.
 */
#ifndef RONDO_KERNELS_PROTOCOL_LL_CUH
#define RONDO_KERNELS_PROTOCOL_LL_CUH

#include "kernels/flagged.cuh"

namespace RONDO_KERNELS
{

struct ll_wire {
    /* What a lane moves at once. One lane alone has loops over its elements called for each share: long
     * enough for vector code, and short enough for its stack. A choice, not measured. */
    static constexpr unsigned SHARE_CELLS = WARP_LANES == 1 ? 64 : 1;

    static RONDO_MEMBER uint64_t shares(uint64_t cells)
    {
        return rondo_pieces(cells, SHARE_CELLS);
    }

    static RONDO_MEMBER cell_share share_at(uint64_t index, uint64_t cells)
    {
        struct rondo_part piece = rondo_piece(cells, SHARE_CELLS, index);

        return {piece.first, (unsigned)piece.count};
    }

    static RONDO_MEMBER uint32_t flag_of(uint64_t step)
    {
        return (uint32_t)(step + 1);
    }

    /* The cell of a line, and which flag it misses. */
    static RONDO_MEMBER const uint32_t *look_line(const struct ll_pair *line, uint64_t step, uint64_t &cell)
    {
        struct ll_pair pair = load_ll_pair(line);

        cell = pair.word[0].data | (uint64_t)pair.word[1].data << 32;
        for (unsigned k = 0; k < 2; k++)
            if (pair.word[k].flag != flag_of(step))
                return &line->word[k].flag;
        return nullptr;
    }

    static RONDO_MEMBER const uint32_t *look_head(const unsigned char *slot, uint64_t step,
                                                  struct rondo_slot_head &head)
    {
        const struct ll_pair *line = (const struct ll_pair *)slot;
        const uint32_t *missing = look_line(line, step, head.fingerprint);

        return missing ? missing : look_line(line + 1, step, head.bytes);
    }

    static RONDO_MEMBER const uint32_t *look(const unsigned char *slot, uint64_t step,
                                             const cell_share &share, uint64_t *cell)
    {
        const struct ll_pair *line = (const struct ll_pair *)slot + share.first;

        for (unsigned k = 0; k < share.cells; k++) {
            const uint32_t *missing = look_line(line + k, step, cell[k]);

            if (missing)
                return missing;
        }
        return nullptr;
    }

    static RONDO_MEMBER void store(unsigned char *slot, uint64_t step, const cell_share &share,
                                   const uint64_t *cell)
    {
        struct ll_pair *line = (struct ll_pair *)slot + share.first;
        uint32_t flag = flag_of(step);

        for (unsigned k = 0; k < share.cells; k++)
            store_ll_pair(line + k, {{{(uint32_t)cell[k], flag}, {(uint32_t)(cell[k] >> 32), flag}}});
    }

    /* The last steps before bit 31 of the flag changes: one for each slot. cells are in place. */
    static RONDO_MEMBER void refresh(unsigned char *slot, uint64_t step, uint64_t slot_bytes, uint64_t cells)
    {
        constexpr uint32_t last = (1u << 31) - RONDO_SLOTS;
        uint32_t flag = flag_of(step);

        if (((uint32_t)step & last) != last)
            return;
        for (uint64_t k = cells + lane_index(); k < slot_bytes / RONDO_LL_LINE_BYTES; k += lane_count())
            store_ll_pair((struct ll_pair *)slot + k, {{{0, flag}, {0, flag}}});
    }
};

using ll_ends = flagged_ends<ll_wire>;

} // namespace RONDO_KERNELS

#endif
