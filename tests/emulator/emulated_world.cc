#include "emulated_world.h"

#include "../kernels/reference.h"
#include "../kernels/runnable_isas.h"
#include "../kernels/wired_world.h"
#include "emulated_kernel.h"

#include "base/error.h"
#include "device/push.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulator
{

namespace
{

constexpr unsigned kPairBlocks = 4;

// Of one of a work's elements.
uint64_t WireBytes(const rondo_work &work)
{
    auto dtype = static_cast<ncclDataType_t>(work.dtype);
    bool is_tree = work.kind == RONDO_WORK_TREE_UP || work.kind == RONDO_WORK_TREE_DOWN;
    bool is_oneshot = work.peers && !is_tree && work.protocol != RONDO_PROTOCOL_SIMPLE;

    return work.flags & RONDO_WORK_PRECISE || (is_oneshot && rondo_push_is_wide(work.redop))
               ? rondo_dtype_wide_bytes(dtype)
               : rondo_dtype_bytes(dtype);
}

bool IsMessage(const rondo_work &work)
{
    return work.kind == RONDO_WORK_SEND || work.kind == RONDO_WORK_RECV;
}

} // namespace

uint64_t Shape::WireSlotBytes() const
{
    uint64_t bytes = slot_bytes;

    while (rondo_protocol_capacity(protocol, bytes) < slot_bytes)
        bytes += 128;
    return bytes;
}

Communicator::Communicator(Machine &machine, const Shape &shape,
                           const std::vector<std::vector<Call>> &launches)
    : absent(shape.ranks), machine_(machine), shape_(shape), launches_(launches), position_(shape.ranks)
{
    ::World cpu(shape.ranks, shape.channels, shape.slot_bytes); // for its rings

    machine_.memory().Clear();
    layout_ = {shape.ranks, 1, shape.slot_bytes, shape.slot_bytes};
    for (unsigned channel = 0; channel < shape.channels; channel++) {
        if (shape.is_deterministic)
            cpu.OrderByRank(channel);
        order_.insert(order_.end(), cpu.Order(channel), cpu.Order(channel) + shape.ranks);
        for (unsigned i = 0; i < shape.ranks; i++) {
            std::vector<int32_t> &position = position_[static_cast<unsigned>(cpu.Order(channel)[i])];
            position.resize(shape.channels);
            position[channel] = static_cast<int32_t>(i);
        }
    }
    for (unsigned rank = 0; rank < shape.ranks; rank++)
        pages_.push_back(static_cast<rondo_rank_page *>(
            machine_.memory().Allocate("page of rank " + std::to_string(rank), sizeof(rondo_rank_page))));
    MakeBuffers();
    MakePlans();
    RunOnCpu();
}

Communicator::~Communicator() = default;

Communicator::Half Communicator::MakeHalf(const std::string &name)
{
    Memory &memory = machine_.memory();

    return {
        static_cast<rondo_line *>(memory.Allocate("posted " + name, sizeof(rondo_line))),
        static_cast<rondo_line *>(memory.Allocate("consumed " + name, sizeof(rondo_line))),
        static_cast<rondo_slot_head *>(
            memory.Allocate("heads " + name, RONDO_SLOTS * sizeof(rondo_slot_head))),
        static_cast<unsigned char *>(memory.Allocate("slots " + name, RONDO_SLOTS * shape_.WireSlotBytes()))};
}

rondo_end *Communicator::MakeEnd(const std::string &name, const Half &half, unsigned peer)
{
    void *end = machine_.memory().Allocate(name, sizeof(rondo_end), true);
    rondo_end value = {0,
                       half.posted,
                       half.consumed,
                       half.heads,
                       half.slots,
                       shape_.WireSlotBytes(),
                       nullptr,
                       static_cast<int32_t>(peer),
                       0};

    std::memcpy(machine_.memory().Host(end), &value, sizeof(value));
    return static_cast<rondo_end *>(end);
}

// channel: of a ring, -1 for point to point, or behind kTree or kDirect.
Communicator::Connection &Communicator::Connect(unsigned sender, unsigned receiver, int channel)
{
    auto found = connections_.find({sender, receiver, channel});
    if (found != connections_.end())
        return found->second;
    std::string name = std::to_string(sender) + "->" + std::to_string(receiver) +
                       (channel < 0 ? std::string(" pair") : " channel " + std::to_string(channel));
    Connection c{};
    c.far = MakeHalf(name);
    c.near = shape_.has_network ? MakeHalf(name + ", sender's") : c.far;
    c.to = MakeEnd("end of the sender " + name, c.near, receiver);
    c.from = MakeEnd("end of the receiver " + name, c.far, sender);
    c.sender = sender;
    c.receiver = receiver;
    c.channel = channel;
    return connections_[{sender, receiver, channel}] = c;
}

// The planner sees one channel at a time.
rondo_end *Communicator::End(void *owner, rondo_direction direction, int peer,
                             const rondo_connection *connection)
{
    Owner &o = *static_cast<Owner *>(owner);
    unsigned other = static_cast<unsigned>(peer);
    int real = connection->kind == RONDO_CONNECTION_PAIR ? -1 : static_cast<int>(o.channel);

    return direction == RONDO_SEND ? o.self->Connect(o.rank, other, real).to
                                   : o.self->Connect(other, o.rank, real).from;
}

void Communicator::MakePlans()
{
    for (size_t launch = 0; launch < launches_.size(); launch++) {
        plans_.emplace_back(shape_.ranks);
        for (unsigned rank = 0; rank < shape_.ranks; rank++)
            MakePlan(rank, launches_[launch], buffers_[launch], plans_.back()[rank]);
    }
}

std::vector<rondo_task> Communicator::Tasks(unsigned rank, unsigned channel, const std::vector<Call> &calls,
                                            std::vector<std::vector<Buffers>> &buffers)
{
    std::vector<rondo_task> tasks;

    for (size_t i = 0; i < calls.size(); i++) {
        const Call &call = calls[i];
        bool is_ring = rondo_operation_facts(call.operation)->travel == RONDO_TRAVEL_RING;
        uint64_t share = is_ring ? (call.count + shape_.channels - 1) / shape_.channels : call.count;
        uint64_t first = std::min(call.count, channel * share), bytes = rondo_dtype_bytes(call.dtype);
        rondo_task task{};
        task.operation = call.operation;
        task.dtype = call.dtype;
        task.redop = static_cast<rondo_redop>(call.redop);
        task.root = call.root;
        task.send = static_cast<char *>(buffers[i][rank].send.emulated) + first * bytes;
        task.recv = static_cast<char *>(buffers[i][rank].recv.emulated) + first * bytes;
        task.count = std::min(share, call.count - first);
        task.scalar = ScalarFor(call, shape_.ranks, rank);
        task.number = i + 1;
        if ((channel > 0 && !is_ring) || (is_ring && task.count == 0))
            continue;
        if (call.operation == RONDO_OP_SEND) {
            unsigned distance = static_cast<unsigned>(call.root) % shape_.ranks;
            task.root = static_cast<int>((rank + distance) % shape_.ranks);
            tasks.push_back(task);
            task.operation = RONDO_OP_RECV;
            task.root = static_cast<int>((rank + shape_.ranks - distance) % shape_.ranks);
        }
        tasks.push_back(task);
    }
    return tasks;
}

// What the planner makes of the tasks on one channel: rings into that channel's block, pairs into blocks
// behind all rings.
void Communicator::PlanChannel(unsigned rank, unsigned channel, const std::vector<Call> &calls,
                               const std::vector<rondo_task> &tasks, Lists &lists)
{
    Owner owner{this, rank, channel};
    rondo_plan_context context{};
    rondo_plan *planned = nullptr;

    context.rank = static_cast<int32_t>(rank);
    context.layout = &layout_;
    context.order = &order_[channel * shape_.ranks];
    context.position = &position_[rank][channel];
    context.is_precise = shape_.is_precise;
    context.is_deterministic = shape_.is_deterministic;
    bool is_forced = shape_.is_direct && !shape_.is_deterministic; // which may leave nothing but chains
    rondo_choices_parse(shape_.hosts > 0 ? "AllReduce:Tree;^Tree"
                        : is_forced      ? "Direct"
                                         : nullptr,
                        rondo_protocol_name(shape_.protocol), &context.choices);
    context.max_pair_blocks = kPairBlocks;
    FillPlanContext(context, owner);
    if (rondo_plan_build(&context, tasks.data(), tasks.size(), &planned) != ncclSuccess) {
        std::fprintf(stderr, "cannot plan: %s\n", rondo_error_last());
        std::abort();
    }
    for (uint32_t b = 0; planned && b < planned->args.blocks; b++)
        for (unsigned role = 0; role < 2; role++)
            for (uint32_t w = 0; w < planned->blocks[b].works[role]; w++) {
                rondo_work work = planned->works[planned->blocks[b].first[role] + w];
                bool is_pair = IsMessage(work) || work.kind == RONDO_WORK_COPY;
                if (work.kind != RONDO_WORK_COPY)
                    work.chunk = std::min(work.chunk, shape_.slot_bytes / WireBytes(work));
                if (shape_.is_direct && !shape_.is_deterministic && !is_pair && !work.peers) {
                    std::fprintf(stderr, "a work that should go directly does not\n");
                    std::abort();
                }
                if (!is_pair) {
                    work.channel = channel;
                    work.stride = calls[work.number - 1].count;
                }
                lists[is_pair ? shape_.channels + b : channel][role].push_back(work);
            }
    rondo_plan_destroy(planned);
}

void Communicator::MakePlan(unsigned rank, const std::vector<Call> &calls,
                            std::vector<std::vector<Buffers>> &buffers, Plan &plan)
{
    Lists lists(shape_.channels + kPairBlocks);

    for (unsigned channel = 0; channel < shape_.channels; channel++)
        PlanChannel(rank, channel, calls, Tasks(rank, channel, calls, buffers), lists);
    for (uint32_t b = 0; b < lists.size(); b++) {
        rondo_block block{};
        for (unsigned role = 0; role < 2; role++) {
            block.first[role] = static_cast<uint32_t>(plan.works.size());
            block.works[role] = static_cast<uint32_t>(lists[b][role].size());
            plan.works.insert(plan.works.end(), lists[b][role].begin(), lists[b][role].end());
            if (block.works[role] > 0)
                plan.teams.push_back({b, role});
        }
        plan.blocks.push_back(block);
    }
    plan.fault = static_cast<rondo_fault *>(
        machine_.memory().Allocate("fault of rank " + std::to_string(rank), sizeof(rondo_fault)));
    plan.args = {static_cast<int32_t>(rank),
                 static_cast<int32_t>(shape_.ranks),
                 static_cast<uint32_t>(plan.blocks.size()),
                 static_cast<uint32_t>(plan.works.size()),
                 plan.blocks.data(),
                 plan.works.data(),
                 order_.data(),
                 position_[rank].data(),
                 pages_[rank],
                 nullptr,
                 plan.fault};
}

std::vector<rondo_work *> Communicator::Works(unsigned rank, unsigned launch)
{
    std::vector<rondo_work *> works;

    for (rondo_work &work : plans_[launch][rank].works)
        works.push_back(&work);
    return works;
}

// All memory as it was before the first launch.
void Communicator::Reset()
{
    Memory &memory = machine_.memory();

    for (rondo_rank_page *page : pages_)
        std::memset(static_cast<void *>(memory.Host(page)), 0, sizeof(*page));
    for (auto &[key, c] : connections_)
        for (const Half *half : {&c.near, &c.far}) {
            memory.Host(half->posted)->value = memory.Host(half->consumed)->value = shape_.first_step;
            std::memset(memory.Host(half->heads), 0, RONDO_SLOTS * sizeof(rondo_slot_head));
            std::memset(memory.Host(half->slots), shape_.protocol == RONDO_PROTOCOL_SIMPLE ? 0xee : 0,
                        RONDO_SLOTS * shape_.WireSlotBytes());
            if (c.channel >= kDirect)
                std::memset(memory.Host(half->slots) + RONDO_GATE_OFFSET, 0, sizeof(rondo_gate));
            memory.Host(c.to)->step = memory.Host(c.from)->step = shape_.first_step;
        }
    for (auto &plans : plans_)
        for (Plan &plan : plans)
            std::memset(memory.Host(plan.fault), 0, sizeof(rondo_fault));
    for (auto &launch : buffers_)
        for (auto &call : launch)
            for (Buffers &b : call)
                for (const Buffer *buffer : {&b.send, &b.recv})
                    std::copy_n(buffer->initial.begin(), buffer->bytes,
                                static_cast<unsigned char *>(memory.Host(buffer->emulated)));
}

void Communicator::EnqueueAside(unsigned rank, unsigned launch, bool is_over)
{
    Launch beside;

    beside.rank = static_cast<int>(rank);
    beside.lanes = 1;
    beside.teams = {{0, 0}};
    beside.body = [this, rank, launch, is_over](Lane &) { aside(rank, launch, is_over); };
    if (aside)
        machine_.Enqueue(beside);
}

Failure Communicator::RunOnly(uint64_t seed)
{
    Reset();
    if (before_run)
        before_run();
    for (rondo_rank_page *page : pages_)
        machine_.AddStop(&page->stop);
    for (unsigned i = 0; i < plans_.size(); i++)
        for (unsigned rank = 0; rank < shape_.ranks; rank++) {
            const rondo_kernel_args *args = &plans_[i][rank].args;
            Launch launch;
            launch.rank = static_cast<int>(rank);
            launch.lanes = shape_.lanes;
            launch.teams = plans_[i][rank].teams;
            launch.body = [args](Lane &lane) { RunEmulatedKernel(lane, args); };
            if (absent[rank] || launch.teams.empty())
                continue;
            EnqueueAside(rank, i, false);
            machine_.Enqueue(launch);
            EnqueueAside(rank, i, true);
        }
    if (shape_.has_network)
        machine_.AddActor("progress engine", [this](Lane &) { RunEngine(); });
    return machine_.Run(seed);
}

// What must be so after every run, whether it was stopped or not.
Failure Communicator::CheckEnd()
{
    for (unsigned rank = 0; rank < shape_.ranks; rank++)
        for (const rondo_note &note : machine_.memory().Host(pages_[rank])->notes)
            if (note.wait != RONDO_WAIT_NONE)
                return {Fault::WRONG, "a note of rank " + std::to_string(rank) + " outlives its wait"};
    return {};
}

Failure Communicator::Run(uint64_t seed)
{
    Failure failure = RunOnly(seed);

    if (!failure)
        failure = CheckEnd();
    if (failure)
        return failure;
    for (unsigned rank = 0; rank < shape_.ranks; rank++)
        if (machine_.memory().Host(pages_[rank])->stop.value != 0)
            return {Fault::WRONG, "rank " + std::to_string(rank) + " was stopped"};
    return CheckResults();
}

Failure Communicator::CheckResults()
{
    std::string difference = Difference();

    if (difference.empty())
        return {};
    return {Fault::WRONG, difference};
}

bool Communicator::HasPosted()
{
    uint64_t bytes = RONDO_SLOTS * shape_.WireSlotBytes();

    for (auto &[key, c] : connections_) {
        const unsigned char *slots = machine_.memory().Host(c.near.slots);
        bool is_stored = std::any_of(slots, slots + bytes, [](unsigned char byte) { return byte != 0; });
        if (shape_.protocol == RONDO_PROTOCOL_SIMPLE
                ? machine_.memory().Host(c.near.posted)->value != shape_.first_step
                : is_stored)
            return true;
    }
    return false;
}

unsigned char *Communicator::Result(unsigned rank, uint64_t *bytes_out)
{
    const Buffer &buffer = buffers_[0][0][rank].recv;

    *bytes_out = buffer.bytes;
    return static_cast<unsigned char *>(machine_.memory().Host(buffer.emulated));
}

bool Communicator::IsRight(unsigned rank)
{
    uint64_t bytes = 0;
    const unsigned char *result = Result(rank, &bytes);

    return std::memcmp(result, buffers_[0][0][rank].recv.cpu.data(), bytes) == 0;
}

unsigned char Communicator::LastByteOf(unsigned rank)
{
    uint64_t bytes = 0;
    const unsigned char *result = Result(rank, &bytes);

    return result[bytes - 1];
}

unsigned Communicator::ListOf(unsigned rank, unsigned launch, unsigned index)
{
    const Plan &plan = plans_[launch][rank];

    for (unsigned list = 0; list < 2 * plan.blocks.size(); list++) {
        const rondo_block &block = plan.blocks[list / 2];
        if (index >= block.first[list % 2] && index < block.first[list % 2] + block.works[list % 2])
            return list;
    }
    return 0;
}

unsigned char *Communicator::CpuAddress(const void *emulated)
{
    const unsigned char *p = static_cast<const unsigned char *>(emulated);

    for (auto &launch : buffers_)
        for (auto &call : launch)
            for (Buffers &b : call)
                for (Buffer *buffer : {&b.send, &b.recv}) {
                    const unsigned char *begin = static_cast<const unsigned char *>(buffer->emulated);
                    if (p >= begin && p <= begin + buffer->bytes)
                        return buffer->cpu.data() + (p - begin);
                }
    return nullptr;
}

void Communicator::ToCpu(::World &cpu, unsigned rank, rondo_work &work)
{
    if (work.send)
        work.send = CpuAddress(work.send);
    if (work.recv)
        work.recv = CpuAddress(work.recv);
    if (IsMessage(work)) {
        unsigned peer = static_cast<unsigned>(work.root);
        work.to = work.to ? cpu.PairTo(rank, peer) : nullptr;
        work.from = work.from ? cpu.PairFrom(rank, peer) : nullptr;
    } else if (work.kind == RONDO_WORK_TREE_UP || work.kind == RONDO_WORK_TREE_DOWN) {
        ToCpuTree(cpu, rank, work);
    } else if (work.peers) {
        ToCpuDirect(cpu, rank, work);
    } else if (work.kind != RONDO_WORK_COPY) {
        work.to = cpu.RingTo(rank, work.channel);
        work.from = cpu.RingFrom(rank, work.channel);
    }
}

// The same plans on the CPU device's plainest kernels.
void Communicator::RunOnCpu()
{
    ::World cpu(shape_.ranks, shape_.channels, shape_.WireSlotBytes(), shape_.protocol);

    for (unsigned channel = 0; shape_.is_deterministic && channel < shape_.channels; channel++)
        cpu.OrderByRank(channel);
    for (auto &plans : plans_) {
        for (unsigned rank = 0; rank < shape_.ranks; rank++)
            for (auto [block, role] : plans[rank].teams)
                for (uint32_t w = 0; w < plans[rank].blocks[block].works[role]; w++) {
                    rondo_work work = plans[rank].works[plans[rank].blocks[block].first[role] + w];
                    ToCpu(cpu, rank, work);
                    cpu.Add(rank, block, role, work);
                }
        if (!cpu.Run(Isas().front().kernel)) {
            std::fprintf(stderr, "the CPU device's kernels cannot run this plan\n");
            std::abort();
        }
    }
}

} // namespace emulator
