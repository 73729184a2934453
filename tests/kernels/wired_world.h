// wired_world.h - n ranks in one process, with connections made by hand, that run works without any engine.
//
// Lanes are fibers of the calling thread, resumed in turn; if a whole turn passes in which none could go on,
// that is a deadlock, and it is seen at once. Or they are threads, so that ThreadSanitizer sees every access.
#ifndef RONDO_TESTS_WIRED_WORLD_H
#define RONDO_TESTS_WIRED_WORLD_H

#include "base/fiber.h"
#include "collectives/choose.h"
#include "device/lane.h"
#include "device/work.h"

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

struct FreeDeleter {
    void operator()(void *memory) const
    {
        free(memory);
    }
};

constexpr rondo_protocol kProtocols[] = {RONDO_PROTOCOL_SIMPLE, RONDO_PROTOCOL_LL, RONDO_PROTOCOL_LL128};

// Of slots that hold 256 bytes at least.
inline uint64_t SlotBytes(rondo_protocol protocol)
{
    return protocol == RONDO_PROTOCOL_LL ? 640 : protocol == RONDO_PROTOCOL_LL128 ? 384 : 256;
}

template <class T> using Aligned = std::unique_ptr<T, FreeDeleter>;

// Zeroed, aligned to a line, and of exactly this size so that AddressSanitizer guards its end.
template <class T> Aligned<T> MakeAligned(size_t bytes);

class World
{
  public:
    World(unsigned ranks, unsigned channels, uint64_t slot_bytes,
          rondo_protocol protocol = RONDO_PROTOCOL_SIMPLE);
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    unsigned Ranks() const
    {
        return static_cast<unsigned>(ranks_.size());
    }

    // Channel 0 is in rank order, as chains need it; the others are shuffled.
    const int32_t *Order(unsigned channel) const
    {
        return &order_[channel * Ranks()];
    }

    // Make channel's ring the ranks' order too.
    void OrderByRank(unsigned channel);

    // Ends of ring channels, and of the connection from one rank to another, for the protocol; the same at
    // every call.
    rondo_end *RingTo(unsigned rank, unsigned channel);
    rondo_end *RingFrom(unsigned rank, unsigned channel);
    rondo_end *PairTo(unsigned rank, unsigned peer);
    rondo_end *PairFrom(unsigned rank, unsigned peer);
    rondo_end *TreeTo(unsigned rank, unsigned peer, unsigned channel);
    rondo_end *TreeFrom(unsigned rank, unsigned peer, unsigned channel);
    rondo_end *DirectTo(unsigned rank, unsigned peer, unsigned channel);
    rondo_end *DirectFrom(unsigned rank, unsigned peer, unsigned channel);

    // What connections and works are made for from here on.
    rondo_protocol protocol;

    // Connections made from here on begin as if so many steps were behind them: all slots stale as such steps
    // would leave them.
    uint64_t first_step = 0;

    // Every connection made so far.
    void ForEachConnection(const std::function<void(const rondo_end &to)> &look);

    // Append to a rank's list; works are run by the next Run and then forgotten.
    void Add(unsigned rank, unsigned block, unsigned role, const rondo_work &work);

    // Change the works that a rank has been given so far.
    void Amend(unsigned rank, const std::function<void(rondo_work &)> &change);

    // Run all lists to their ends. false: something was stopped, by a fault or a deadlock.
    bool Run(rondo_cpu_kernel kernel);
    bool RunThreads(rondo_cpu_kernel kernel);

    rondo_rank_page &Page(unsigned rank)
    {
        return *ranks_[rank].page;
    }

    const rondo_fault &Fault(unsigned rank) const
    {
        return ranks_[rank].fault;
    }

    bool Deadlocked() const
    {
        return deadlocked_;
    }

    // Notes seen while lanes waited.
    unsigned NotesSeen() const
    {
        return notes_seen_;
    }

    // Doorbells that kernels of any world on fibers have rung.
    static std::vector<std::pair<rondo_switchboard *, uint32_t>> &Rings();

    // Called between turns; for tests that interfere.
    std::function<void(World &, unsigned turn)> between_turns;

    // Resume lanes in random order, and only some of them a turn, from this on; 0: all in turn.
    void SetOrder(unsigned seed)
    {
        random_.seed(seed);
        is_random_ = seed != 0;
    }

    void RaiseStop(unsigned rank, uint64_t value);

  private:
    struct Connection {
        Aligned<rondo_line> posted, consumed;
        Aligned<rondo_slot_head> heads;
        Aligned<unsigned char> slots;
        rondo_end to{}, from{};
    };

    struct Rank {
        Aligned<rondo_rank_page> page;
        rondo_fault fault{};
        std::vector<rondo_work> lists[8][2];
        std::vector<rondo_work> works;
        std::vector<rondo_block> blocks;
        std::vector<int32_t> position;
        rondo_kernel_args args{};
    };

    struct Lane {
        rondo_lane lane; // first: ops get its address
        World *world;
        const rondo_kernel_args *args;
        rondo_cpu_kernel kernel;
        rondo_fiber *fiber;
        rondo_line *line; // waited for, or NULL
        uint64_t target;
        const uint32_t *flag; // instead of the line's value, unless NULL
        bool done;
    };

    Connection &Connect(unsigned from, unsigned to, unsigned key);
    void Prepare();
    std::deque<Lane> Lanes(rondo_cpu_kernel kernel, const rondo_lane_ops *ops);
    bool ResumeAll(std::deque<Lane> &lanes);
    void SpreadStops();
    bool Ended();

    static bool HasCome(const Lane &lane);
    static bool Wait(Lane *self, rondo_line *line, const uint32_t *flag, uint64_t target);
    static bool FiberWait(rondo_lane *lane, rondo_line *line, uint64_t target);
    static bool FiberWaitFlag(rondo_lane *lane, rondo_line *line, const uint32_t *flag, uint32_t value);
    static void FiberYield(rondo_lane *lane);
    static bool ThreadWait(rondo_lane *lane, rondo_line *line, uint64_t target);
    static bool ThreadWaitFlag(rondo_lane *lane, rondo_line *line, const uint32_t *flag, uint32_t value);
    static void ThreadYield(rondo_lane *lane);
    static void FiberRing(rondo_switchboard *board, uint32_t waiter);
    static void ThreadRing(rondo_switchboard *board, uint32_t waiter);
    static void RunLane(rondo_fiber *self, void *argument);

    uint64_t slot_bytes_;
    std::vector<Rank> ranks_;
    std::vector<int32_t> order_;
    // By protocol, key (see Connect()), sender and receiver.
    std::map<std::tuple<rondo_protocol, unsigned, unsigned, unsigned>, std::unique_ptr<Connection>>
        connections_;
    std::mt19937 random_;
    bool is_random_ = false, deadlocked_ = false;
    unsigned notes_seen_ = 0;
};

#endif
