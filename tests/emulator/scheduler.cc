#include "scheduler.h"

#include <algorithm>

namespace emulator
{

Scheduler::Scheduler(uint64_t seed)
    : random_(seed), strategy_(static_cast<Strategy>(seed % kStrategies)), victim_(random_.Below(96))
{
    static const uint32_t runs[] = {2, 8, 40, 200};

    switch (strategy_) {
    case Strategy::UNIFORM:
        run_ = 2 + random_.Below(3);
        break;
    case Strategy::BURSTS:
        run_ = runs[1 + random_.Below(3)];
        break;
    case Strategy::PRIORITY:
        run_ = 300 * runs[random_.Below(3)];
        break;
    default:
        run_ = runs[random_.Below(4)];
        victim_kind_ = static_cast<int>(random_.Below(3));
        break;
    }
    Draw();
}

void Scheduler::Draw()
{
    countdown_ = 1 + random_.Below(2 * run_);
}

void Scheduler::Meet(Runnable *lane)
{
    lane->priority = (uint64_t{1} << 32) + (random_.Next() >> 32);
    uint32_t id = victim_kind_ == 0   ? lane->lane
                  : victim_kind_ == 1 ? lane->team
                                      : static_cast<uint32_t>(lane->rank);
    uint32_t among = victim_kind_ == 0 ? 96 : victim_kind_ == 1 ? 12 : 4;
    lane->is_starved = strategy_ == Strategy::STARVE && id % among == victim_ % among;
}

void Scheduler::Add(Runnable *lane)
{
    if (lane->is_starved) {
        starved_.push_back(lane);
        return;
    }
    ready_.push_back(lane);
    if (strategy_ == Strategy::PRIORITY)
        std::push_heap(ready_.begin(), ready_.end(), IsBelow);
}

Runnable *Scheduler::TakeAny(std::vector<Runnable *> &from, Random &random)
{
    uint32_t i = random.Below(static_cast<uint32_t>(from.size()));
    Runnable *lane = from[i];

    from[i] = from.back();
    from.pop_back();
    return lane;
}

Runnable *Scheduler::Next()
{
    if (!starved_.empty() && (ready_.empty() || random_.OneIn(256)))
        return TakeAny(starved_, random_);
    if (ready_.empty())
        return nullptr;
    if (strategy_ != Strategy::PRIORITY)
        return TakeAny(ready_, random_);
    std::pop_heap(ready_.begin(), ready_.end(), IsBelow);
    Runnable *lane = ready_.back();
    ready_.pop_back();
    return lane;
}

bool Scheduler::Switches(Runnable *lane)
{
    if (--countdown_ != 0)
        return false;
    Draw();
    if (strategy_ == Strategy::PRIORITY)
        lane->priority = --lowest_;
    return true;
}

} // namespace emulator
