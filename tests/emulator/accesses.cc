// Accesses to memory: plain ones, which nothing may race with, and those of protocols.
#include "machine.h"

#include <algorithm>
#include <cstring>

namespace emulator
{

namespace
{

std::string Times(size_t bytes)
{
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

} // namespace

Scope Machine::Distance(const Lane &a, const Lane &b)
{
    return a.of == b.of ? Scope::BLOCK : a.of->device == b.of->device ? Scope::DEVICE : Scope::SYSTEM;
}

void Machine::FailRace(const Lane &lane, const void *p, size_t bytes, const Mark &other, const char *why)
{
    const Lane &who = LaneOf(other.epoch.lane);
    const Site &site = memory_.SiteOf(other.site);

    Fail(Fault::RACE, std::string(why) + ": " + lane.operation + " of " + Times(bytes) + " at " +
                          memory_.Describe(p) + " by lane " + std::to_string(lane.lane) + " of block " +
                          std::to_string(lane.of->block) + "/" + std::to_string(lane.of->role) + " of rank " +
                          std::to_string(lane.rank) + " in " + lane.site.function + ":" +
                          std::to_string(lane.site.line) + " against lane " + std::to_string(who.lane) +
                          " of block " + std::to_string(who.of->block) + "/" + std::to_string(who.of->role) +
                          " of rank " + std::to_string(who.rank) + " in " + site.function + ":" +
                          std::to_string(site.line));
}

// Whether memory belongs to a caller of this function on the same stack, which grows down.
static bool IsOnStack(const void *p, size_t bytes)
{
    uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    uintptr_t first = reinterpret_cast<uintptr_t>(p);

    return first > here && first - here < kStack && first - here + bytes <= kStack;
}

void *Machine::Touch(const void *p, size_t bytes, size_t alignment, bool writes, const char *operation,
                     const Site &site)
{
    if (!memory_.Covers(p) && IsOnStack(p, bytes)) // the arena may lie just above the stack
        return const_cast<void *>(p);
    Lane &lane = Step(operation, site);
    Mark other;

    if (!memory_.Find(p, bytes))
        Fail(Fault::BOUNDS, std::string(operation) + " of " + Times(bytes) + " at " + memory_.Describe(p));
    if (reinterpret_cast<uintptr_t>(p) % alignment != 0)
        Fail(Fault::MISUSE, std::string(operation) + " of " + Times(bytes) + " at " + memory_.Describe(p) +
                                ", which is not aligned to " + std::to_string(alignment));
    if (!writes && IsOverwritten(lane, p, bytes))
        return memory_.Host(const_cast<void *>(p));
    uint16_t mark = memory_.Intern(site);
    if (memory_.HasWord(p, bytes) && words_.PlainConflicts(lane.clock, p, bytes, writes, &other))
        FailRace(lane, p, bytes, other, "a race of a plain access with a protocol's");
    if (writes ? memory_.Write(lane.clock, p, bytes, mark, &other)
               : memory_.Read(lane.clock, p, bytes, mark, &other))
        FailRace(lane, p, bytes, other, "a race");
    if (writes)
        changes_++;
    return memory_.Host(const_cast<void *>(p));
}

Word &Machine::WordFor(const Lane &lane, const void *p, uint32_t bytes, bool writes)
{
    Mark other;

    if (!memory_.Find(p, bytes))
        Fail(Fault::BOUNDS,
             std::string(lane.operation) + " of " + Times(bytes) + " at " + memory_.Describe(p));
    if (reinterpret_cast<uintptr_t>(p) % bytes != 0)
        Fail(Fault::MISUSE, std::string(lane.operation) + " at " + memory_.Describe(p) +
                                ", which is not aligned to " + std::to_string(bytes));
    Word *word = words_.Get(p, bytes);
    if (!word)
        Fail(Fault::MISUSE, std::string(lane.operation) + " of " + Times(bytes) + " at " +
                                memory_.Describe(p) + ", where protocol accesses have another size");
    if (memory_.Conflicts(lane.clock, p, bytes, writes, &other))
        FailRace(lane, p, bytes, other, "a race of a protocol's access with a plain one");
    return *word;
}

// Protocol accesses that nothing orders must include each other's lanes in their scopes.
void Machine::CheckScopes(Lane &lane, Word &word, Scope scope, bool writes)
{
    for (const Stored &store : word.stores)
        if (!lane.clock.Knows(store.writer.epoch) &&
            Distance(lane, LaneOf(store.writer.epoch.lane)) > std::min(scope, store.scope))
            FailRace(lane, word.address, word.bytes, store.writer, "a race for want of scope");
    for (const Word::Reader &reader : word.readers)
        if (writes && !lane.clock.Knows(reader.mark.epoch) &&
            Distance(lane, LaneOf(reader.mark.epoch.lane)) > std::min(scope, reader.scope))
            FailRace(lane, word.address, word.bytes, reader.mark, "a race for want of scope");
}

// The lane has found store `number`: acquire what it stands for, or keep it for a fence.
void Machine::TakeFrom(Lane &lane, Word &word, uint64_t number, Order order, Scope scope, const Site &site)
{
    const Stored &store = word.At(number);

    words_.NoteRead(word, Mark{lane.clock.Now(), memory_.Intern(site)}, scope, number);
    if (store.writer.epoch.time == 0 || store.writer.epoch.lane == lane.clock.Now().lane)
        return;
    Scope distance = Distance(lane, LaneOf(store.writer.epoch.lane));
    const Stamp &stamp = store.stamps[static_cast<int>(distance)];
    if (distance > scope || !stamp.IsSet())
        return;
    if (order == Order::ACQUIRE_RELEASE) {
        lane.clock.Acquire(stamp);
        return;
    }
    Keep(lane, distance, stamp);
}

void Machine::Keep(Lane &lane, Scope distance, const Stamp &stamp)
{
    for (Lane::Pending &pending : lane.pending)
        if (pending.stamp.epoch.lane == stamp.epoch.lane && pending.distance == distance) {
            pending.stamp = stamp;
            return;
        }
    lane.pending.push_back({distance, stamp});
}

void Machine::Overwrite(void *p, size_t bytes, unsigned char value, const Site &site)
{
    Lane &lane = Step("overwrites", site);
    unsigned char *begin = static_cast<unsigned char *>(p);

    if (bytes == 0)
        return;
    std::memset(memory_.Host(p), value, bytes);
    overwritten_.push_back({begin, begin + bytes, lane.clock.Release()});
    changes_++;
}

// What one lane of a block has found the others know of after its next barrier. They get it at once: nobody
// can make use of it before.
bool Machine::IsOverwritten(Lane &lane, const void *p, size_t bytes)
{
    const unsigned char *begin = static_cast<const unsigned char *>(p);
    bool is_so = false;

    for (const Overwritten &range : overwritten_) {
        if (begin >= range.end || begin + bytes <= range.begin)
            continue;
        for (Lane &other : lane.of->lanes)
            Keep(other, Distance(lane, LaneOf(range.stamp.epoch.lane)), range.stamp);
        is_so = true;
    }
    return is_so;
}

// A lane that finds a store it had been waiting for. Loads of the emulator see no store to come; real ones
// can, unless whoever overwrites a word has synchronised with those who took what was in it.
void Machine::NoteTaken(const Lane &lane, Word &word, uint64_t number)
{
    if (number != word.Newest() || word.At(number).writer.epoch.time == 0)
        return;
    if (word.taken != number)
        word.takers.clear();
    word.taken = number;
    for (const Mark &taker : word.takers)
        if (taker.epoch.lane == lane.clock.Now().lane || taker.epoch.lane.team != lane.team)
            return;
    word.takers.push_back(Mark{lane.clock.Now(), memory_.Intern(lane.site)});
}

void Machine::CheckTaken(const Lane &lane, const Word &word)
{
    for (const Mark &taker : word.takers)
        if (word.taken == word.Newest() && !lane.clock.Knows(taker.epoch))
            FailRace(lane, word.address, word.bytes, taker, "a race: a word is overwritten that was taken");
}

void Machine::Put(Lane &lane, Word &word, Stored stored, Order order, Scope scope, const Site &site)
{
    stored.writer = Mark{lane.clock.Now(), memory_.Intern(site)};
    stored.scope = scope;
    Stamp own;
    if (order == Order::ACQUIRE_RELEASE)
        own = lane.clock.Release();
    for (int distance = 0; distance <= static_cast<int>(scope); distance++)
        stored.stamps[static_cast<size_t>(distance)] =
            own.IsSet() ? own : lane.fences[static_cast<size_t>(distance)];
    words_.Append(word, std::move(stored));
    changes_++;
    WakeWaiters(word);
}

uint64_t Machine::Load(const void *p, uint32_t bytes, Order order, Scope scope, const Site &site)
{
    Lane &lane = Step(order == Order::RELAXED ? "relaxed load" : "acquire load", site);

    return Find(lane, WordFor(lane, p, bytes, false), order, scope, site);
}

uint64_t Machine::LoadFlagged(const void *p, const Site &site)
{
    Lane &lane = Step("load of a flagged word", site);
    Word &word = WordFor(lane, p, 8, false);
    uint64_t value = Find(lane, word, Order::RELAXED, Scope::SYSTEM, site);

    NoteTaken(lane, word, lane.found);
    return value;
}

// One of the stores that the lane may find; its number is lane.found.
uint64_t Machine::Find(Lane &lane, Word &word, Order order, Scope scope, const Site &site)
{
    CheckScopes(lane, word, scope, false);
    lane.found = words_.Choose(word, lane.clock, random(), lane.looks > 0);
    TakeFrom(lane, word, lane.found, order, scope, site);
    Note(word.At(lane.found).value[0]);
    return word.At(lane.found).value[0];
}

void Machine::Store(void *p, uint32_t bytes, uint64_t value, Order order, Scope scope, const Site &site)
{
    Lane &lane = Step(order == Order::RELAXED ? "relaxed store" : "release store", site);

    Place(lane, WordFor(lane, p, bytes, true), value, order, scope, site);
}

void Machine::StoreFlagged(void *p, uint64_t value, const Site &site)
{
    Lane &lane = Step("store of a flagged word", site);
    Word &word = WordFor(lane, p, 8, true);

    CheckTaken(lane, word);
    Place(lane, word, value, Order::RELAXED, Scope::SYSTEM, site);
}

void Machine::Place(Lane &lane, Word &word, uint64_t value, Order order, Scope scope, const Site &site)
{
    Stored stored;

    CheckScopes(lane, word, scope, true);
    stored.value[0] = value;
    Note(value);
    Put(lane, word, std::move(stored), order, scope, site);
}

// It always finds the newest. Its store does not carry on what that one released, as one in C++ would.
bool Machine::CompareSwap(void *p, uint32_t bytes, uint64_t from, uint64_t to, Order order, const Site &site)
{
    Lane &lane = Step("compare and swap", site);
    Word &word = WordFor(lane, p, bytes, true);
    Stored stored;

    CheckScopes(lane, word, Scope::SYSTEM, true);
    TakeFrom(lane, word, word.Newest(), Order::RELAXED, Scope::SYSTEM, site);
    Note(word.Value());
    if (word.Value() != from)
        return false;
    stored.value[0] = to;
    Put(lane, word, std::move(stored), order, Scope::SYSTEM, site);
    return true;
}

// Later relaxed stores release what this lane has done by now, as far as the fence reaches; what earlier
// relaxed loads found released is acquired.
void Machine::Fence(Scope scope, const Site &site)
{
    Lane &lane = Step("fence", site);

    for (size_t i = 0; i < lane.pending.size();) {
        if (lane.pending[i].distance > scope) {
            i++;
            continue;
        }
        lane.clock.Acquire(lane.pending[i].stamp);
        lane.pending[i] = lane.pending.back();
        lane.pending.pop_back();
    }
    Stamp stamp = lane.clock.Release();
    for (int distance = 0; distance <= static_cast<int>(scope); distance++)
        lane.fences[static_cast<size_t>(distance)] = stamp;
}

void Machine::WakeWaiters(Word &word)
{
    for (Lane *lane : word.waiters) {
        if (lane->state == State::FLAG && lane->stop->Value() != 0)
            MakeReady(*lane);
        if (lane->state != State::LINE)
            continue;
        bool reached = static_cast<int64_t>(lane->waited->Value() - lane->target) >= 0;
        if (reached || lane->stop->Value() != 0)
            MakeReady(*lane);
    }
}

bool Machine::WaitUntil(rondo_line *line, uint64_t target, rondo_line *stop, Order order, Scope scope,
                        const Site &site)
{
    Lane &lane = Step("waits for a line", site);
    Word &word = WordFor(lane, &line->value, 8, false), &ends = WordFor(lane, &stop->value, 8, false);

    lane.waited = &word;
    lane.stop = &ends;
    lane.target = target;
    auto reached = [&] { return static_cast<int64_t>(word.Value() - target) >= 0; };
    word.waiters.push_back(&lane);
    ends.waiters.push_back(&lane);
    while (!reached() && ends.Value() == 0)
        Block(lane, State::LINE);
    word.waiters.erase(std::find(word.waiters.begin(), word.waiters.end(), &lane));
    ends.waiters.erase(std::find(ends.waiters.begin(), ends.waiters.end(), &lane));
    lane.waited = lane.stop = nullptr;
    if (!reached() || (ends.Value() != 0 && random().OneIn(2))) {
        TakeFrom(lane, ends, ends.Newest(), Order::RELAXED, Scope::SYSTEM, site);
        return false;
    }
    /* Any store that is enough may be the one it finds. */
    CheckScopes(lane, word, scope, false);
    uint64_t number = words_.Oldest(word, lane.clock);
    while (static_cast<int64_t>(word.At(number).value[0] - target) < 0)
        number++;
    number += random().Below(static_cast<uint32_t>(word.Newest() - number + 1));
    TakeFrom(lane, word, number, order, scope, site);
    Note(word.At(number).value[0]);
    return true;
}

bool Machine::HasFlag(const Lane &lane)
{
    uint32_t value;

    std::memcpy(&value, memory_.Host(lane.flag), sizeof(value));
    return value == lane.target;
}

// Polling takes what is there; sleeping shows who is never woken.
bool Machine::WaitFlag(const rondo_line *line, const uint32_t *flag, uint32_t value, rondo_line *stop,
                       const Site &site)
{
    if (random().OneIn(2))
        return PollAgain(stop, site);
    Lane &lane = Step("sleeps for want of a flag", site);
    Word &ends = WordFor(lane, &stop->value, 8, false);

    lane.bed = line;
    lane.flag = flag;
    lane.target = value;
    lane.stop = &ends;
    ends.waiters.push_back(&lane);
    sleepers_.push_back(&lane);
    if (!HasFlag(lane) && ends.Value() == 0)
        Block(lane, State::FLAG);
    sleepers_.erase(std::find(sleepers_.begin(), sleepers_.end(), &lane));
    ends.waiters.erase(std::find(ends.waiters.begin(), ends.waiters.end(), &lane));
    lane.stop = nullptr;
    return Load(&stop->value, 8, Order::RELAXED, Scope::SYSTEM, site) == 0;
}

// Pairs with the sleepers' last look as line.h has it, for stores that come before the announcement.
void Machine::Announce(const rondo_line *line, const Site &site)
{
    Lane &lane = Step("announces", site);

    if (!memory_.Find(line, sizeof(*line)))
        Fail(Fault::BOUNDS, "an announcement at " + memory_.Describe(line));
    for (Lane *sleeper : sleepers_) {
        if (sleeper->state != State::FLAG || sleeper->bed != line || !HasFlag(*sleeper))
            continue;
        const Word *word = words_.Around(sleeper->flag);
        if (word && lane.clock.Knows(word->stores.back().writer.epoch))
            MakeReady(*sleeper);
    }
}

} // namespace emulator
