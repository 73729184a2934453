/*
 * protocol_ll128.cuh - lines of 128 bytes, 120 of data and 8 of flag: little latency, nearly all of the
 * bandwidth, where lines travel whole (port.h).
 *
 * A line holds 15 cells, by LINE_LANES lanes together; a lane's share is what it holds of one line. One lane
 * that holds lines by itself has some of them as a share. The flag of step s is s + 1 and never comes again.
 */
#ifndef RONDO_KERNELS_PROTOCOL_LL128_CUH
#define RONDO_KERNELS_PROTOCOL_LL128_CUH

#include "kernels/flagged.cuh"

namespace RONDO_KERNELS
{

struct ll128_wire {
    static constexpr uint64_t LINE_CELLS = RONDO_LL128_LINE_DATA / CELL_BYTES;
    /* As LL's SHARE_CELLS; a choice, not measured. */
    static constexpr unsigned SHARE_LINES = LINE_LANES == 1 ? 4 : 1;
    static constexpr unsigned SHARE_CELLS = SHARE_LINES * LINE_WORDS;

    /* Whole lines, so that the lanes of a line all have a share of it. */
    static RONDO_MEMBER uint64_t shares(uint64_t cells)
    {
        return rondo_pieces(rondo_pieces(cells, LINE_CELLS), SHARE_LINES) * LINE_LANES;
    }

    static RONDO_MEMBER cell_share share_at(uint64_t index, uint64_t cells)
    {
        struct rondo_part lines =
            rondo_piece(rondo_pieces(cells, LINE_CELLS), SHARE_LINES, index / LINE_LANES);
        unsigned lane = (unsigned)(index % LINE_LANES);

        if (LINE_LANES == 1)
            return {lines.first * LINE_CELLS, (unsigned)(lines.count * LINE_CELLS)};
        if (lines.count == 0)
            return {0, 0};
        return {lines.first * LINE_CELLS + lane * LINE_WORDS, LINE_WORDS - (lane == LINE_LANES - 1)};
    }

    static RONDO_MEMBER unsigned char *line_at(const unsigned char *slot, uint64_t line)
    {
        return (unsigned char *)slot + line * RONDO_LL128_LINE_BYTES;
    }

    /* The low half of a line's flag. */
    static RONDO_MEMBER const uint32_t *flag_at(const unsigned char *line)
    {
        return (const uint32_t *)(line + RONDO_LL128_LINE_DATA);
    }

    /* What this lane holds of a line, or of none (NULL), and the flag if that misses. */
    static RONDO_MEMBER const uint32_t *look_line(const unsigned char *line, uint64_t step,
                                                  struct line_part &part)
    {
        part = load_line(line);
        uint64_t flag = shuffle(part.word[LINE_WORDS - 1], warp_lane() | (LINE_LANES - 1));

        return !line || flag == step + 1 ? nullptr : flag_at(line);
    }

    static RONDO_MEMBER const uint32_t *look_head(const unsigned char *slot, uint64_t step,
                                                  struct rondo_slot_head &head)
    {
        static_assert(LINE_WORDS >= HEAD_CELLS, "the first lane of a line holds the head");
        struct line_part part;
        const uint32_t *missing = look_line(slot, step, part);
        unsigned holder = warp_lane() / LINE_LANES * LINE_LANES;

        head.fingerprint = shuffle(part.word[0], holder);
        head.bytes = shuffle(part.word[1], holder);
        return missing;
    }

    static RONDO_MEMBER const uint32_t *look(const unsigned char *slot, uint64_t step,
                                             const cell_share &share, uint64_t *cell)
    {
        const uint32_t *missing = nullptr;

        for (unsigned l = 0; l < SHARE_LINES; l++) {
            struct line_part part;
            bool is_held = l * LINE_CELLS < share.cells;
            const unsigned char *line = is_held ? line_at(slot, share.first / LINE_CELLS + l) : nullptr;
            const uint32_t *flag = look_line(line, step, part);

            missing = missing ? missing : flag;
            for (unsigned k = 0; k < LINE_WORDS && k < LINE_CELLS && l * LINE_CELLS + k < share.cells; k++)
                cell[l * LINE_CELLS + k] = part.word[k];
        }
        return missing;
    }

    static RONDO_MEMBER void store(unsigned char *slot, uint64_t step, const cell_share &share,
                                   const uint64_t *cell)
    {
        for (unsigned l = 0; l < SHARE_LINES; l++) {
            struct line_part part;
            bool is_held = l * LINE_CELLS < share.cells;

            for (unsigned k = 0; k < LINE_WORDS; k++)
                part.word[k] =
                    k < LINE_CELLS && l * LINE_CELLS + k < share.cells ? cell[l * LINE_CELLS + k] : step + 1;
            store_line(is_held ? line_at(slot, share.first / LINE_CELLS + l) : nullptr, part);
        }
    }

    static RONDO_MEMBER void refresh(unsigned char *, uint64_t, uint64_t, uint64_t)
    {
    }
};

using ll128_ends = flagged_ends<ll128_wire>;

} // namespace RONDO_KERNELS

#endif
