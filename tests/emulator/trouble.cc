// What ends a launch early, and what the host and other ranks see of it.
#include "scenarios.h"

#define RONDO_KERNELS rondo_trouble
#define RONDO_PORT "port_emulator.h"
#include "kernels/port.h"

#include <memory>

namespace emulator
{

using namespace rondo_trouble;

namespace
{

constexpr uint64_t kFingerprint = 111, kOther = 222;

// What a fault must say.
void CheckFault(rondo_fault *fault)
{
    load_plain(&fault->work);
    if (load_plain(&fault->expected) == load_plain(&fault->found) &&
        load_plain(&fault->expected_bytes) == load_plain(&fault->found_bytes))
        emulated().Fail(Fault::WRONG, "a fault of what does not differ");
    if (load_plain(&fault->peer) < 0)
        emulated().Fail(Fault::WRONG, "a fault of nobody's data");
}

// The watch thread, as far as stops go: who sees one raised raises it everywhere. The first that it sees, a
// kernel has raised; with it come the words of a fault.
void SpreadStop(Communicator &c, bool is_fault)
{
    rondo_trouble::machine where{&c.Page(0)->stop};
    unsigned polls = 0, by = 0;

    for (;;) {
        uint64_t value = 0;
        for (unsigned rank = 0; rank < c.shape().ranks && value == 0; rank++) {
            value = load_acquire<scope::SYSTEM>(&c.Page(rank)->stop.value);
            by = rank;
        }
        if (value != 0 && is_fault)
            CheckFault(c.FaultOf(by, 0));
        for (unsigned rank = 0; rank < c.shape().ranks && value != 0; rank++)
            raise_stop(where, c.Page(rank), value, nullptr);
        if (value != 0 || !poll_again(where, polls))
            return;
    }
}

// Raises stop on one rank at any moment.
void RaiseSometime(Communicator &c)
{
    rondo_trouble::machine where{&c.Page(0)->stop};
    unsigned polls = 0, patience = c.machine().random().Below(200);
    unsigned rank = c.machine().random().Below(c.shape().ranks);

    for (unsigned i = 0; i < patience; i++)
        if (!poll_again(where, polls))
            return;
    raise_stop(where, c.Page(rank), RONDO_STOP_VALUE(RONDO_STOP_ABORT, -1), nullptr);
}

} // namespace

void AddWatch(Communicator &c)
{
    c.before_run = [&c] { c.machine().AddActor("watch thread", [&c](Lane &) { SpreadStop(c, false); }); };
}

void AddStopper(Communicator &c)
{
    c.before_run = [&c] {
        c.machine().AddActor("watch thread", [&c](Lane &) { SpreadStop(c, false); });
        c.machine().AddActor("stopper", [&c](Lane &) { RaiseSometime(c); });
    };
}

Failure RunUntilStop(Communicator &c, uint64_t seed)
{
    Failure failure = c.RunOnly(seed);

    if (!failure)
        failure = c.CheckEnd();
    for (unsigned rank = 0; !failure && rank < c.shape().ranks; rank++)
        if (c.machine().memory().Host(c.FaultOf(rank, 0))->code != 0)
            failure = {Fault::WRONG, "a stop became a fault"};
    return failure;
}

namespace
{

bool IsStopped(Communicator &c)
{
    return c.machine().memory().Host(c.Page(0))->stop.value != 0;
}

// Either the run was stopped, and is no fault; or it is as if nothing had been.
Failure RunStopped(Communicator &c, uint64_t seed)
{
    Failure failure = RunUntilStop(c, seed);

    return failure || IsStopped(c) ? failure : c.CheckResults();
}

// Stop was there before the launch: nothing may move, although all could.
void RaiseBefore(Communicator &c)
{
    c.before_run = [&c] {
        for (unsigned rank = 0; rank < c.shape().ranks; rank++)
            c.machine().memory().Host(c.Page(rank))->stop.value = RONDO_STOP_ABORT;
    };
}

Failure RunRaisedBefore(Communicator &c, uint64_t seed)
{
    Failure failure = c.RunOnly(seed);

    if (!failure)
        failure = c.CheckEnd();
    if (!failure && c.HasPosted())
        failure = {Fault::WRONG, "a slot was posted although stop was raised before"};
    if (!failure && c.LastByteOf(0) != 0xc3)
        failure = {Fault::WRONG, "the end of a long copy was written although stop was raised before"};
    return failure;
}

// The host reads a fault once it sees its code.
void ReadFault(Communicator &c, unsigned rank)
{
    rondo_trouble::machine where{&c.Page(rank)->stop};
    rondo_fault *fault = c.FaultOf(rank, 0);
    unsigned polls = 0;

    while (load_acquire<scope::SYSTEM>(&fault->code) == 0)
        if (!poll_again(where, polls))
            return;
    CheckFault(fault);
}

void AddFaultReaders(Communicator &c)
{
    c.before_run = [&c] {
        c.machine().AddActor("watch thread", [&c](Lane &) { SpreadStop(c, true); });
        for (unsigned rank = 0; rank < c.shape().ranks; rank++)
            c.machine().AddActor("host of rank " + std::to_string(rank),
                                 [&c, rank](Lane &) { ReadFault(c, rank); });
    };
}

// The last rank calls something else.
void SpoilFingerprints(Communicator &c)
{
    for (unsigned rank = 0; rank < c.shape().ranks; rank++)
        for (rondo_work *work : c.Works(rank, 0))
            work->fingerprint = rank + 1 < c.shape().ranks ? kFingerprint : kOther;
    AddFaultReaders(c);
}

// Only what the second work of each rank moves.
void SpoilOneChannel(Communicator &c)
{
    for (unsigned rank = 0; rank < c.shape().ranks; rank++)
        for (rondo_work *work : c.Works(rank, 0))
            work->fingerprint = rank + 1 < c.shape().ranks || work->channel == 0 ? kFingerprint : kOther;
    AddFaultReaders(c);
}

void SpoilBytes(Communicator &c)
{
    for (rondo_work *work : c.Works(1, 0))
        work->chunk--;
    AddFaultReaders(c);
}

Failure RunFaulty(Communicator &c, uint64_t seed, ncclResult_t code)
{
    Failure failure = c.RunOnly(seed);
    unsigned faults = 0;

    if (!failure)
        failure = c.CheckEnd();
    for (unsigned rank = 0; !failure && rank < c.shape().ranks; rank++) {
        const rondo_fault &fault = *c.machine().memory().Host(c.FaultOf(rank, 0));
        if (fault.code == 0)
            continue;
        faults++;
        bool names = fault.code != ncclInvalidUsage ||
                     (fault.expected + fault.found == kFingerprint + kOther &&
                      (fault.found == kOther) == (static_cast<unsigned>(fault.peer) + 1 == c.shape().ranks));
        if (fault.code != static_cast<uint32_t>(code) || fault.claim != 1 || !names ||
            fault.expected_bytes == 0 || fault.found_bytes == 0)
            failure = {Fault::WRONG, "rank " + std::to_string(rank) + " reports the wrong fault, code " +
                                         std::to_string(fault.code)};
    }
    if (!failure && (faults == 0 || !IsStopped(c)))
        failure = {Fault::WRONG, "nobody has noticed, or nobody was told"};
    return failure;
}

Failure RunOtherFingerprint(Communicator &c, uint64_t seed)
{
    return RunFaulty(c, seed, ncclInvalidUsage);
}

// Nor does anybody write what came of another operation's data: of an all-reduce nobody can finish a part.
Failure RunWritesNothing(Communicator &c, uint64_t seed)
{
    Failure failure = RunFaulty(c, seed, ncclInvalidUsage);

    for (unsigned rank = 0; !failure && rank < c.shape().ranks; rank++)
        if (c.LastByteOf(rank) != 0xc3)
            failure = {Fault::WRONG, "the result of rank " + std::to_string(rank) + " was written"};
    return failure;
}

// The second work is the one that noticed.
Failure RunOtherChannel(Communicator &c, uint64_t seed)
{
    Failure failure = RunFaulty(c, seed, ncclInvalidUsage);

    for (unsigned rank = 0; !failure && rank < c.shape().ranks; rank++) {
        const rondo_fault &fault = *c.machine().memory().Host(c.FaultOf(rank, 0));
        if (fault.code != 0 && fault.work != 1)
            failure = {Fault::WRONG, "a fault names the wrong work"};
    }
    return failure;
}

Failure RunOtherBytes(Communicator &c, uint64_t seed)
{
    return RunFaulty(c, seed, ncclInternalError);
}

// Rank 0 can read one byte of the last rank's memory, and not what it is offered.
void SpoilWindows(Communicator &c)
{
    unsigned other = c.shape().ranks - 1;

    for (rondo_work *work : c.Works(0, 0))
        c.machine().memory().Host(work->peers)[other].window = {1, 1, nullptr};
    AddWatch(c);
}

Failure RunElsewhere(Communicator &c, uint64_t seed)
{
    Failure failure = c.RunOnly(seed);
    const rondo_fault &fault = *c.machine().memory().Host(c.FaultOf(0, 0));

    if (!failure && (fault.code != ncclInternalError || fault.peer + 1 != static_cast<int>(c.shape().ranks)))
        failure = {Fault::WRONG, "rank 0 has not refused memory outside its window"};
    if (!failure && c.LastByteOf(0) != 0xc3)
        failure = {Fault::WRONG, "rank 0 has read outside its window"};
    return failure ? failure : c.CheckEnd();
}

// A work that nobody should have planned, on every rank.
void SpoilKinds(Communicator &c)
{
    for (unsigned rank = 0; rank < c.shape().ranks; rank++)
        for (rondo_work *work : c.Works(rank, 0))
            work->kind = 200;
}

// Rank 1's notes, once it waits for a rank that never comes: whole, and gone when the wait ends. Who has
// seen them all ends it.
struct NoteReader {
    Communicator &c;
    unsigned unseen = 0;

