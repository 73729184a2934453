// emulated_world.h - a communicator on the emulator: every rank's works come from the planner, and run on
// lanes as well as on the CPU device's kernels, over connections of the same shape.
#ifndef RONDO_TESTS_EMULATOR_EMULATED_WORLD_H
#define RONDO_TESTS_EMULATOR_EMULATED_WORLD_H

#include "machine.h"

#include "collectives/plan.h"
#include "device/work.h"
#include "topology/trees.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

class World; // of tests/kernels

namespace emulator
{

// Of a communicator and of how its kernels are launched.
struct Shape {
    unsigned ranks = 2, channels = 1, lanes = 64;
    rondo_protocol protocol = RONDO_PROTOCOL_SIMPLE;
    uint64_t slot_bytes = 256; // that a slot holds, at most
    bool is_precise = false, is_deterministic = false;
    bool has_network = false; // a progress engine moves every slot; SIMPLE only
    bool is_direct = false;   // all that can goes directly; SIMPLE: at most 4 ranks for slots of 128 bytes
    bool is_apart = false;    // direct SIMPLE: ranks map each other's memory as processes do
    unsigned bounced = 0;     // direct SIMPLE; bit r: rank r's buffers go through its bounce area
    unsigned hosts = 0;       // all-reduces go by tree, the ranks dealt round so many hosts; 0: they do not
    uint64_t first_step = 0;  // of every connection; 0 where words carry flags

    // Of a slot, flags and head included.
    uint64_t WireSlotBytes() const;
};

// What every rank calls. SEND: to the rank `root` behind, and a receive from the one as far before.
struct Call {
    rondo_operation operation = RONDO_OP_ALL_REDUCE;
    ncclDataType_t dtype = ncclFloat32;
    int redop = RONDO_REDOP_SUM;
    uint64_t count = 100;
    int root = 0;
    unsigned offset = 0;     // bytes by which buffers are out of alignment
    bool is_exact = true;    // small whole numbers: every order of the fold gives one result
    bool is_chained = false; // sends what the call before received, to where that was sent from

    std::string Name() const;
};

class Communicator
{
  public:
    // Each group of calls is a launch. The machine's memory is cleared.
    Communicator(Machine &machine, const Shape &shape, const std::vector<std::vector<Call>> &launches);
    ~Communicator();

    // From the start, in the order of this seed. Compares with the reference and with the CPU device; what is
    // wrong then is a failure too.
    Failure Run(uint64_t seed);

    // Only run; for tests that interfere.
    Failure RunOnly(uint64_t seed);
    Failure CheckEnd();

    // Works of a rank in the launch, to spoil them.
    std::vector<rondo_work *> Works(unsigned rank, unsigned launch);

    // block * 2 + role of the work at that index.
    unsigned ListOf(unsigned rank, unsigned launch, unsigned index);

    // After a run: what lanes left, against the reference and the CPU device.
    Failure CheckResults();

    // Where the host finds the first result of a rank; whether it is what the CPU device makes.
    unsigned char *Result(unsigned rank, uint64_t *bytes_out);
    bool IsRight(unsigned rank);

    // What the user does with the first call's buffers of a rank, which are its own again: other values
    // everywhere. is_mapped: as memory that peers may still read, see Machine::Overwrite.
    void Reuse(unsigned rank, bool is_mapped);

    // After a run: whether any slot was posted; the last byte of a rank's first result, 0xc3 where nobody
    // wrote.
    bool HasPosted();
    unsigned char LastByteOf(unsigned rank);

    rondo_rank_page *Page(unsigned rank)
    {
        return pages_[rank];
    }
    rondo_fault *FaultOf(unsigned rank, unsigned launch)
    {
        return plans_[launch][rank].fault;
    }

    // Ranks that launch nothing.
    std::vector<bool> absent;

    // What a lane of its own does on the stream of a rank, before each launch or after it.
    std::function<void(unsigned rank, unsigned launch, bool is_over)> aside;

    // Called at each start of a run, to add actors.
    std::function<void()> before_run;

    Machine &machine()
    {
        return machine_;
    }
    const Shape &shape() const
    {
        return shape_;
    }

