// Warps, and lines that carry a flag.
#include "tiny.h"

#include <vector>

namespace tiny
{

using emulator::Fault;

namespace
{

machine At(const Shared &s)
{
    return machine{&s.page->stop};
}

void Exchange(const Shared &, unsigned, unsigned)
{
    unsigned lane = lane_index(), first = warp_index() * WARP_LANES;

    for (unsigned i = 0; i < 5; i++) {
        Require(shuffle(lane * 100 + i, i) == (first + i) * 100 + i, "a shuffle");
        Require(shuffle((uint64_t)lane << 40, 31) == (uint64_t)(first + 31) << 40, "a wide shuffle");
        Require(!vote_all(warp_lane() != i) && vote_all(true) && !vote_all(false), "a vote");
    }
}

void HalfAWarpVotes(const Shared &, unsigned, unsigned)
{
    if (warp_lane() < 16)
        vote_all(true);
}

void TwoOperationsAtOnce(const Shared &, unsigned, unsigned)
{
    if (warp_lane() < 16)
        vote_all(true);
    else
        shuffle(1u, 0);
}

void VoteMeetsBarrier(const Shared &, unsigned, unsigned)
{
    if (warp_lane() < 16)
        vote_all(true);
    else
        barrier();
}

void WarpsVoteApart(const Shared &, unsigned, unsigned)
{
    if (warp_index() == 0)
        vote_all(true);
    barrier();
}

template <bool ORDERS> void ShuffleForMemory(const Shared &s, unsigned, unsigned)
{
    if (warp_lane() == 0)
        store_plain(&s.data[warp_index()], uint64_t{1});
    shuffle(1u, 0);
    if (ORDERS)
        barrier();
    load_plain(&s.data[warp_index()]);
}

// Each group of 8 lanes sends a line of 120 bytes of data; all groups of a warp look together.
template <bool CHECKS> void Lines(const Shared &s, unsigned rank, unsigned)
{
    void *line = s.flagged + lane_index() / LINE_LANES * 128;
    bool has_flag = lane_index() % LINE_LANES == LINE_LANES - 1;
    unsigned polls = 0;
    line_part part;

    if (rank == 0) {
        part.word[0] = lane_index() + 1;
        part.word[1] = has_flag ? 9 : lane_index() + 2;
        store_line(line, part);
        return;
    }
    for (;;) {
        part = load_line(line);
        bool is_missed = has_flag && part.word[1] != 9, is_found = has_flag && part.word[1] == 9;
        if (CHECKS ? vote_all(!is_missed) : !vote_all(!is_found))
            break;
        if (!poll_again(At(s), polls))
            return;
    }
    Require(part.word[0] == lane_index() + 1, "the first half of a part");
    Require(has_flag || part.word[1] == lane_index() + 2, "the second half of a part");
}

// Of the lanes of a line some may sleep and some poll.
void LinesAwaited(const Shared &s, unsigned rank, unsigned)
{
    unsigned char *line = s.flagged + lane_index() / LINE_LANES * 128;
    const uint32_t *flag = (const uint32_t *)(line + 120);
    unsigned polls = 0;

    if (rank == 0) {
        store_line(line, line_part{{1, 1}});
        announce(At(s), &s.line[0], nullptr);
        return;
    }
    for (;;) {
        bool has_flag = shuffle(load_line(line).word[1], lane_index() | (LINE_LANES - 1)) == 1;
        if (vote_all(has_flag))
            return;
        if (!has_flag)
            wait_flag(At(s), &s.line[0], flag, 1, polls);
    }
}

void LinesOfSomeGroups(const Shared &s, unsigned, unsigned)
{
    bool takes_part = lane_index() / LINE_LANES % 2 == 0;
    void *line = takes_part ? s.flagged + lane_index() / LINE_LANES * 128 : nullptr;

    store_line(line, line_part{{1, 2}});
    line_part part = load_line(line);
    Require(part.word[0] == (takes_part ? 1 : 0), "a line");
}

void LinesTornApart(const Shared &s, unsigned, unsigned)
{
    store_line(s.flagged + lane_index() / 4 % 4 * 128, line_part{{1, 2}});
}

void LinesUnaligned(const Shared &s, unsigned, unsigned)
{
    store_line(s.flagged + 64, line_part{{1, 2}});
}

} // namespace

const std::vector<Tiny> &WarpCases()
{
    static const std::vector<Tiny> cases = {
        {"Exchange", Fault::NONE, 1, 1, 64, Exchange},
        {"HalfAVote", Fault::DIVERGENCE, 1, 1, 64, HalfAWarpVotes},
        {"TwoOperations", Fault::DIVERGENCE, 1, 1, 32, TwoOperationsAtOnce},
        {"VoteMeetsBarrier", Fault::DIVERGENCE, 1, 1, 64, VoteMeetsBarrier},
        {"VoteApart", Fault::NONE, 1, 1, 64, WarpsVoteApart},
        {"Shuffle", Fault::RACE, 1, 1, 64, ShuffleForMemory<false>},
        {"Shuffle", Fault::NONE, 1, 1, 64, ShuffleForMemory<true>},
        {"Lines", Fault::WRONG, 2, 1, 32, Lines<false>},
        {"Lines", Fault::NONE, 2, 1, 32, Lines<true>},
        {"LinesAwaited", Fault::NONE, 2, 1, 32, LinesAwaited},
        {"LinesOfSome", Fault::NONE, 1, 1, 32, LinesOfSomeGroups},
        {"LinesTornApart", Fault::DIVERGENCE, 1, 1, 32, LinesTornApart},
        {"LinesUnaligned", Fault::MISUSE, 1, 1, 32, LinesUnaligned},
    };
    return cases;
}

} // namespace tiny