    void Read(unsigned index)
    {
        const rondo_work *work = c.Works(1, 0)[index];
        rondo_note *note = &c.Page(1)->notes[c.ListOf(1, 0, index)];
        rondo_trouble::machine where{&c.Page(1)->stop};
        bool sends = work->kind == RONDO_WORK_SEND || work->peers;
        rondo_wait_kind kind = sends ? RONDO_WAIT_SEND : RONDO_WAIT_RECV;
        int32_t peer =
            work->peers ? work->root - 1 : work->root; /* direct: the first reader behind the root */
        unsigned polls = 0;

        while (load_acquire<scope::SYSTEM>(&note->wait) != kind)
            if (!poll_again(where, polls))
                return;
        if (load_relaxed(&note->peer) != peer || load_relaxed(&note->number) != work->number ||
            load_relaxed(&note->sequence) != 1 || load_relaxed(&note->operation) != work->operation)
            emulated().Fail(Fault::WRONG, "a note that is not whole");
        if (--unseen == 0)
            raise_stop(where, c.Page(1), RONDO_STOP_ABORT, nullptr);
    }
};

void AddNoteReaders(Communicator &c)
{
    auto reader = std::make_shared<NoteReader>(NoteReader{c});

    for (unsigned rank = 0; rank < c.shape().ranks; rank++)
        c.absent[rank] = rank != 1;
    c.before_run = [&c, reader] {
        reader->unseen = static_cast<unsigned>(c.Works(1, 0).size());
        for (unsigned i = 0; i < c.Works(1, 0).size(); i++)
            c.machine().AddActor("reader of note " + std::to_string(i),
                                 [reader, i](Lane &) { reader->Read(i); });
    };
}

Failure RunOnlyAndCheck(Communicator &c, uint64_t seed)
{
    Failure failure = c.RunOnly(seed);

    return failure ? failure : c.CheckEnd();
}

} // namespace

Scenario MakeScenario(const char *name, rondo_operation operation, unsigned ranks, uint64_t count,
                      void (*prepare)(Communicator &), Failure (*run)(Communicator &, uint64_t))
{
    Scenario scenario;
    Call call;

    call.operation = operation;
    call.count = count;
    call.root = 1;
    scenario.name = std::string(name) + ", " + rondo_operation_name(operation);
    scenario.shape.ranks = ranks;
    scenario.shape.channels = 2;
    scenario.shape.slot_bytes = 128;
    scenario.launches = {{call}};
    scenario.prepare = prepare;
    scenario.run = run;
    return scenario;
}

namespace
{

// The same of works that read their peers' memory, or write into all their slots.
void AddDirect(std::vector<Scenario> &scenarios)
{
    std::vector<Scenario> direct;

    for (rondo_operation operation : {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_REDUCE_SCATTER}) {
        direct.push_back(MakeScenario("direct, stop at any time", operation, 3, 300, AddStopper, RunStopped));
        direct.push_back(MakeScenario("direct, stop before", operation, 3, 60, RaiseBefore, RunRaisedBefore));
        direct.push_back(MakeScenario("direct, other fingerprint", operation, 3, 200, SpoilFingerprints,
                                      RunOtherFingerprint));
    }
    direct.push_back(MakeScenario("direct, other fingerprint writes nothing", RONDO_OP_ALL_REDUCE, 3, 60,
                                  SpoilFingerprints, RunWritesNothing));
    for (Scenario &scenario : direct) {
        scenario.shape.is_direct = true;
        AddOverProtocols(scenario, scenarios);
        scenario.shape.bounced = 0b101;
        scenario.name += ", some bounced";
        scenarios.push_back(scenario);
    }
    for (unsigned bounced : {0u, 0b101u}) { /* Simple alone reads through windows */
        scenarios.push_back(
            MakeScenario("direct, memory elsewhere", RONDO_OP_ALL_GATHER, 3, 60, SpoilWindows, RunElsewhere));
        scenarios.back().shape.is_direct = true;
        scenarios.back().shape.bounced = bounced;
        scenarios.back().name += bounced ? ", some bounced" : "";
    }
    /* All go in pieces: cut otherwise, and a root that waits for readers that never come. */
    scenarios.push_back(
        MakeScenario("direct, other bytes", RONDO_OP_ALL_REDUCE, 3, 300, SpoilBytes, RunOtherBytes));
    scenarios.push_back(
        MakeScenario("direct, notes", RONDO_OP_BROADCAST, 3, 600, AddNoteReaders, RunOnlyAndCheck));
    for (size_t i = scenarios.size() - 2; i < scenarios.size(); i++) {
        scenarios[i].shape.is_direct = true;
        scenarios[i].shape.bounced = 0b111;
    }
}

// The same of trees, of both lists of a block.
void AddTrees(std::vector<Scenario> &scenarios)
{
    std::vector<Scenario> trees;

    trees.push_back(
        MakeScenario("tree, stop at any time", RONDO_OP_ALL_REDUCE, 4, 300, AddStopper, RunStopped));
    trees.push_back(
        MakeScenario("tree, stop before", RONDO_OP_ALL_REDUCE, 4, 60, RaiseBefore, RunRaisedBefore));
    trees.push_back(MakeScenario("tree, other fingerprint", RONDO_OP_ALL_REDUCE, 4, 200, SpoilFingerprints,
                                 RunOtherFingerprint));
    trees.push_back(
        MakeScenario("tree, other bytes", RONDO_OP_ALL_REDUCE, 4, 300, SpoilBytes, RunOtherBytes));
    for (Scenario &scenario : trees) {
        scenario.shape.hosts = 4;
        AddOverProtocols(scenario, scenarios);
    }
}

} // namespace

std::vector<Scenario> TroubleScenarios()
{
    std::vector<Scenario> plain, scenarios;

    for (rondo_operation operation : {RONDO_OP_ALL_REDUCE, RONDO_OP_ALL_GATHER, RONDO_OP_SEND,
                                      RONDO_OP_BROADCAST, RONDO_OP_REDUCE_SCATTER, RONDO_OP_REDUCE}) {
        plain.push_back(MakeScenario("stop at any time", operation, 3, 300, AddStopper, RunStopped));
        plain.push_back(MakeScenario("stop before", operation, 3, 60, RaiseBefore, RunRaisedBefore));
        plain.push_back(
            MakeScenario("other fingerprint", operation, 3, 200, SpoilFingerprints, RunOtherFingerprint));
    }
    plain.push_back(MakeScenario("other fingerprint on one channel", RONDO_OP_BROADCAST, 3, 200,
                                 SpoilOneChannel, RunOtherChannel));
    plain.push_back(MakeScenario("other bytes", RONDO_OP_ALL_REDUCE, 3, 300, SpoilBytes, RunOtherBytes));
    plain.push_back(MakeScenario("other bytes", RONDO_OP_SEND, 3, 300, SpoilBytes, RunOtherBytes));
    plain.push_back(MakeScenario("notes", RONDO_OP_SEND, 4, 600, AddNoteReaders, RunOnlyAndCheck));
    plain.back().launches[0][0].root = 2;
    plain.push_back(MakeScenario("other fingerprint writes nothing", RONDO_OP_ALL_REDUCE, 3, 60,
                                 SpoilFingerprints, RunWritesNothing));
    plain.push_back(MakeScenario("unsound work", RONDO_OP_ALL_REDUCE, 2, 60, SpoilKinds, RunOtherBytes));
    for (int redop : {RONDO_REDOP_SUM, RONDO_REDOP_PREMULSUM}) {
        Scenario copy =
            MakeScenario(redop == RONDO_REDOP_SUM ? "stop before, copy" : "stop before, copy that computes",
                         RONDO_OP_ALL_REDUCE, 1, 3u << 18, RaiseBefore, RunRaisedBefore);
        copy.shape.channels = 1;
        copy.launches[0][0].dtype = ncclInt8;
        copy.launches[0][0].redop = redop;
        plain.push_back(copy);
    }
    for (const Scenario &scenario : plain)
        AddOverProtocols(scenario, scenarios);
    AddDirect(scenarios);
    AddTrees(scenarios);
    for (const Scenario &scenario : MomentScenarios())
        scenarios.push_back(scenario);
    return scenarios;
}

} // namespace emulator
