// What lanes do together: barriers, and the operations of warps.
#include "machine.h"

#include <algorithm>

namespace emulator
{

// A lane that waits for all of its block, or that leaves it, must not be missed by its warp.
void Machine::CheckWarpFree(const Lane &lane)
{
    if (lane.of->warps[lane.lane / kWarp].arrived > 0)
        Fail(Fault::DIVERGENCE, std::string("a lane ") + lane.operation + " while its warp acts together");
}

// All lanes of the block arrive at an operation of one kind. Lane 0's verdict, or whether all are true, which
// each lane gets a copy of: lane 0 may be at the next one before the others wake.
bool Machine::ArriveBlock(Collective collective, bool verdict, bool orders)
{
    Lane &lane = *current_;
    Team &team = *lane.of;

    CheckWarpFree(lane);
    if (team.done > 0)
        Fail(Fault::DIVERGENCE, "a block's barrier that some of its lanes have left for good");
    if (team.arrived > 0 && team.collective != collective)
        Fail(Fault::DIVERGENCE, "lanes of one block wait at a barrier and at agree");
    team.collective = collective;
    if (collective == Collective::AGREE_ALL)
        team.verdict = verdict && (team.verdict || team.arrived == 0);
    else if (lane.lane == 0)
        team.verdict = verdict;
    if (++team.arrived < team.lanes.size()) {
        Block(lane, State::BARRIER);
        return lane.vote;
    }
    team.arrived = 0;
    changes_++;
    if (orders)
        Clock::Meet(team.clocks);
    for (Lane &other : team.lanes) {
        other.vote = team.verdict;
        if (&other != &lane)
            MakeReady(other);
    }
    Yield(lane);
    return lane.vote;
}

bool Machine::Agree(bool verdict, bool orders, const Site &site)
{
    Step("waits at agree", site);
    return ArriveBlock(Collective::AGREE, verdict, orders);
}

bool Machine::AgreeAll(bool verdict, bool orders, const Site &site)
{
    Step("waits at agree_all", site);
    return ArriveBlock(Collective::AGREE_ALL, verdict, orders);
}

void Machine::Barrier(const Site &site)
{
    Step("waits at the barrier", site);
    ArriveBlock(Collective::BARRIER, false, true);
}

// The last lane of the warp to arrive does the work of all.
void Machine::ArriveWarp(Collective collective, const char *operation)
{
    Lane &lane = *current_;
    Team &team = *lane.of;
    unsigned index = lane.lane / kWarp;
    Team::Warp &warp = team.warps[index];
    size_t first = index * kWarp;

    if (team.lanes.size() < first + kWarp)
        Fail(Fault::MISUSE, "an operation of warps in a block that does not consist of whole warps");
    if (warp.arrived > 0 && warp.collective != collective)
        Fail(Fault::DIVERGENCE, std::string(operation) + ", and its warp is at another operation");
    for (size_t i = first; i < first + kWarp; i++) {
        State state = team.lanes[i].state;
        if (state == State::DONE || state == State::BARRIER)
            Fail(Fault::DIVERGENCE, std::string(operation) + ", and lane " + std::to_string(i) +
                                        " of the same warp " + team.lanes[i].operation);
    }
    warp.collective = collective;
    if (++warp.arrived < kWarp) {
        Block(lane, State::WARP);
        return;
    }
    warp.arrived = 0;
    CompleteWarp(team,
                 index); /* no change that pollers wait for, unless it stores: its lanes may be pollers */
    for (size_t i = first; i < first + kWarp; i++)
        if (&team.lanes[i] != &lane)
            MakeReady(team.lanes[i]);
    Yield(lane);
}

void Machine::CompleteWarp(Team &team, unsigned index)
{
    Lane *lanes[kWarp];
    uint64_t values[kWarp];
    bool all = true;

    for (unsigned i = 0; i < kWarp; i++) {
        lanes[i] = &team.lanes[index * kWarp + i];
        values[i] = lanes[i]->value;
        all = all && lanes[i]->vote;
    }
    switch (team.warps[index].collective) {
    case Collective::SHUFFLE:
        for (Lane *lane : lanes)
            lane->value = values[lane->from % kWarp];
        break;
    case Collective::VOTE:
        for (Lane *lane : lanes)
            lane->value = all;
        break;
    default:
        CompleteLines(lanes, team.warps[index].collective);
        break;
    }
}

uint64_t Machine::Shuffle(uint64_t value, unsigned from, const Site &site)
{
    Lane &lane = Step("shuffles", site);

    lane.value = value;
    lane.from = from;
    ArriveWarp(Collective::SHUFFLE, "a shuffle");
    return lane.value;
}

bool Machine::VoteAll(bool yes, const Site &site)
{
    Lane &lane = Step("votes", site);

    lane.vote = yes;
    ArriveWarp(Collective::VOTE, "a vote");
    return lane.value != 0;
}

void Machine::StoreLine(void *line, uint64_t low, uint64_t high, const Site &site)
{
    Lane &lane = Step("stores a line", site);

    lane.line = line;
    lane.value = low;
    lane.high = high;
    ArriveWarp(Collective::STORE_LINE, "a store of lines");
}

void Machine::LoadLine(const void *line, uint64_t *low_out, uint64_t *high_out, const Site &site)
{
    Lane &lane = Step("loads a line", site);

    lane.line = const_cast<void *>(line);
    ArriveWarp(Collective::LOAD_LINE, "a load of lines");
    *low_out = line ? lane.value : 0;
    *high_out = line ? lane.high : 0;
}

// A line is one word of 128 bytes: whoever finds a store finds all of it. Its accesses count as the first
// lane's.
void Machine::CompleteLines(Lane *const *lanes, Collective collective)
{
    for (unsigned group = 0; group < kWarp / kLineLanes; group++) {
        Lane &first = *lanes[group * kLineLanes];
        for (unsigned i = 1; i < kLineLanes; i++)
            if (lanes[group * kLineLanes + i]->line != first.line)
                Fail(Fault::DIVERGENCE, "lanes of one group name different lines");
        if (!first.line)
            continue;
        bool stores = collective == Collective::STORE_LINE;
        Word &word = WordFor(first, first.line, 128, stores);
        CheckScopes(first, word, Scope::SYSTEM, stores);
        if (stores) {
            CheckTaken(first, word);
            Stored stored;
            for (unsigned i = 0; i < kLineLanes; i++) {
                stored.value[2 * i] = lanes[group * kLineLanes + i]->value;
                stored.value[2 * i + 1] = lanes[group * kLineLanes + i]->high;
            }
            Put(first, word, std::move(stored), Order::RELAXED, Scope::SYSTEM, first.site);
            continue;
        }
        bool has_looked = false; // any of them, at all that there is
        for (unsigned i = 0; i < kLineLanes; i++)
            has_looked = has_looked || lanes[group * kLineLanes + i]->looks > 0;
        uint64_t number = words_.Choose(word, first.clock, random(), has_looked);
        TakeFrom(first, word, number, Order::RELAXED, Scope::SYSTEM, first.site);
        NoteTaken(first, word, number);
        for (unsigned i = 0; i < kLineLanes; i++) {
            lanes[group * kLineLanes + i]->value = word.At(number).value[2 * i];
            lanes[group * kLineLanes + i]->high = word.At(number).value[2 * i + 1];
        }
        Note(word.At(number).value[15]);
    }
}

} // namespace emulator
