// What ranks and their users do at moments that matter: memory is used again, nobody has to wait, flags come
// round.
#include "scenarios.h"

#define RONDO_KERNELS rondo_moments
#define RONDO_PORT "port_emulator.h"
#include "kernels/port.h"

#include <algorithm>
#include <memory>

namespace emulator
{

using namespace rondo_moments;

void Communicator::Reuse(unsigned rank, bool is_mapped)
{
    constexpr unsigned char kOther = 0x5a;

    for (const Buffer *buffer : {&buffers_[0][0][rank].send, &buffers_[0][0][rank].recv}) {
        unsigned char *bytes = static_cast<unsigned char *>(buffer->emulated);
        if (is_mapped)
            machine_.Overwrite(bytes, buffer->bytes, kOther);
        for (uint64_t i = 0; i < buffer->bytes && !is_mapped; i++)
            store_bytes(bytes + i, kOther);
    }
}

namespace
{

rondo_moments::machine MachineOf(Communicator &c, unsigned rank)
{
    return rondo_moments::machine{&c.Page(rank)->stop};
}

bool IsRaised(Communicator &c, unsigned rank)
{
    return c.machine().memory().Host(c.Page(rank))->stop.value != 0;
}

void RaiseOn(Communicator &c, unsigned rank)
{
    raise_stop(MachineOf(c, rank), c.Page(rank), RONDO_STOP_VALUE(RONDO_STOP_ABORT, -1), nullptr);
}

// Each rank's user uses its buffers for something else as soon as the launch is over, however it ended. A
// rank that has not been told to stop has what it should have. Memory of a rank that was stopped may still be
// read by other processes; nobody may make a result of it.
void AddReuse(Communicator &c)
{
    AddStopper(c);
    c.aside = [&c](unsigned rank, unsigned, bool is_over) {
        if (!is_over)
            return;
        bool is_stopped = IsRaised(c, rank);
        if (!is_stopped && !c.IsRight(rank))
            emulated().Fail(Fault::WRONG, "rank " + std::to_string(rank) +
                                              " ends as if nothing had been, with a wrong result");
        c.Reuse(rank, is_stopped && c.shape().is_apart);
    };
}

// Rank 0 is stopped while rank 1 reads its memory, all in one piece; its user uses that again, and rank 1 is
// told later.
struct Revocation {
    Communicator &c;
    bool has_ended = false; // rank 1

    uint64_t Written()
    {
        uint64_t bytes = 0;
        const unsigned char *result = c.Result(1, &bytes);

        return bytes - static_cast<uint64_t>(std::count(result, result + bytes, 0xc3));
    }

    void StopSometime()
    {
        uint64_t bytes = 0;
        unsigned polls = 0;

        c.Result(1, &bytes);
        for (uint64_t enough = 1 + c.machine().random().Below(static_cast<uint32_t>(bytes * 3 / 4));
             Written() < enough;)
            if (!poll_again(MachineOf(c, 0), polls))
                return;
        RaiseOn(c, 0);
    }

    void EndOf(unsigned rank)
    {
        constexpr unsigned kPatience = 20000;
        bool is_stopped = IsRaised(c, rank);

        has_ended = has_ended || rank == 1;
        if (!is_stopped && !c.IsRight(rank))
            emulated().Fail(Fault::WRONG, "a rank ends as if nothing had been, with a wrong result");
        if (rank == 1)
            return;
        c.Reuse(rank, is_stopped && c.shape().is_apart);
        for (unsigned i = 0; i < kPatience && !has_ended; i++)
            breathe(MachineOf(c, rank));
        RaiseOn(c, 1);
    }
};

void AddRevocation(Communicator &c)
{
    c.before_run = [&c] {
        auto revocation = std::make_shared<Revocation>(Revocation{c});
        c.machine().AddActor("stopper", [revocation](Lane &) { revocation->StopSometime(); });
        c.aside = [revocation](unsigned rank, unsigned, bool is_over) {
            if (is_over)
                revocation->EndOf(rank);
        };
    };
}

// How many pieces of a rank's result have been begun; 0xc3 is what nobody wrote.
unsigned Begun(Communicator &c, unsigned rank)
{
    const rondo_work &work = *c.Works(rank, 0)[0];
    uint64_t bytes = 0, piece = work.chunk * rondo_dtype_bytes(static_cast<ncclDataType_t>(work.dtype));
    const unsigned char *result = c.Result(rank, &bytes);
    unsigned begun = 0;

    for (uint64_t at = 0; at < bytes; at += piece)
        begun += std::any_of(result + at, result + std::min(bytes, at + piece),
                             [](unsigned char byte) { return byte != 0xc3; });
    return begun;
}

// A rank that has all that it needs, and much to do, stops when it is told to. Only that rank is told; the
// others are when it has ended.
struct Interruption {
    Communicator &c;
    unsigned begun = 0; // when stop was raised

