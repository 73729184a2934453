// clocks.h - what happened before what: vector clocks over all lanes, shared as far as they are equal.
//
// A lane's own time advances whenever it lets others know what it did: at a release, a fence, a barrier.
// What a lane knows of others is immutable and shared: after a barrier all lanes of a block hold the same.
// One chunk a team (the lanes of one block of one launch, or one actor), shared between clocks too, so that
// a clock over thousands of lanes costs a few words.
#ifndef RONDO_TESTS_EMULATOR_CLOCKS_H
#define RONDO_TESTS_EMULATOR_CLOCKS_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace emulator
{

using Time = uint32_t;

struct LaneId {
    uint16_t team = 0, lane = 0;

    bool operator==(const LaneId &other) const
    {
        return team == other.team && lane == other.lane;
    }
};

// A moment in a lane's life. Time 0: never; everybody knows of it.
struct Epoch {
    LaneId lane;
    Time time = 0;
};

// A counted reference without atomics: the emulator has one thread.
template <class T> class Ref
{
  public:
    Ref() = default;
    explicit Ref(T *object) : object_(object)
    {
        object_->references++;
    }
    Ref(const Ref &other) : object_(other.object_)
    {
        if (object_)
            object_->references++;
    }
    Ref(Ref &&other) noexcept : object_(std::exchange(other.object_, nullptr))
    {
    }
    Ref &operator=(Ref other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref()
    {
        if (object_ && --object_->references == 0)
            delete object_;
    }
    T *operator->() const
    {
        return object_;
    }
    T *get() const
    {
        return object_;
    }
    bool operator==(const Ref &other) const
    {
        return object_ == other.object_;
    }
    explicit operator bool() const
    {
        return object_ != nullptr;
    }

  private:
    T *object_ = nullptr;
};

// Times of the lanes of one team; lanes beyond its end: 0.
struct Chunk {
    uint32_t references = 0;
    std::vector<Time> times;

    Time At(unsigned lane) const
    {
        return lane < times.size() ? times[lane] : 0;
    }
};

// What somebody knows of all teams. Never changed once another holds it.
struct Knowledge {
    uint32_t references = 0;
    std::vector<Ref<Chunk>> teams;

    bool Knows(Epoch epoch) const
    {
        return epoch.time == 0 || (epoch.lane.team < teams.size() && teams[epoch.lane.team] &&
                                   teams[epoch.lane.team]->At(epoch.lane.lane) >= epoch.time);
    }

    // Only while nobody else holds this.
    void Learn(Epoch epoch)
    {
        if (Knows(epoch))
            return;
        if (teams.size() <= epoch.lane.team)
            teams.resize(epoch.lane.team + 1u);
        Ref<Chunk> &team = teams[epoch.lane.team];
        Ref<Chunk> grown(new Chunk);
        if (team)
            grown->times = team->times;
        grown->times.resize(std::max<size_t>(grown->times.size(), epoch.lane.lane + 1u));
        grown->times[epoch.lane.lane] = epoch.time;
        team = grown;
    }

    void LearnAll(const Knowledge &other)
    {
        if (teams.size() < other.teams.size())
            teams.resize(other.teams.size());
        for (size_t t = 0; t < other.teams.size(); t++)
            teams[t] = Join(teams[t], other.teams[t]);
    }

    static Ref<Chunk> Join(const Ref<Chunk> &a, const Ref<Chunk> &b)
    {
        if (a == b || !b)
            return a;
        if (!a)
            return b;
        Ref<Chunk> both(new Chunk);
        both->times.resize(std::max(a->times.size(), b->times.size()));
        bool is_a = true, is_b = true;
        for (size_t i = 0; i < both->times.size(); i++) {
            Time ta = a->At(static_cast<unsigned>(i)), tb = b->At(static_cast<unsigned>(i));
            both->times[i] = std::max(ta, tb);
            is_a = is_a && ta >= tb;
            is_b = is_b && tb >= ta;
        }
        return is_a ? a : is_b ? b : both;
    }
};

// All that a lane had done and known when it let others know.
struct Stamp {
    Ref<Knowledge> past;
    Epoch epoch;

    bool IsSet() const
    {
        return epoch.time != 0;
    }
};

// A lane's place in time.
class Clock
{
  public:
    Clock() : past_(new Knowledge)
    {
    }
    Clock(LaneId self, Ref<Knowledge> past) : past_(std::move(past)), now_{self, 1}
    {
    }

    Epoch Now() const
    {
        return now_;
    }

    const Ref<Knowledge> &Past() const
    {
        return past_;
    }

    // Whether what happened at that epoch happened before what this lane does next.
    bool Knows(Epoch epoch) const
    {
        return epoch.lane == now_.lane || past_->Knows(epoch);
    }

    Stamp Release()
    {
        Stamp stamp{past_, now_};
        now_.time++;
        return stamp;
    }

    // Who knows a release's epoch knows all that the releaser knew.
    void Acquire(const Stamp &stamp)
    {
        if (!stamp.IsSet() || Knows(stamp.epoch))
            return;
        Ref<Knowledge> grown(new Knowledge);
        grown->teams = past_->teams;
        if (!(stamp.past == past_))
            grown->LearnAll(*stamp.past.get());
        grown->Learn(stamp.epoch);
        past_ = grown;
    }

    // Afterwards all of them know what each did and knew.
    template <class Clocks> static void Meet(const Clocks &clocks)
    {
        Ref<Knowledge> all(new Knowledge);
        Clock &first = **clocks.begin();
        uint16_t team = first.now_.lane.team;

        all->teams = first.past_->teams;
        for (Clock *clock : clocks)
            if (!(clock->past_ == first.past_))
                all->LearnAll(*clock->past_.get());
        if (all->teams.size() <= team)
            all->teams.resize(team + 1u);
        Ref<Chunk> own(new Chunk);
        if (all->teams[team])
            own->times = all->teams[team]->times;
        for (Clock *clock : clocks) {
            unsigned lane = clock->now_.lane.lane;
            if (own->times.size() <= lane)
                own->times.resize(lane + 1u);
            own->times[lane] = std::max(own->times[lane], clock->now_.time);
        }
        all->teams[team] = own;
        for (Clock *clock : clocks) {
            clock->past_ = all;
            clock->now_.time++;
        }
    }

  private:
    Ref<Knowledge> past_;
    Epoch now_;
};

} // namespace emulator

#endif
