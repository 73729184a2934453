// machine.h - a machine of many lanes: launches of blocks of lanes on devices, actors beside them, and the
// operations that the emulator's port is made of.
//
// Every lane is a fiber of the calling thread; every operation is a possible switch to another lane. A run
// ends when all launches have ended, or at the first failure.
#ifndef RONDO_TESTS_EMULATOR_MACHINE_H
#define RONDO_TESTS_EMULATOR_MACHINE_H

#include "guarded_memory.h"
#include "lane_failure.h"
#include "scheduler.h"
#include "seeded_random.h"
#include "words.h"

#include "base/fiber.h"
#include "device/work.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace emulator
{

constexpr unsigned kWarp = 32, kLineLanes = 8;
constexpr size_t kStack = 48 << 10; // of a lane

class Machine;
struct Team;

enum class State { READY, BARRIER, WARP, LINE, FLAG, POLL, DONE };
enum class Collective { NONE, BARRIER, AGREE, AGREE_ALL, SHUFFLE, VOTE, LOAD_LINE, STORE_LINE };

struct Lane : Runnable {
    Machine *machine = nullptr;
    Team *of = nullptr;
    rondo_fiber *fiber = nullptr;
    State state = State::READY;
    Clock clock;
    Stamps fences; // by the widest distance each reaches
    struct Pending {
        Scope distance;
        Stamp stamp;
    };
    std::vector<Pending> pending; // releases found by relaxed loads, for the next fence

    // What it brings to a collective operation, and takes from it.
    bool vote = false;
    uint64_t value = 0, high = 0;
    uint32_t from = 0;
    void *line = nullptr;

    // Polling: the machine's changes that it has seen, and looks since without another.
    uint64_t seen = 0;
    unsigned looks = 0;
    size_t poll_index = 0;
    uint64_t found = 0; // number of the store that its last load found

    // Where it stands, for reports.
    const char *operation = "starts";
    Site site{"?", 0, 0};
    Word *waited = nullptr, *stop = nullptr;
    uint64_t target = 0;
    const rondo_line *bed = nullptr; // where it sleeps until its flag is announced
    const uint32_t *flag = nullptr;
    const rondo_work *work = nullptr;
    uint32_t work_index = 0;
};

// The lanes of one block of a launch (on GPUs a role of a block is a thread block), or one actor.
struct Team {
    int rank = 0, device = -1;
    uint32_t block = 0, role = 0, launch = 0;
    uint16_t number = 0;
    bool is_actor = false;
    std::string name; // of an actor
    std::deque<Lane> lanes;
    std::vector<Clock *> clocks;
    unsigned done = 0, arrived = 0;
    Collective collective = Collective::NONE; // that lanes wait in
    bool verdict = false;
    struct Warp {
        Collective collective = Collective::NONE;
        unsigned arrived = 0;
    };
    std::vector<Warp> warps;
    std::function<void(Lane &)> body;
};

// One kernel launch: teams that start together, after the launch before on the same rank has ended.
struct Launch {
    int rank = 0;
    unsigned lanes = kWarp;
    std::vector<std::pair<uint32_t, uint32_t>> teams; // block and role
    std::function<void(Lane &)> body;
};

// Thrown through a lane's frames once the run has failed; nothing but the machine catches it.
struct Abandoned {
};

class Machine
{
  public:
    explicit Machine(uint64_t seed);
    ~Machine();
    Machine(const Machine &) = delete;
    Machine &operator=(const Machine &) = delete;

    Memory &memory()
    {
        return memory_;
    }

    // Behind the rank's launches so far. rank is the device too.
    void Enqueue(const Launch &launch);

    // Beside all launches, on the host; its body must return when PollAgain says so.
    void AddActor(const std::string &name, std::function<void(Lane &)> body);

    // A line whose value other than 0 means: end.
    void AddStop(rondo_line *stop)
    {
        stops_.push_back(stop);
    }

    // Run to the end, once, in the order of this seed. Launches, actors and stops are forgotten, memory is
    // not.
    Failure Run(uint64_t seed);

    // Runs longer than this fail. Operations.
    uint64_t max_operations = 40000000;

    uint64_t operations() const
    {
        return operations_;
    }

    // What lanes did, folded into one number: equal for equal runs.
    uint64_t Digest() const
    {
        return digest_;
    }

    static Lane &Current()
    {
        return *current_;
    }

    Random &random()
    {
        return scheduler_->random();
    }

    // The operations, called by the running lane. Each may let others run first.

    // Check a plain access and return where the host finds the bytes. alignment: that the access needs. What
    // a lane has on its own stack is its own.
    void *Touch(const void *p, size_t bytes, size_t alignment, bool writes, const char *operation,
                const Site &site);

    uint64_t Load(const void *p, uint32_t bytes, Order order, Scope scope, const Site &site);
    uint64_t LoadFlagged(const void *p, const Site &site);
    void StoreFlagged(void *p, uint64_t value, const Site &site);
    void Store(void *p, uint32_t bytes, uint64_t value, Order order, Scope scope, const Site &site);
    bool CompareSwap(void *p, uint32_t bytes, uint64_t from, uint64_t to, Order order, const Site &site);
    void Fence(Scope scope, const Site &site);

    void Barrier(const Site &site);
    bool Agree(bool verdict, bool orders, const Site &site);
    bool AgreeAll(bool verdict, bool orders, const Site &site);
    uint64_t Shuffle(uint64_t value, unsigned from, const Site &site);
    bool VoteAll(bool yes, const Site &site);
    void StoreLine(void *line, uint64_t low, uint64_t high, const Site &site);
    void LoadLine(const void *line, uint64_t *low_out, uint64_t *high_out, const Site &site);

    bool WaitUntil(rondo_line *line, uint64_t target, rondo_line *stop, Order order, Scope scope,
                   const Site &site);
    bool PollAgain(rondo_line *stop, const Site &site);

    // PollAgain, or sleep at the line until somebody announces there what makes the flag that value, or stop
    // is raised. Whoever announces speaks of stores that it knows of.
    bool WaitFlag(const rondo_line *line, const uint32_t *flag, uint32_t value, rondo_line *stop,
                  const Site &site);
    void Announce(const rondo_line *line, const Site &site);

    // All bytes become value, whoever reads them: as the memory of a process that other processes have
    // mapped. Who reads them races with nothing from here on, and knows of what came before it after its
    // block's next barrier and a fence, as of a store that a relaxed load finds.
    void Overwrite(void *p, size_t bytes, unsigned char value, const Site &site = Site::Here());
    void Breathe(const Site &site);

    [[noreturn]] void Fail(Fault kind, const std::string &what);

  private:
    friend class Reporter;

    void StartLaunch(const Launch &launch, const Ref<Knowledge> &past);
    Team &NewTeam(unsigned lanes, const Ref<Knowledge> &past, std::function<void(Lane &)> body);
    static void RunLane(rondo_fiber *self, void *argument);
    void Finish(Lane &lane);
    void EndTeam(Team &team);
    bool Revive();
    void JudgeStuck();
    void Abandon();
    void Yield(Lane &lane);
    void Block(Lane &lane, State state);
    void MakeReady(Lane &lane);
    Lane &Step(const char *operation, const Site &site);
    void Note(uint64_t fact)
    {
        digest_ = (digest_ ^ fact) * 0x100000001b3ull;
    }

    static Scope Distance(const Lane &a, const Lane &b);
    Lane &LaneOf(LaneId id)
    {
        return teams_[id.team]->lanes[id.lane];
    }
    Word &WordFor(const Lane &lane, const void *p, uint32_t bytes, bool writes);
    void CheckScopes(Lane &lane, Word &word, Scope scope, bool writes);
    void TakeFrom(Lane &lane, Word &word, uint64_t number, Order order, Scope scope, const Site &site);
    void Put(Lane &lane, Word &word, Stored stored, Order order, Scope scope, const Site &site);
    void WakeWaiters(Word &word);
    bool HasFlag(const Lane &lane);
    uint64_t Find(Lane &lane, Word &word, Order order, Scope scope, const Site &site);
    void Place(Lane &lane, Word &word, uint64_t value, Order order, Scope scope, const Site &site);
    void NoteTaken(const Lane &lane, Word &word, uint64_t number);
    void CheckTaken(const Lane &lane, const Word &word);
    static void Keep(Lane &lane, Scope distance, const Stamp &stamp);
    bool IsOverwritten(Lane &lane, const void *p, size_t bytes);
    [[noreturn]] void FailRace(const Lane &lane, const void *p, size_t bytes, const Mark &other,
                               const char *why);
    bool ArriveBlock(Collective collective, bool verdict, bool orders);
    void ArriveWarp(Collective collective, const char *operation);
    void CompleteWarp(Team &team, unsigned warp);
    void CheckWarpFree(const Lane &lane);
    void CompleteLines(Lane *const *lanes, Collective collective);
    bool IsStopRaised();

    Memory memory_;
    Words words_;
    std::unique_ptr<Scheduler> scheduler_;
    std::vector<std::unique_ptr<Team>> teams_;
    std::map<int, std::deque<Launch>> streams_; // by rank: launches that have not started
    std::map<int, unsigned> open_;              // teams of the rank's running launch
    std::map<int, uint32_t> launched_;
    std::map<int, Ref<Knowledge>> pasts_; // what the rank's next launch knows
    std::vector<std::pair<std::string, std::function<void(Lane &)>>> actors_;
    std::vector<Lane *> pollers_, sleepers_; // sleepers: of WaitFlag
    std::vector<rondo_line *> stops_;
    struct Overwritten {
        const unsigned char *begin, *end;
        Stamp stamp;
    };
    std::vector<Overwritten> overwritten_;
    std::vector<rondo_fiber *> idle_;
    unsigned live_ = 0; // lanes of launches
    uint64_t changes_ = 1, operations_ = 0, digest_ = 0;
    bool draining_ = false, abandoned_ = false;
    Failure failure_;
    static Lane *current_;
};

} // namespace emulator

#endif
