// Between blocks and ranks: releases, acquires, scopes, fences, and what relaxed loads may find.
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

// Wait for words[0] to be set, by polling with the load given.
template <class Load> void Poll(const Shared &s, const Load &load)
{
    unsigned polls = 0;

    while (load() == 0)
        poll_again(At(s), polls);
}

void Expect(const Shared &s)
{
    Require(load_plain(&s.data[0]) == 1, "the data is not there");
}

template <bool RELEASES, bool ACQUIRES> void Message(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0) {
        store_plain(&s.data[0], uint64_t{1});
        if (RELEASES)
            store_release<scope::SYSTEM>(&s.words[0], uint64_t{1});
        else
            store_relaxed(&s.words[0], uint64_t{1});
        return;
    }
    if (ACQUIRES)
        Poll(s, [&] { return load_acquire<scope::SYSTEM>(&s.words[0]); });
    else
        Poll(s, [&] { return load_relaxed(&s.words[0]); });
    Expect(s);
}

template <scope OUT, scope IN> void Scoped(const Shared &s, unsigned rank, unsigned block)
{
    if (lane_index() != 0)
        return;
    if (rank + block == 0) {
        store_plain(&s.data[0], uint64_t{1});
        store_release<OUT>(&s.words[0], uint64_t{1});
        return;
    }
    Poll(s, [&] { return load_acquire<IN>(&s.words[0]); });
    Expect(s);
}

template <scope OUT, scope IN> void Fenced(const Shared &s, unsigned rank, unsigned block)
{
    if (lane_index() != 0)
        return;
    if (rank + block == 0) {
        store_plain(&s.data[0], uint64_t{1});
        fence<OUT>();
        store_relaxed(&s.words[0], uint64_t{1});
        return;
    }
    Poll(s, [&] { return load_relaxed(&s.words[0]); });
    fence<IN>();
    Expect(s);
}

void FlagFirst(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0) {
        store_release<scope::SYSTEM>(&s.words[0], uint64_t{1});
        store_plain(&s.data[0], uint64_t{1});
        return;
    }
    Poll(s, [&] { return load_acquire<scope::SYSTEM>(&s.words[0]); });
    load_plain(&s.data[0]);
}

// What the other lanes of a block wrote travels with lane 0's release, if a barrier is in between.
template <bool MEETS> void Cumulative(const Shared &s, unsigned rank, unsigned)
{
    if (rank == 0) {
        store_plain(&s.data[lane_index()], uint64_t{1});
        if (MEETS)
            barrier();
        if (lane_index() == 0)
            publish(At(s), &s.line[0], 1, nullptr);
        return;
    }
    if (lane_index() == 0 && !has_reached(&s.line[0], 1))
        wait_until(At(s), &s.line[0], 1);
    barrier();
    load_plain(&s.data[lane_count() - 1 - lane_index()]);
}

// Who waits for 1 may rely on what came before 1.
template <unsigned TARGET> void EarlyValue(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0) {
        store_plain(&s.data[0], uint64_t{1});
        publish(At(s), &s.line[0], 1, nullptr);
        store_plain(&s.data[1], uint64_t{1});
        publish(At(s), &s.line[0], 2, nullptr);
        return;
    }
    if (!has_reached(&s.line[0], TARGET))
        wait_until(At(s), &s.line[0], TARGET);
    load_plain(&s.data[1]);
}

// Two relaxed words may be seen in either order.
template <bool FENCES> void TwoWords(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0) {
        store_relaxed(&s.words[1], uint64_t{1});
        if (FENCES)
            fence<scope::SYSTEM>();
        store_relaxed(&s.words[0], uint64_t{1});
        return;
    }
    Poll(s, [&] { return load_relaxed(&s.words[0]); });
    if (FENCES)
        fence<scope::SYSTEM>();
    Require(load_relaxed(&s.words[1]) == 1, "the first word is older than the second");
}

// One word never goes back.
void OneWord(const Shared &s, unsigned rank, unsigned)
{
    uint64_t last = 0;

    for (uint64_t i = 1; i < 30; i++) {
        if (rank == 0 && lane_index() == 0)
            store_relaxed(&s.words[0], i);
        if (rank == 1) {
            uint64_t value = load_relaxed(&s.words[0]);
            Require(value >= last, "a word went back");
            last = value;
        }
    }
}

template <bool BOTH> void LlPair(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() >= 4)
        return;
    if (rank == 0) {
        store_ll_pair(&s.pair[lane_index()], {{{5, 1}, {6, 1}}});
        return;
    }
    unsigned polls = 0;
    ll_pair got;
    while (got = load_ll_pair(&s.pair[lane_index()]),
           got.word[0].flag != 1 || (BOTH && got.word[1].flag != 1))
        poll_again(At(s), polls);
    Require(got.word[0].data == 5 && got.word[1].data == 6, "half a pair");
}

