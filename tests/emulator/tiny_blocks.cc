// Inside one block: barriers, bounds, and who touches what.
#include "tiny.h"

#include <vector>

namespace tiny
{

using emulator::Fault;

namespace
{

void MissingBarrier(const Shared &s, unsigned, unsigned)
{
    store_plain(&s.data[lane_index()], uint64_t{1});
    load_plain(&s.data[(lane_index() + 1) % lane_count()]);
}

void WithBarrier(const Shared &s, unsigned, unsigned)
{
    store_plain(&s.data[lane_index()], uint64_t{lane_index()});
    barrier();
    unsigned next = (lane_index() + 1) % lane_count();
    Require(load_plain(&s.data[next]) == next, "a neighbour's store is not there");
}

// The next round overwrites what a slow lane still reads.
void OneBarrierARound(const Shared &s, unsigned, unsigned)
{
    for (int round = 0; round < 3; round++) {
        store_plain(&s.data[lane_index()], uint64_t{lane_index()});
        barrier();
        load_plain(&s.data[(lane_index() + 1) % lane_count()]);
    }
}

void TwoBarriersARound(const Shared &s, unsigned, unsigned)
{
    for (int round = 0; round < 3; round++) {
        store_plain(&s.data[lane_index()], uint64_t{lane_index()});
        barrier();
        load_plain(&s.data[(lane_index() + 1) % lane_count()]);
        barrier();
    }
}

void EveryLaneForLaneZero(const Shared &s, unsigned, unsigned)
{
    store_plain(&s.data[0], uint64_t{7});
}

void LaneZeroAlone(const Shared &s, unsigned, unsigned)
{
    if (lane_index() == 0)
        store_plain(&s.data[0], uint64_t{7});
    agree(true);
    Require(load_plain(&s.data[0]) == 7, "lane 0's store is not there");
}

// Neighbouring bytes are no race; the same byte, touched by packs of other sizes, is.
void OverlappingSizes(const Shared &s, unsigned, unsigned)
{
    unsigned char *bytes = (unsigned char *)s.data;

    if (lane_index() == 0)
        store_bytes(bytes + 3, uint32_t{1});
    if (lane_index() == 1)
        load_plain(bytes + 6);
}

void NeighbouringBytes(const Shared &s, unsigned, unsigned)
{
    unsigned char *bytes = (unsigned char *)s.data;

    store_plain(&bytes[lane_index()], (unsigned char)lane_index());
    load_plain(&bytes[lane_index()]);
    barrier();
    load_bytes<uint64_t>(bytes + lane_index());
}

void BarrierOfSomeLanes(const Shared &, unsigned, unsigned)
{
    if (lane_index() < 32)
        barrier();
}

void BarrierOfAll(const Shared &, unsigned, unsigned)
{
    if (lane_index() < 32)
        barrier();
    else
        barrier();
}

void BarrierMeetsAgree(const Shared &, unsigned, unsigned)
{
    if (lane_index() < 32)
        barrier();
    else
        agree(true);
}

void AgreeIsLaneZeros(const Shared &, unsigned, unsigned)
{
    for (int i = 0; i < 20; i++)
        Require(agree(lane_index() == 0 ? i % 3 == 0 : i % 2 == 0) == (i % 3 == 0), "not lane 0's verdict");
}

// Lane 0 gives up by itself, the others wait for it.
void VerdictNotShared(const Shared &, unsigned, unsigned)
{
    bool go_on = lane_index() != 0;
    if (!go_on)
        return;
    barrier();
}

void VerdictShared(const Shared &, unsigned, unsigned)
{
    if (!agree(lane_index() != 0))
        return;
    barrier();
}

void BeyondTheEnd(const Shared &s, unsigned, unsigned)
{
    store_plain(&s.data[256 - lane_count() + lane_index() + (lane_index() == lane_count() - 1)], uint64_t{1});
}

void BeforeTheBegin(const Shared &s, unsigned, unsigned)
{
    load_plain(s.data - 1);
}

void AcrossTheEnd(const Shared &s, unsigned, unsigned)
{
    copy_bytes(s.data + 192, nullptr, s.data, 64 * 8 + 1);
}

void UpToTheEnd(const Shared &s, unsigned, unsigned)
{
    copy_bytes(s.data + 192, nullptr, s.data, 64 * 8);
}

void UnalignedPack(const Shared &s, unsigned, unsigned)
{
    load_pack<copy_pack>(s.data + 1);
}

void UnalignedBytes(const Shared &s, unsigned, unsigned)
{
    copy_bytes((unsigned char *)s.data + 1031, nullptr, (unsigned char *)s.data + 5, 100);
}

void TwoSizesOfOneWord(const Shared &s, unsigned, unsigned)
{
    if (lane_index() == 0)
        store_relaxed(&s.words[0], uint64_t{1});
    if (lane_index() == 1)
        load_relaxed((const uint32_t *)&s.words[0]);
}

void ManyClaim(const Shared &s, unsigned, unsigned)
{
    if (claim((uint32_t *)&s.words[0]))
        store_plain(&s.data[0], load_plain(&s.data[0]) + 1);
    barrier();
    Require(load_plain(&s.data[0]) == 1, "not one winner");
}

// The second launch of a rank finds what the first left, and no other rank's.
void LaunchesInOrder(const Shared &s, unsigned rank, unsigned)
{
    uint64_t *own = &s.data[rank * lane_count()];
    uint64_t before = load_plain(&own[(lane_index() + 1) % lane_count()]);

    barrier();
    store_plain(&own[lane_index()], before + 1);
}

void LaunchesOfOthers(const Shared &s, unsigned rank, unsigned)
{
    if (rank == 0)
        store_plain(&s.data[0], uint64_t{1});
    else
        load_plain(&s.data[0]);
}

} // namespace

const std::vector<Tiny> &BlockCases()
{
    static const std::vector<Tiny> cases = {
        {"Barrier", Fault::RACE, 1, 1, 64, MissingBarrier},
        {"Barrier", Fault::NONE, 1, 1, 64, WithBarrier},
        {"Rounds", Fault::RACE, 1, 1, 64, OneBarrierARound},
        {"Rounds", Fault::NONE, 1, 1, 64, TwoBarriersARound},
        {"OneWriter", Fault::RACE, 1, 1, 32, EveryLaneForLaneZero},
        {"OneWriter", Fault::NONE, 1, 1, 32, LaneZeroAlone},
        {"Sizes", Fault::RACE, 1, 1, 2, OverlappingSizes},
        {"Sizes", Fault::NONE, 1, 1, 64, NeighbouringBytes},
        {"HalfABarrier", Fault::DIVERGENCE, 1, 1, 64, BarrierOfSomeLanes},
        {"HalfABarrier", Fault::NONE, 1, 1, 64, BarrierOfAll},
        {"TwoKindsOfBarrier", Fault::DIVERGENCE, 1, 1, 64, BarrierMeetsAgree},
        {"Agree", Fault::NONE, 1, 1, 96, AgreeIsLaneZeros},
        {"Verdict", Fault::DIVERGENCE, 1, 1, 64, VerdictNotShared},
        {"Verdict", Fault::NONE, 1, 1, 64, VerdictShared},
        {"End", Fault::BOUNDS, 1, 1, 64, BeyondTheEnd},
        {"Begin", Fault::BOUNDS, 1, 1, 64, BeforeTheBegin},
        {"Copy", Fault::BOUNDS, 1, 1, 32, AcrossTheEnd},
        {"Copy", Fault::NONE, 1, 1, 32, UpToTheEnd},
        {"Pack", Fault::MISUSE, 1, 1, 32, UnalignedPack},
        {"Pack", Fault::NONE, 1, 1, 32, UnalignedBytes},
        {"WordSizes", Fault::MISUSE, 1, 1, 32, TwoSizesOfOneWord},
        {"Claim", Fault::NONE, 1, 1, 64, ManyClaim},
        {"Launches", Fault::RACE, 2, 1, 32, LaunchesOfOthers},
        {"Launches", Fault::NONE, 2, 1, 32, LaunchesInOrder, 3},
    };
    return cases;
}

} // namespace tiny
