// Lives of lanes: launches, actors, who runs, and what it means when nobody can.
#include "machine.h"

#include "standing.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>

namespace emulator
{

Lane *Machine::current_ = nullptr;

namespace
{

constexpr unsigned kLooks = 2; // of a poller, all of the newest, before it counts as stuck

} // namespace

Machine::Machine(uint64_t seed) : words_(memory_), scheduler_(new Scheduler(seed))
{
}

Machine::~Machine()
{
    for (rondo_fiber *fiber : idle_)
        rondo_fiber_destroy(fiber);
}

void Machine::Enqueue(const Launch &launch)
{
    streams_[launch.rank].push_back(launch);
}

void Machine::AddActor(const std::string &name, std::function<void(Lane &)> body)
{
    actors_.emplace_back(name, std::move(body));
}

Team &Machine::NewTeam(unsigned lanes, const Ref<Knowledge> &past, std::function<void(Lane &)> body)
{
    teams_.push_back(std::make_unique<Team>());
    Team &team = *teams_.back();

    team.number = static_cast<uint16_t>(teams_.size() - 1);
    team.body = std::move(body);
    team.warps.resize((lanes + kWarp - 1) / kWarp);
    for (unsigned i = 0; i < lanes; i++) {
        team.lanes.emplace_back();
        Lane &lane = team.lanes.back();
        lane.machine = this;
        lane.of = &team;
        lane.team = team.number;
        lane.lane = static_cast<uint16_t>(i);
        lane.clock = Clock(LaneId{team.number, lane.lane}, past);
        team.clocks.push_back(&lane.clock);
        if (idle_.empty()) {
            if (rondo_fiber_create(kStack, &lane.fiber) != ncclSuccess)
                std::abort();
        } else {
            lane.fiber = idle_.back();
            idle_.pop_back();
        }
        rondo_fiber_prepare(lane.fiber, RunLane, &lane);
    }
    return team;
}

void Machine::StartLaunch(const Launch &launch, const Ref<Knowledge> &past)
{
    uint32_t number = launched_[launch.rank]++;

    for (auto [block, role] : launch.teams) {
        Team &team = NewTeam(launch.lanes, past, launch.body);
        team.rank = team.device = launch.rank;
        team.block = block;
        team.role = role;
        team.launch = number;
        open_[launch.rank]++;
        live_ += launch.lanes;
        for (Lane &lane : team.lanes) {
            lane.rank = launch.rank;
            scheduler_->Meet(&lane);
            scheduler_->Add(&lane);
        }
    }
}

void Machine::RunLane(rondo_fiber *, void *argument)
{
    Lane &lane = *static_cast<Lane *>(argument);

    try {
        if (!lane.machine->abandoned_)
            lane.of->body(lane);
    } catch (const Abandoned &) {
    }
}

Failure Machine::Run(uint64_t seed)
{
    scheduler_ = std::make_unique<Scheduler>(seed);
    failure_ = Failure{};
    operations_ = 0;
    digest_ = 0xcbf29ce484222325ull;
    draining_ = abandoned_ = false;
    words_.Clear();
    memory_.ClearAccesses();
    Ref<Knowledge> nothing(new Knowledge);
    for (auto &[rank, launches] : streams_)
        if (!launches.empty()) {
            pasts_[rank] = nothing;
            StartLaunch(launches.front(), nothing);
            launches.pop_front();
        }
    for (auto &[name, body] : actors_) {
        Team &team = NewTeam(1, nothing, body);
        team.is_actor = true;
        team.rank = -1;
        team.device = -1 - team.number; // at no device's side, nor at another actor's
        team.name = name;
        team.lanes[0].rank = -1;
        scheduler_->Meet(&team.lanes[0]);
        scheduler_->Add(&team.lanes[0]);
    }
    for (;;) {
        Lane *lane = static_cast<Lane *>(scheduler_->Next());
        if (failure_)
            break;
        if (!lane) {
            if (!Revive())
                break;
            continue;
        }
        if (!pollers_.empty() &&
            random().OneIn(16)) { // polls go on beside the others, not only when all wait
            Lane *poller = pollers_[random().Below(static_cast<uint32_t>(pollers_.size()))];
            if (poller->seen != changes_)
                MakeReady(*poller);
        }
        current_ = lane;
        Note(static_cast<uint64_t>(lane->team) << 16 | lane->lane);
        bool ended = rondo_fiber_resume(lane->fiber);
        if (ended)
            Finish(*lane);
        else if (lane->state == State::READY)
            scheduler_->Add(lane);
    }
    Abandon();
    return failure_;
}

void Machine::Finish(Lane &lane)
{
    Team &team = *lane.of;

    lane.state = State::DONE;
    lane.operation = "has ended";
    idle_.push_back(lane.fiber);
    lane.fiber = nullptr;
    team.done++;
    changes_++;
    if (!team.is_actor)
        live_--;
    if (failure_)
        return;
    if (team.arrived > 0)
        failure_ = Reporter(*this).Make(Fault::DIVERGENCE,
                                        "a lane has ended while its block waits at a barrier", &lane);
    else if (team.warps[lane.lane / kWarp].arrived > 0)
        failure_ =
            Reporter(*this).Make(Fault::DIVERGENCE, "a lane has ended while its warp acts together", &lane);
    else if (team.done == team.lanes.size() && !team.is_actor)
        EndTeam(team);
    if (live_ == 0 && !draining_) {
        draining_ = true;
        std::vector<Lane *> pollers = pollers_;
        for (Lane *poller : pollers)
            MakeReady(*poller);
    }
}

// The last team of a launch lets the rank's next one start, which knows all that this one did.
void Machine::EndTeam(Team &team)
{
    Clock::Meet(team.clocks);
    Ref<Knowledge> past(new Knowledge);
    past->LearnAll(*pasts_[team.rank].get());
    past->LearnAll(*team.lanes[0].clock.Past().get());
    pasts_[team.rank] = past;
    if (--open_[team.rank] > 0 || streams_[team.rank].empty())
        return;
    StartLaunch(streams_[team.rank].front(), past);
    streams_[team.rank].pop_front();
}

// Nobody is ready: let those look again who poll, until they have seen all that there is. false: the end.
bool Machine::Revive()
{
    bool revived = false;
    std::vector<Lane *> pollers = pollers_;

    for (Lane *lane : pollers) {
        if (lane->seen != changes_)
            lane->looks = 0;
        else if (lane->looks >= kLooks)
            continue;
        else
            lane->looks++;
        MakeReady(*lane);
        revived = true;
    }
    if (!revived && live_ > 0)
        JudgeStuck();
    else if (!revived && !pollers_.empty())
        failure_ =
            Reporter(*this).Make(Fault::ENDLESS, "an actor goes on after all launches have ended", nullptr);
    return revived;
}

bool Machine::IsStopRaised()
{
    return !stops_.empty() && std::all_of(stops_.begin(), stops_.end(),
                                          [&](rondo_line *stop) { return memory_.Host(stop)->value != 0; });
}

// A collective operation that some lanes wait in while others of the same block wait in another, or have
// ended, can never be complete.
void Machine::JudgeStuck()
{
    for (auto &team : teams_) {
        unsigned in_block = 0, in_warp = 0;
        for (Lane &lane : team->lanes) {
            in_block += lane.state == State::BARRIER;
            in_warp += lane.state == State::WARP;
        }
        bool mixed = in_block > 0 && in_warp > 0;
        bool short_of_lanes = in_block + in_warp > 0 && team->done > 0;
        if (mixed || short_of_lanes) {
            failure_ = Reporter(*this).Make(
                Fault::DIVERGENCE, "lanes of one block wait for each other in different places", nullptr);
            return;
        }
    }
    failure_ = IsStopRaised()
                   ? Reporter(*this).Make(Fault::LOST_STOP,
                                          "stop is raised on all ranks and somebody waits on", nullptr)
                   : Reporter(*this).Make(Fault::DEADLOCK, "nobody can go on", nullptr);
}

// Let every lane that has not ended leave its frames, so that its fiber can be used again.
void Machine::Abandon()
{
    abandoned_ = true;
    for (auto &team : teams_)
        for (Lane &lane : team->lanes)
            if (lane.state != State::DONE) {
                current_ = &lane;
                while (!rondo_fiber_resume(lane.fiber)) {
                }
                idle_.push_back(lane.fiber);
            }
    current_ = nullptr;
    teams_.clear();
    streams_.clear();
    open_.clear();
    launched_.clear();
    pasts_.clear();
    actors_.clear();
    pollers_.clear();
    sleepers_.clear();
    stops_.clear();
    overwritten_.clear();
    live_ = 0;
}

void Machine::Yield(Lane &lane)
{
    rondo_fiber_yield(lane.fiber);
    if (abandoned_)
        throw Abandoned{};
}

void Machine::Block(Lane &lane, State state)
{
    lane.state = state;
    Yield(lane);
}

void Machine::MakeReady(Lane &lane)
{
    if (lane.state == State::POLL) {
        pollers_[lane.poll_index] = pollers_.back();
        pollers_[lane.poll_index]->poll_index = lane.poll_index;
        pollers_.pop_back();
    }
    lane.state = State::READY;
    scheduler_->Add(&lane);
}

Lane &Machine::Step(const char *operation, const Site &site)
{
    Lane &lane = *current_;

    if (abandoned_)
        throw Abandoned{};
    lane.operation = operation;
    lane.site = site;
    if (++operations_ > max_operations)
        Fail(Fault::ENDLESS, "more than " + std::to_string(max_operations) + " operations");
    if (scheduler_->Switches(&lane))
        Yield(lane);
    return lane;
}

void Machine::Fail(Fault kind, const std::string &what)
{
    if (!failure_)
        failure_ = Reporter(*this).Make(kind, what, current_);
    throw Abandoned{};
}

// Whether the condition may hold is for whoever is woken to see.
bool Machine::PollAgain(rondo_line *stop, const Site &site)
{
    Lane &lane = Step("polls", site);

    if (lane.of->is_actor && draining_)
        return false;
    lane.poll_index = pollers_.size();
    pollers_.push_back(&lane);
    Block(lane, State::POLL);
    if (lane.seen != changes_) { /* what it looks at from here on */
        lane.seen = changes_;
        lane.looks = 0;
    }
    if (lane.of->is_actor)
        return !draining_;
    return Load(&stop->value, 8, Order::RELAXED, Scope::SYSTEM, site) == 0;
}

void Machine::Breathe(const Site &site)
{
    Lane &lane = Step("breathes", site);

    if (random().OneIn(2))
        Yield(lane);
}

} // namespace emulator