  private:
    struct Half { // of a connection: what one side sees
        rondo_line *posted, *consumed;
        rondo_slot_head *heads;
        unsigned char *slots;
    };
    struct Connection {
        Half near, far; // the sender's and the receiver's; the same without a network
        rondo_end *to, *from;
        unsigned sender, receiver;
        int channel;
    };
    struct Buffer {
        void *emulated;
        uint64_t bytes;
        std::vector<unsigned char> initial, cpu;
    };
    struct Buffers {
        Buffer send, recv;
        std::vector<uint64_t> input;
    };
    struct Plan {
        rondo_kernel_args args{};
        std::vector<rondo_block> blocks;
        std::vector<rondo_work> works;
        std::vector<std::pair<uint32_t, uint32_t>> teams;
        rondo_fault *fault = nullptr;
    };
    struct CpuDirect {
        std::vector<rondo_peer_ends> peers;
        std::vector<rondo_source> sources;
        std::vector<unsigned char> bounce;
    };
    struct Owner { // of an end that the planner asks for
        Communicator *self;
        unsigned rank, channel;
    };

    static constexpr int kTree = 500, kDirect = 1000; // channels of such connections begin here

    void MakeBuffers();
    void FillInput(const Call &call, Buffers &buffers, unsigned rank);
    void MakePlans();
    using Lists = std::vector<std::array<std::vector<rondo_work>, 2>>; // by block and role
    void PlanChannel(unsigned rank, unsigned channel, const std::vector<Call> &calls,
                     const std::vector<rondo_task> &tasks, Lists &lists);
    void MakePlan(unsigned rank, const std::vector<Call> &calls, std::vector<std::vector<Buffers>> &buffers,
                  Plan &plan);
    std::vector<rondo_task> Tasks(unsigned rank, unsigned channel, const std::vector<Call> &calls,
                                  std::vector<std::vector<Buffers>> &buffers);
    static rondo_end *End(void *owner, rondo_direction direction, int peer,
                          const rondo_connection *connection);
    static bool IsMapped(void *owner, const void *memory, uint64_t bytes);
    static const rondo_direct *DirectOf(void *owner, uint32_t channel, rondo_protocol protocol);
    void MakeDirect(unsigned rank, unsigned channel, rondo_direct &direct);
    std::vector<rondo_place> Places() const;
    rondo_tree_node NodeOf(unsigned rank, unsigned channel) const;
    static rondo_peer_ends *TreeOf(void *owner, uint32_t channel, rondo_protocol protocol);
    void FillPlanContext(rondo_plan_context &context, Owner &owner);
    rondo_window Window() const;
    Connection &Connect(unsigned sender, unsigned receiver, int channel);
    Half MakeHalf(const std::string &name);
    rondo_end *MakeEnd(const std::string &name, const Half &half, unsigned peer);
    void Reset();
    void RunOnCpu();
    void ToCpu(::World &cpu, unsigned rank, rondo_work &work);
    void ToCpuDirect(::World &cpu, unsigned rank, rondo_work &work);
    void ToCpuTree(::World &cpu, unsigned rank, rondo_work &work);
    unsigned char *CpuAddress(const void *emulated);
    std::string Difference();
    bool Expected(const Call &call, const std::vector<Buffers> &all, unsigned rank, uint64_t index,
                  uint64_t *raw_out);
    void RunEngine();
    void EnqueueAside(unsigned rank, unsigned launch, bool is_over);

    Machine &machine_;
    Shape shape_;
    std::vector<std::vector<Call>> launches_;
    rondo_layout layout_{};
    std::vector<int32_t> order_;
    std::vector<std::vector<int32_t>> position_; // by rank, then channel
    std::vector<rondo_rank_page *> pages_;
    std::map<std::tuple<unsigned, unsigned, int>, Connection> connections_;
    std::map<std::pair<unsigned, unsigned>, rondo_direct> directs_;    // by rank and channel
    std::map<std::pair<unsigned, unsigned>, rondo_peer_ends *> trees_; // likewise
    std::deque<CpuDirect> cpu_directs_;                                // of every direct or tree work
    std::vector<std::vector<std::vector<Buffers>>> buffers_;           // launch, call, rank
    std::vector<std::vector<Plan>> plans_;                             // launch, rank
};

// What an element of a rank's scalar is for a reduction; see struct rondo_work.
uint64_t ScalarFor(const Call &call, unsigned ranks, unsigned rank);

} // namespace emulator

#endif