// The flag of a word says nothing of other memory.
void LlForOthers(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0) {
        store_plain(&s.data[0], uint64_t{1});
        store_ll(&s.pair[0].word[0], {5, 1});
        return;
    }
    unsigned polls = 0;
    while (load_ll(&s.pair[0].word[0]).flag != 1)
        poll_again(At(s), polls);
    load_plain(&s.data[0]);
}

// The second message overwrites the first. It is known to have been read by a credit, which must be acquired:
// else a load could find what is stored afterwards.
template <bool ACQUIRES> void LlTwice(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    unsigned polls = 0;
    if (rank == 0) {
        store_ll(&s.pair[0].word[0], {5, 1});
        while ((ACQUIRES ? load_acquire<scope::SYSTEM>(&s.line[0].value) : load_relaxed(&s.line[0].value)) !=
               1)
            poll_again(At(s), polls);
        store_ll(&s.pair[0].word[0], {6, 2});
        return;
    }
    while (load_ll(&s.pair[0].word[0]).flag != 1)
        poll_again(At(s), polls);
    publish(At(s), &s.line[0], 1, nullptr);
    while (load_ll(&s.pair[0].word[0]).flag != 2)
        poll_again(At(s), polls);
}

// Look at one flagged word until it is that of the message, asleep in between where the port likes.
bool TakeFlagged(const Shared &s)
{
    unsigned polls = 0;

    while (load_ll(&s.pair[0].word[0]).flag != 1)
        if (!wait_flag(At(s), &s.line[0], &s.pair[0].word[0].flag, 1, polls))
            return false;
    return true;
}

// Who sleeps is woken by an announcement at the line that it sleeps at, and by no store.
template <int LINE> void Announced(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 1) {
        Require(TakeFlagged(s), "stopped by nobody");
        return;
    }
    store_ll(&s.pair[0].word[0], {5, 1});
    if (LINE >= 0)
        announce(At(s), &s.line[LINE < 0 ? 0 : LINE], nullptr);
}

// Another lane's store can be announced once the two have met.
template <bool MEETS> void AnnouncedByAnother(const Shared &s, unsigned rank, unsigned)
{
    if (rank == 1) {
        if (lane_index() == 0)
            TakeFlagged(s);
        return;
    }
    if (lane_index() == 1)
        store_ll(&s.pair[0].word[0], {5, 1});
    if (MEETS)
        barrier();
    if (lane_index() == 0)
        announce(At(s), &s.line[0], nullptr);
}

void AnnouncedFirst(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 1) {
        TakeFlagged(s);
        return;
    }
    announce(At(s), &s.line[0], nullptr);
    store_ll(&s.pair[0].word[0], {5, 1});
}

void AnnouncedNowhere(const Shared &s, unsigned, unsigned)
{
    announce(At(s), s.line + 4, nullptr);
}

void StoppedWhileAsleep(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0)
        raise_stop(At(s), s.page, 3, nullptr);
    else
        Require(!TakeFlagged(s), "found what nobody stored");
}

template <unsigned OFFSET> void PlainSixteen(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0)
        store_pack((copy_pack *)s.data + OFFSET, copy_pack{{1, 1}});
    else
        load_pack<copy_pack>((copy_pack *)s.data);
}

void PlainBesideProtocol(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0)
        publish(At(s), &s.line[0], 1, nullptr);
    else
        load_plain(&s.line[0].value);
}

void WaitForEachOther(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() == 0) {
        wait_until(At(s), &s.line[1 - rank], 1);
        publish(At(s), &s.line[rank], 1, nullptr);
    }
    barrier();
}

void PostThenWait(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() == 0) {
        publish(At(s), &s.line[rank], 1, nullptr);
        wait_until(At(s), &s.line[1 - rank], 1);
    }
    barrier();
}

void PollForNothing(const Shared &s, unsigned, unsigned)
{
    unsigned polls = 0;

    while (load_relaxed(&s.words[3]) == 0)
        if (!poll_again(At(s), polls))
            return;
}

template <bool LISTENS> void Stopped(const Shared &s, unsigned rank, unsigned)
{
    unsigned polls = 0;

    if (rank == 0) {
        if (lane_index() == 0)
            raise_stop(At(s), s.page, 3, nullptr);
        return;
    }
    while (load_relaxed(&s.words[3]) == 0)
        if (!poll_again(At(s), polls) && LISTENS)
            return;
}

void StoppedWhileWaiting(const Shared &s, unsigned rank, unsigned)
{
    if (lane_index() != 0)
        return;
    if (rank == 0)
        raise_stop(At(s), s.page, 3, nullptr);
    else
        Require(!wait_until(At(s), &s.line[0], 1), "reached what nobody posted");
}

