// scheduler.h - who runs next, and for how long: by chance, in ways that differ from seed to seed.
#ifndef RONDO_TESTS_EMULATOR_SCHEDULER_H
#define RONDO_TESTS_EMULATOR_SCHEDULER_H

#include "seeded_random.h"

#include <cstdint>
#include <vector>

namespace emulator
{

// What the scheduler needs to know of a lane.
struct Runnable {
    int rank = 0;
    uint16_t team = 0, lane = 0;
    uint64_t priority = 0;
    bool is_starved = false;
};

// A seed's is the remainder: one more changes what every seed of the table of mutants means (run
// scripts/mutate), and wants more than the 6 seeds that a mutant is tried with. It also needs its case in
// scheduler.cc.
enum class Strategy {
    UNIFORM,  // any lane, a switch at every few operations
    BURSTS,   // any lane, long runs
    PRIORITY, // the lane of highest priority; now and then the running one loses its own
    STARVE,   // one lane, block or rank runs only when nobody else can, or very rarely
    NUM
};
constexpr int kStrategies = static_cast<int>(Strategy::NUM);

class Scheduler
{
  public:
    explicit Scheduler(uint64_t seed);

    Strategy strategy() const
    {
        return strategy_;
    }

    // Before a lane's first Add.
    void Meet(Runnable *lane);

    // The lane can run, and does not.
    void Add(Runnable *lane);

    // Take one that can; NULL: there is none.
    Runnable *Next();

    // At each operation of the lane that runs: whether it must let others run.
    bool Switches(Runnable *lane);

    Random &random()
    {
        return random_;
    }

  private:
    static bool IsBelow(const Runnable *a, const Runnable *b)
    {
        return a->priority < b->priority;
    }
    static Runnable *TakeAny(std::vector<Runnable *> &from, Random &random);
    void Draw();

    Random random_;
    Strategy strategy_;
    uint32_t run_;               // operations between switches, on average
    uint32_t countdown_ = 0;     // to the next switch
    uint64_t lowest_ = 1u << 30; // priorities that are lost go below all others
    int victim_kind_ = 0;        // of STARVE: lane, team, rank
    uint32_t victim_;
    std::vector<Runnable *> ready_, starved_;
};

} // namespace emulator

#endif
