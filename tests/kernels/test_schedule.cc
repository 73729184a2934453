// The schedules by themselves, for every ring up to 64 ranks: every rank sends what its neighbour expects,
// every part is folded once at every rank and completed where it should be, ranges tile the whole.
#include "device/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace
{

constexpr uint32_t kMostRanks = 64;

bool Sends(rondo_action action)
{
    return action == RONDO_ACTION_ENTER || action == RONDO_ACTION_FOLD ||
           action == RONDO_ACTION_FINISH_SEND || action == RONDO_ACTION_PASS;
}

bool Receives(rondo_action action)
{
    return action != RONDO_ACTION_NONE && action != RONDO_ACTION_ENTER;
}

// What travels with a part: who has been folded in, in which order, and whether it is complete.
struct Parcel {
    uint32_t part = 0;
    std::vector<uint32_t> folded;
    bool complete = false;

    bool operator==(const Parcel &other) const
    {
        return part == other.part && folded == other.folded && complete == other.complete;
    }
};

// Runs one action of one rank; connections are unbounded queues. Returns false if it must wait.
struct Rank {
    std::vector<Parcel> inbox;
    size_t read = 0;
    std::vector<Parcel> kept;

    bool Do(rondo_action action, uint32_t part, uint32_t self, std::vector<Parcel> &out)
    {
        Parcel parcel;
        if (Receives(action)) {
            if (read == inbox.size())
                return false;
            parcel = inbox[read++];
            EXPECT_EQ(parcel.part, part);
        }
        parcel.part = part;
        if (action == RONDO_ACTION_ENTER || action == RONDO_ACTION_FOLD || action == RONDO_ACTION_FINISH ||
            action == RONDO_ACTION_FINISH_SEND) {
            EXPECT_FALSE(parcel.complete);
            parcel.folded.push_back(self);
        } else {
            EXPECT_TRUE(parcel.complete);
        }
        if (action != RONDO_ACTION_ENTER && action != RONDO_ACTION_FOLD) {
            parcel.complete = true;
            kept.push_back(parcel);
        }
        if (Sends(action))
            out.push_back(parcel);
        return true;
    }
};

struct Move {
    rondo_action action;
    uint32_t part;
};

// Runs each rank's list of moves over the ring; fails if it cannot end, or leaves something unread.
std::vector<Rank> RunRing(const std::vector<std::vector<Move>> &moves, bool enters_complete)
{
    size_t n = moves.size();
    std::vector<Rank> ranks(n);
    std::vector<size_t> next(n, 0);

    for (bool moved = true; moved;) {
        moved = false;
        for (size_t p = 0; p < n; p++) {
            while (next[p] < moves[p].size()) {
                const Move &move = moves[p][next[p]];
                std::vector<Parcel> &out = ranks[(p + 1) % n].inbox;
                if (move.action != RONDO_ACTION_NONE &&
                    !ranks[p].Do(move.action, move.part, static_cast<uint32_t>(p), out))
                    break;
                if (enters_complete && move.action == RONDO_ACTION_ENTER)
                    out.back().complete = true;
                next[p]++;
                moved = true;
            }
        }
    }
    for (size_t p = 0; p < n; p++) {
        EXPECT_EQ(next[p], moves[p].size()) << "rank " << p << " of " << n << " waits for ever";
        EXPECT_EQ(ranks[p].read, ranks[p].inbox.size()) << "rank " << p << " of " << n << " left data unread";
    }
    return ranks;
}

std::set<uint32_t> Parts(const Rank &rank)
{
    std::set<uint32_t> parts;
    for (const Parcel &parcel : rank.kept)
        EXPECT_TRUE(parts.insert(parcel.part).second) << "kept twice";
    return parts;
}

void ExpectAllFoldedOnce(const Parcel &parcel, uint32_t n)
{
    std::set<uint32_t> distinct(parcel.folded.begin(), parcel.folded.end());
    EXPECT_EQ(parcel.folded.size(), n);
    EXPECT_EQ(distinct.size(), n);
}

TEST(Schedule, AllReduceGivesEveryRankEveryChunkOfAllRanks)
{
    for (uint32_t n = 2; n <= kMostRanks; n++) {
        std::vector<std::vector<Move>> moves(n);
        for (uint32_t p = 0; p < n; p++)
            for (uint32_t s = 0; s < RONDO_ALL_REDUCE_STEPS(n); s++) {
                rondo_step step = rondo_all_reduce_step(p, n, s);
                moves[p].push_back({step.action, step.part});
            }
        for (const Rank &rank : RunRing(moves, false)) {
            EXPECT_EQ(Parts(rank).size(), n);
            for (const Parcel &parcel : rank.kept)
                ExpectAllFoldedOnce(parcel, n);
        }
    }
}

TEST(Schedule, ReduceScatterGivesEveryRankItsOwnBlock)
{
    for (uint32_t n = 2; n <= kMostRanks; n++) {
        std::vector<std::vector<Move>> moves(n);
        for (uint32_t p = 0; p < n; p++)
            for (uint32_t s = 0; s < n; s++) {
                rondo_step step = rondo_reduce_scatter_step(p, n, s);
                moves[p].push_back({step.action, step.part});
            }
        std::vector<Rank> ranks = RunRing(moves, false);
        for (uint32_t p = 0; p < n; p++) {
            EXPECT_EQ(Parts(ranks[p]), std::set<uint32_t>{p});
            ExpectAllFoldedOnce(ranks[p].kept[0], n);
        }
    }
}

TEST(Schedule, AllGatherGivesEveryRankTheOtherBlocks)
{
    for (uint32_t n = 2; n <= kMostRanks; n++) {
        std::vector<std::vector<Move>> moves(n);
        for (uint32_t p = 0; p < n; p++)
            for (uint32_t s = 0; s < n; s++) {
                rondo_step step = rondo_all_gather_step(p, n, s);
                moves[p].push_back({step.action, step.part});
            }
        std::vector<Rank> ranks = RunRing(moves, true);
        for (uint32_t p = 0; p < n; p++) {
            EXPECT_EQ(Parts(ranks[p]).size(), n - 1);
            for (const Parcel &parcel : ranks[p].kept)
                EXPECT_EQ(parcel.folded, std::vector<uint32_t>{parcel.part})
                    << "a block comes from its owner";
        }
    }
}

TEST(Schedule, BroadcastAndReduceServeEveryRoot)
{
    for (uint32_t n = 2; n <= kMostRanks; n++) {
        for (uint32_t root = 0; root < n; root++) {
            std::vector<std::vector<Move>> down(n), up(n);
            for (uint32_t p = 0; p < n; p++) {
                down[p].push_back({rondo_broadcast_action(p, n, root), 0});
                up[p].push_back({rondo_reduce_action(p, n, root), 0});
            }
            std::vector<Rank> taken = RunRing(down, true), reduced = RunRing(up, false);
            for (uint32_t p = 0; p < n; p++) {
                EXPECT_EQ(taken[p].kept.size(), p == root ? 0u : 1u);
                EXPECT_EQ(reduced[p].kept.size(), p == root ? 1u : 0u) << "who is not root keeps nothing";
            }
            ExpectAllFoldedOnce(reduced[root].kept[0], n);
        }
    }
}

TEST(Schedule, ChainFoldsInRankOrderAndResultsReachWhoNeedsThem)
{
    for (uint32_t n = 2; n <= kMostRanks; n++) {
        for (uint32_t last = 0; last < n; last++) {
            std::vector<std::vector<Move>> moves(n);
            for (uint32_t rank = 0; rank < n; rank++) {
                moves[rank].push_back({rondo_chain_partial(rank, n, last), 0});
                moves[rank].push_back({rondo_chain_result(rank, n, last), 0});
            }
            std::vector<Rank> ranks = RunRing(moves, false);
            for (uint32_t rank = 0; rank < n; rank++) {
                bool reached = rank == n - 1 || (last != n - 1 && rank <= last);
                ASSERT_EQ(ranks[rank].kept.size(), reached ? 1u : 0u);
                for (uint32_t i = 0; reached && i < n; i++)
                    EXPECT_EQ(ranks[rank].kept[0].folded[i], i);
            }
        }
    }
}

TEST(Schedule, RingChunksTileTheWhole)
{
    for (uint32_t n = 2; n <= kMostRanks; n++) {
        for (uint64_t chunk : {1, 15, 16, 17, 100}) {
            for (uint64_t count = 0; count <= 3 * n * chunk + 1;
                 count += count < 40 ? 1 : chunk * n / 3 + 1) {
                uint64_t covered = 0;
                for (uint64_t loop = 0; loop < rondo_ring_loops(count, n, chunk); loop++)
                    for (uint32_t c = 0; c < n; c++) {
                        rondo_part part = rondo_ring_chunk(count, n, chunk, loop, c);
                        ASSERT_LE(part.count, chunk);
                        ASSERT_TRUE(part.count == 0 || part.first == covered);
                        covered += part.count;
                    }
                ASSERT_EQ(covered, count) << "n " << n << " chunk " << chunk;
            }
        }
    }
}

TEST(Schedule, RangesBeyondFourGigaElements)
{
    const uint64_t count = (1ull << 40) + 12345, chunk = 1 << 16;
    const uint32_t n = 7;
    uint64_t last = rondo_ring_loops(count, n, chunk) - 1, covered = last * n * chunk;

    EXPECT_EQ(rondo_ring_chunk(count, n, chunk, last - 1, 6).first, covered - chunk);
    for (uint32_t c = 0; c < n; c++) {
        rondo_part part = rondo_ring_chunk(count, n, chunk, last, c);
        EXPECT_EQ(part.first, covered);
        covered += part.count;
    }
    EXPECT_EQ(covered, count);
    EXPECT_EQ(rondo_piece(count, chunk, rondo_pieces(count, chunk) - 1).count, count % chunk);
    EXPECT_EQ(rondo_piece(count, chunk, rondo_pieces(count, chunk)).count, 0u);
}

// With bounded connections: the order of the chain's jobs ends for every lag that rondo_chain_lag may choose.
TEST(Schedule, ChainEndsWithBoundedSlots)
{
    const uint32_t slots = 8, items = 40;
    for (uint32_t n = 2; n <= kMostRanks; n++) {
        uint32_t lag = rondo_chain_lag(n, slots);
        std::vector<uint64_t> posted(n, 0), consumed(n, 0); // of the connection from rank to rank + 1
        std::vector<uint32_t> turn(n, 0);                   // two jobs a turn
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t rank = 0; rank < n; rank++) {
                for (; turn[rank] < 2 * (items + lag); turn[rank]++, moved = true) {
                    uint32_t t = turn[rank] / 2;
                    bool result = turn[rank] % 2;
                    if (result ? t < lag : t >= items)
                        continue;
                    rondo_action action =
                        result ? rondo_chain_result(rank, n, n - 2) : rondo_chain_partial(rank, n, n - 2);
                    uint32_t before = (rank + n - 1) % n;
                    if (Receives(action) && posted[before] == consumed[before])
                        break;
                    if (Sends(action) && posted[rank] - consumed[rank] == slots)
                        break;
                    consumed[before] += Receives(action);
                    posted[rank] += Sends(action);
                }
            }
        }
        for (uint32_t rank = 0; rank < n; rank++)
            ASSERT_EQ(turn[rank], 2 * (items + lag)) << "rank " << rank << " of " << n << " is stuck";
    }
}

} // namespace