void ForEver(const Shared &s, unsigned, unsigned)
{
    for (;;)
        load_plain(&s.data[0]);
}

} // namespace

const std::vector<Tiny> &MessageCases()
{
    static const std::vector<Tiny> cases = {
        {"RelaxedStore", Fault::RACE, 2, 1, 32, Message<false, true>},
        {"RelaxedLoad", Fault::RACE, 2, 1, 32, Message<true, false>},
        {"Message", Fault::NONE, 2, 1, 32, Message<true, true>},
        {"StoreOfDeviceScope", Fault::RACE, 2, 1, 32, Scoped<scope::DEVICE, scope::SYSTEM>},
        {"LoadOfDeviceScope", Fault::RACE, 2, 1, 32, Scoped<scope::SYSTEM, scope::DEVICE>},
        {"StoreOfBlockScope", Fault::RACE, 1, 2, 32, Scoped<scope::BLOCK, scope::DEVICE>},
        {"DeviceScope", Fault::NONE, 1, 2, 32, Scoped<scope::DEVICE, scope::DEVICE>},
        {"SystemScope", Fault::NONE, 2, 1, 32, Scoped<scope::SYSTEM, scope::SYSTEM>},
        {"FenceOfDeviceScope", Fault::RACE, 2, 1, 32, Fenced<scope::DEVICE, scope::SYSTEM>},
        {"OtherFenceOfDeviceScope", Fault::RACE, 2, 1, 32, Fenced<scope::SYSTEM, scope::DEVICE>},
        {"Fences", Fault::NONE, 2, 1, 32, Fenced<scope::SYSTEM, scope::SYSTEM>},
        {"FencesOnADevice", Fault::NONE, 1, 2, 32, Fenced<scope::DEVICE, scope::DEVICE>},
        {"FlagBeforeData", Fault::RACE, 2, 1, 32, FlagFirst},
        {"NotCumulative", Fault::RACE, 2, 1, 32, Cumulative<false>},
        {"Cumulative", Fault::NONE, 2, 1, 32, Cumulative<true>},
        {"EarlyValue", Fault::RACE, 2, 1, 32, EarlyValue<1>},
        {"EarlyValue", Fault::NONE, 2, 1, 32, EarlyValue<2>},
        {"StaleWord", Fault::WRONG, 2, 1, 32, TwoWords<false>},
        {"StaleWord", Fault::NONE, 2, 1, 32, TwoWords<true>},
        {"Coherence", Fault::NONE, 2, 1, 32, OneWord},
        {"TornPair", Fault::WRONG, 2, 1, 32, LlPair<false>},
        {"TornPair", Fault::NONE, 2, 1, 32, LlPair<true>},
        {"FlagOfAnotherWord", Fault::RACE, 2, 1, 32, LlForOthers},
        {"RelaxedCredit", Fault::RACE, 2, 1, 32, LlTwice<false>},
        {"RelaxedCredit", Fault::NONE, 2, 1, 32, LlTwice<true>},
        {"NeverAnnounced", Fault::DEADLOCK, 2, 1, 32, Announced<-1>},
        {"AnnouncedElsewhere", Fault::DEADLOCK, 2, 1, 32, Announced<1>},
        {"AnnouncedTooEarly", Fault::DEADLOCK, 2, 1, 32, AnnouncedFirst},
        {"Announced", Fault::NONE, 2, 1, 32, Announced<0>},
        {"AnnouncedByAnother", Fault::DEADLOCK, 2, 1, 32, AnnouncedByAnother<false>},
        {"AnnouncedByAnother", Fault::NONE, 2, 1, 32, AnnouncedByAnother<true>},
        {"AnnouncedNowhere", Fault::BOUNDS, 1, 1, 32, AnnouncedNowhere},
        {"StopEndsSleep", Fault::NONE, 2, 1, 32, StoppedWhileAsleep},
        {"TornPack", Fault::RACE, 2, 1, 32, PlainSixteen<0>},
        {"TornPack", Fault::NONE, 2, 1, 32, PlainSixteen<1>},
        {"PlainBesideProtocol", Fault::RACE, 2, 1, 32, PlainBesideProtocol},
        {"WaitForEachOther", Fault::DEADLOCK, 2, 1, 32, WaitForEachOther},
        {"WaitForEachOther", Fault::NONE, 2, 1, 32, PostThenWait},
        {"PollForNothing", Fault::DEADLOCK, 2, 1, 32, PollForNothing},
        {"DeafToStop", Fault::LOST_STOP, 2, 1, 32, Stopped<false>},
        {"DeafToStop", Fault::NONE, 2, 1, 32, Stopped<true>},
        {"StopEndsWaits", Fault::NONE, 2, 1, 32, StoppedWhileWaiting},
        {"ForEver", Fault::ENDLESS, 1, 1, 32, ForEver},
    };
    return cases;
}

} // namespace tiny