    static constexpr unsigned kBusy = 1; // the rank
    static constexpr unsigned kMore = 6; // pieces that it may do before it sees that

    void RaiseWhenBegun()
    {
        unsigned polls = 0;

        while (Begun(c, kBusy) < 2)
            if (!poll_again(MachineOf(c, 0), polls))
                return;
        RaiseOn(c, kBusy);
        begun = Begun(c, kBusy);
    }
};

void AddInterruption(Communicator &c)
{
    auto interruption = std::make_shared<Interruption>(Interruption{c});

    c.before_run = [&c, interruption] {
        c.machine().AddActor("stopper", [interruption](Lane &) { interruption->RaiseWhenBegun(); });
    };
    c.aside = [&c, interruption](unsigned rank, unsigned, bool is_over) {
        if (!is_over || rank != Interruption::kBusy || !IsRaised(c, rank))
            return;
        if (Begun(c, rank) > interruption->begun + Interruption::kMore)
            emulated().Fail(Fault::WRONG, "a rank goes on although stop is raised");
        for (unsigned other = 0; other < c.shape().ranks; other++)
            RaiseOn(c, other);
    };
}

// Of two ranks, through a word of the page that no kernel uses.
void TellOther(Communicator &c, unsigned rank)
{
    store_release<scope::SYSTEM>(&c.Page(1 - rank)->departed, uint64_t{1});
}

void WaitForOther(Communicator &c, unsigned rank)
{
    unsigned polls = 0;

    while (load_acquire<scope::SYSTEM>(&c.Page(rank)->departed) == 0)
        if (!poll_again(MachineOf(c, rank), polls))
            return;
}

// All that rank 1 is to receive is there before it starts, and so is a stop.
void StopBeforeLate(Communicator &c)
{
    c.aside = [&c](unsigned rank, unsigned, bool is_over) {
        if (rank == 0 && is_over)
            TellOther(c, rank);
        if (rank == 0 || is_over)
            return;
        WaitForOther(c, rank);
        RaiseOn(c, rank);
    };
}

Failure RunLate(Communicator &c, uint64_t seed)
{
    Failure failure = c.RunOnly(seed);

    if (!failure && c.LastByteOf(1) != 0xc3)
        failure = {Fault::WRONG, "a message was taken although stop was raised before"};
    return failure ? failure : c.CheckEnd();
}

// After the first launch, which leaves flags in all words, it is as if parts of one line each had been sent
// until the flags are about to come round; the second launch sends the last of these. Of so many steps the
// first are long past: nobody finds what was stored before the second launch any more.
void SkipSteps(Communicator &c)
{
    c.aside = [&c](unsigned rank, unsigned launch, bool is_over) {
        constexpr uint64_t kSteps = (uint64_t{1} << 32) - RONDO_SLOTS;

        if (launch == 1 && is_over)
            TellOther(c, rank);
        if (launch == 2 && !is_over)
            WaitForOther(c, rank);
        if (launch > 0 || !is_over)
            return;
        for (const rondo_work *work : c.Works(rank, 0)) {
            if (work->to)
                store_plain(&work->to->step, kSteps);
            if (!work->from)
                continue;
            store_plain(&work->from->step, kSteps);
            publish(MachineOf(c, rank), work->from->consumed, kSteps, nullptr);
        }
    };
}

Call CallOf(rondo_operation operation, uint64_t count, int root)
{
    Call call;

    call.operation = operation;
    call.count = count;
    call.root = root;
    return call;
}

void AddFlagsThatComeRound(std::vector<Scenario> &scenarios)
{
    Scenario scenario = MakeScenario("flags come round", RONDO_OP_SEND, 2, 0, SkipSteps, nullptr);
    const uint64_t in_slot = scenario.shape.slot_bytes / 4;

    scenario.shape.protocol = RONDO_PROTOCOL_LL;
    scenario.launches = {{CallOf(RONDO_OP_SEND, RONDO_SLOTS * in_slot, 1)},
                         std::vector<Call>(RONDO_SLOTS, CallOf(RONDO_OP_SEND, 1, 1)),
                         {CallOf(RONDO_OP_SEND, RONDO_SLOTS * in_slot - 1, 1)}};
    scenarios.push_back(scenario);
}

// Memory that was offered, and is used again.
void AddReused(std::vector<Scenario> &scenarios)
{
    for (rondo_operation operation : {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER,
                                      RONDO_OP_BROADCAST, RONDO_OP_REDUCE}) {
        Scenario scenario =
            MakeScenario("direct, reuse after stop", operation, 3, 400, AddReuse, RunUntilStop);
        scenario.shape.is_direct = true;
        scenario.shape.channels = 1;
        scenario.launches[0][0].is_exact = false;
        scenarios.push_back(scenario);
        scenario.shape.is_apart = true;
        scenario.name += ", apart";
        scenarios.push_back(scenario);
    }
    for (rondo_operation operation : {RONDO_OP_ALL_REDUCE, RONDO_OP_BROADCAST, RONDO_OP_REDUCE_SCATTER}) {
        Scenario scenario =
            MakeScenario("direct, stop of who is read", operation, 2, 16384, AddRevocation, RunUntilStop);
        scenario.shape.is_direct = true;
        scenario.shape.channels = 1;
        scenario.shape.slot_bytes = 65536;
        scenario.shape.lanes = 32; /* few, so that rank 0 is soon gone */
        scenario.launches[0][0].root = 0;
        scenario.launches[0][0].is_exact = false;
        scenarios.push_back(scenario);
        scenario.shape.is_apart = true;
        scenario.name += ", apart";
        scenarios.push_back(scenario);
    }
    for (rondo_operation operation : {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_TO_ALL, RONDO_OP_BROADCAST}) {
        Scenario scenario = MakeScenario("direct, chained", operation, 3, 200, nullptr, nullptr);
        Call call = CallOf(operation, 200, 1);
        scenario.shape.is_direct = true;
        call.is_exact = false;
        scenario.launches = {{call, call, call}};
        scenario.launches[0][1].is_chained = scenario.launches[0][2].is_chained = true;
        scenarios.push_back(scenario);
        scenario.prepare = AddStopper;
        scenario.run = RunUntilStop;
        scenario.name += ", stop at any time";
        scenarios.push_back(scenario);
    }
}

} // namespace

std::vector<Scenario> MomentScenarios()
{
    std::vector<Scenario> scenarios;

    AddReused(scenarios);
    for (rondo_operation operation : {RONDO_OP_BROADCAST, RONDO_OP_REDUCE_SCATTER}) {
        Scenario scenario =
            MakeScenario("direct, stop of a busy rank", operation, 3, 1500, AddInterruption, RunUntilStop);
        scenario.shape.is_direct = true;
        scenario.shape.channels = 1;
        scenarios.push_back(scenario);
    }
    Scenario late = MakeScenario("stop before, late", RONDO_OP_BROADCAST, 2, 100, StopBeforeLate, RunLate);
    late.launches[0][0].root = 0;
    AddOverProtocols(late, scenarios);
    late.name = "one-shot, " + late.name;
    late.shape.is_direct = true;
    AddOverFlags(late, scenarios);
    AddFlagsThatComeRound(scenarios);
    return scenarios;
}

} // namespace emulator
