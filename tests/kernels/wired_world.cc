#include "wired_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

template <class T> Aligned<T> MakeAligned(size_t bytes)
{
    size_t whole = (bytes + RONDO_LINE_BYTES - 1) / RONDO_LINE_BYTES * RONDO_LINE_BYTES;
    void *memory = aligned_alloc(RONDO_LINE_BYTES, whole);

    std::memset(memory, 0, whole);
    return Aligned<T>(static_cast<T *>(memory));
}

World::World(unsigned ranks, unsigned channels, uint64_t slot_bytes, rondo_protocol first)
    : protocol(first), slot_bytes_(slot_bytes), ranks_(ranks)
{
    std::mt19937 random(ranks * 100 + channels);

    for (unsigned channel = 0; channel < channels; channel++) {
        size_t begin = order_.size();
        for (unsigned i = 0; i < ranks; i++)
            order_.push_back(static_cast<int32_t>(i));
        if (channel > 0)
            std::shuffle(order_.begin() + static_cast<long>(begin), order_.end(), random);
    }
    for (Rank &rank : ranks_) {
        rank.page = MakeAligned<rondo_rank_page>(sizeof(rondo_rank_page));
        rank.position.resize(channels);
    }
    for (unsigned channel = 0; channel < channels; channel++)
        for (unsigned i = 0; i < ranks; i++)
            ranks_[static_cast<unsigned>(Order(channel)[i])].position[channel] = static_cast<int32_t>(i);
}

World::~World() = default;

void World::OrderByRank(unsigned channel)
{
    for (unsigned i = 0; i < Ranks(); i++) {
        order_[channel * Ranks() + i] = static_cast<int32_t>(i);
        ranks_[i].position[channel] = static_cast<int32_t>(i);
    }
}

namespace
{

// As 2^32 steps leave a slot of LL128: with flags of which one half is that of the next step.
void MakeLinesStale(unsigned char *slots, uint64_t slot_bytes, uint64_t first_step)
{
    for (uint64_t step = first_step; step < first_step + RONDO_SLOTS && first_step >> 32 != 0; step++) {
        unsigned char *slot = slots + step % RONDO_SLOTS * slot_bytes;
        uint64_t flag = step + 1 - (uint64_t{1} << 32);
        for (uint64_t line = 0; line + RONDO_LL128_LINE_BYTES <= slot_bytes; line += RONDO_LL128_LINE_BYTES)
            std::memcpy(slot + line + RONDO_LL128_LINE_DATA, &flag, sizeof(flag));
    }
}

// As 2^31 steps and more leave a slot: words of LL were all refreshed when bit 31 of their flag last changed,
// and many of them were not needed since.
void MakeStale(unsigned char *slots, uint64_t slot_bytes, rondo_protocol protocol, uint64_t first_step)
{
    if (protocol == RONDO_PROTOCOL_LL128)
        MakeLinesStale(slots, slot_bytes, first_step);
    if (protocol != RONDO_PROTOCOL_LL || first_step >> 31 == 0)
        return;
    for (uint64_t s = 0; s < RONDO_SLOTS; s++) {
        auto *word = reinterpret_cast<uint32_t *>(slots + s * slot_bytes);
        uint64_t refreshed = (first_step >> 31 << 31) - RONDO_SLOTS + s;
        for (uint64_t i = 0; i < slot_bytes / 8; i++)
            word[2 * i + 1] = static_cast<uint32_t>(refreshed + 1);
    }
}

} // namespace

// Keys of trees begin here; those of direct connections.
constexpr unsigned kTree = 500, kDirect = 1000;

// key: channel + 1 of a ring, 0 of the pair's own, channel + kTree, channel + kDirect of direct works.
World::Connection &World::Connect(unsigned from, unsigned to, unsigned key)
{
    std::unique_ptr<Connection> &slot = connections_[{protocol, key, from, to}];

    if (!slot) {
        slot = std::make_unique<Connection>();
        Connection &c = *slot;
        c.posted = MakeAligned<rondo_line>(sizeof(rondo_line));
        c.consumed = MakeAligned<rondo_line>(sizeof(rondo_line));
        c.heads = MakeAligned<rondo_slot_head>(RONDO_SLOTS * sizeof(rondo_slot_head));
        bool has_offers = key >= kDirect && protocol == RONDO_PROTOCOL_SIMPLE;
        uint64_t slot_bytes = has_offers ? RONDO_OFFER_SLOT_BYTES : slot_bytes_;
        c.slots = MakeAligned<unsigned char>(RONDO_SLOTS * slot_bytes);
        c.to = {first_step,
                c.posted.get(),
                c.consumed.get(),
                c.heads.get(),
                c.slots.get(),
                slot_bytes,
                nullptr,
                0,
                0};
        if (first_step > 0) {
            c.posted->value = first_step;
            c.consumed->value =
                protocol == RONDO_PROTOCOL_SIMPLE ? first_step : first_step - first_step % RONDO_CREDIT_STEPS;
            MakeStale(c.slots.get(), slot_bytes, protocol, first_step);
        }
        c.from = c.to;
        c.to.peer_rank = static_cast<int32_t>(to);
        c.from.peer_rank = static_cast<int32_t>(from);
    }
    return *slot;
}

void World::ForEachConnection(const std::function<void(const rondo_end &to)> &look)
{
    for (const auto &entry : connections_)
        look(entry.second->to);
}

rondo_end *World::RingTo(unsigned rank, unsigned channel)
{
    unsigned position = static_cast<unsigned>(ranks_[rank].position[channel]);
    return &Connect(rank, static_cast<unsigned>(Order(channel)[(position + 1) % Ranks()]), channel + 1).to;
}

rondo_end *World::RingFrom(unsigned rank, unsigned channel)
{
    unsigned position = static_cast<unsigned>(ranks_[rank].position[channel]);
    return &Connect(static_cast<unsigned>(Order(channel)[(position + Ranks() - 1) % Ranks()]), rank,
                    channel + 1)
                .from;
}

rondo_end *World::PairTo(unsigned rank, unsigned peer)
{
    return &Connect(rank, peer, 0).to;
}

rondo_end *World::PairFrom(unsigned rank, unsigned peer)
{
    return &Connect(peer, rank, 0).from;
}

rondo_end *World::TreeTo(unsigned rank, unsigned peer, unsigned channel)
{
    return &Connect(rank, peer, kTree + channel).to;
}

rondo_end *World::TreeFrom(unsigned rank, unsigned peer, unsigned channel)
{
    return &Connect(peer, rank, kTree + channel).from;
}

rondo_end *World::DirectTo(unsigned rank, unsigned peer, unsigned channel)
{
    return &Connect(rank, peer, kDirect + channel).to;
}

rondo_end *World::DirectFrom(unsigned rank, unsigned peer, unsigned channel)
{
    return &Connect(peer, rank, kDirect + channel).from;
}

void World::Add(unsigned rank, unsigned block, unsigned role, const rondo_work &work)
{
    ranks_[rank].lists[block][role].push_back(work);
}

void World::Amend(unsigned rank, const std::function<void(rondo_work &)> &change)
{
    for (auto &block : ranks_[rank].lists)
        for (auto &list : block)
            std::for_each(list.begin(), list.end(), change);
}

void World::Prepare()
{
    for (unsigned r = 0; r < Ranks(); r++) {
        Rank &rank = ranks_[r];
        rank.works.clear();
        rank.blocks.clear();
        rank.fault = rondo_fault{};
        for (auto &block : rank.lists) {
            rondo_block lists{};
            for (int role = 0; role < 2; role++) {
                lists.first[role] = static_cast<uint32_t>(rank.works.size());
                lists.works[role] = static_cast<uint32_t>(block[role].size());
                rank.works.insert(rank.works.end(), block[role].begin(), block[role].end());
                block[role].clear();
            }
            rank.blocks.push_back(lists);
        }
        rank.args = {static_cast<int32_t>(r),
                     static_cast<int32_t>(Ranks()),
                     static_cast<uint32_t>(rank.blocks.size()),
                     static_cast<uint32_t>(rank.works.size()),
                     rank.blocks.data(),
                     rank.works.data(),
                     order_.data(),
                     rank.position.data(),
                     rank.page.get(),
                     nullptr,
                     &rank.fault};
    }
    deadlocked_ = false;
}

std::deque<World::Lane> World::Lanes(rondo_cpu_kernel kernel, const rondo_lane_ops *ops)
{
    std::deque<Lane> lanes;

    Prepare();
    for (Rank &rank : ranks_)
        for (uint32_t block = 0; block < rank.blocks.size(); block++)
            for (uint32_t role = 0; role < 2; role++)
                if (rank.blocks[block].works[role] > 0)
                    lanes.push_back({{ops, &rank.page->stop, block, role},
                                     this,
                                     &rank.args,
                                     kernel,
                                     nullptr,
                                     nullptr,
                                     0,
                                     nullptr,
                                     false});
    return lanes;
}

void World::RunLane(rondo_fiber *, void *argument)
{
    Lane *lane = static_cast<Lane *>(argument);

    lane->kernel(&lane->lane, lane->args);
}

bool World::HasCome(const Lane &lane)
{
    if (lane.flag)
        return __atomic_load_n(lane.flag, __ATOMIC_ACQUIRE) == static_cast<uint32_t>(lane.target);
    return static_cast<int64_t>(rondo_line_read(lane.line) - lane.target) >= 0;
}

bool World::Wait(Lane *self, rondo_line *line, const uint32_t *flag, uint64_t target)
{
    const rondo_note &note = self->args->page->notes[self->lane.block * 2 + self->lane.role];

    if (note.wait != RONDO_WAIT_NONE && note.sequence > 0)
        self->world->notes_seen_++;
    self->line = line;
    self->flag = flag;
    self->target = target;
    rondo_fiber_yield(self->fiber);
    bool result = HasCome(*self);
    self->line = nullptr;
    return result;
}

bool World::FiberWait(rondo_lane *lane, rondo_line *line, uint64_t target)
{
    return Wait(reinterpret_cast<Lane *>(lane), line, nullptr, target);
}

bool World::FiberWaitFlag(rondo_lane *lane, rondo_line *line, const uint32_t *flag, uint32_t value)
{
    return Wait(reinterpret_cast<Lane *>(lane), line, flag, value);
}

void World::FiberYield(rondo_lane *lane)
{
    rondo_fiber_yield(reinterpret_cast<Lane *>(lane)->fiber);
}

std::vector<std::pair<rondo_switchboard *, uint32_t>> &World::Rings()
{
    static std::vector<std::pair<rondo_switchboard *, uint32_t>> rings;
    return rings;
}

void World::FiberRing(rondo_switchboard *board, uint32_t waiter)
{
    Rings().push_back({board, waiter});
}

void World::ThreadRing(rondo_switchboard *, uint32_t)
{
    ADD_FAILURE() << "a doorbell is rung although nobody sleeps";
}

// One turn; false when nobody could go on.
bool World::ResumeAll(std::deque<Lane> &lanes)
{
    bool moved = false;
    std::vector<Lane *> order;

    for (Lane &lane : lanes)
        order.push_back(&lane);
    if (is_random_)
        std::shuffle(order.begin(), order.end(), random_);
    for (Lane *next : order) {
        Lane &lane = *next;
        bool ready = !lane.line || HasCome(lane) || lane.lane.stop->value != 0;
        if (lane.done || !ready)
            continue;
        moved = true;
        if (is_random_ && random_() % 2)
            continue;
        lane.done = rondo_fiber_resume(lane.fiber);
        SpreadStops();
    }
    return moved;
}

bool World::Run(rondo_cpu_kernel kernel)
{
    static const rondo_lane_ops ops = {FiberWait, FiberWaitFlag, FiberRing, FiberYield};
    std::deque<Lane> lanes = Lanes(kernel, &ops);

    for (Lane &lane : lanes) {
        EXPECT_EQ(rondo_fiber_create(65536, &lane.fiber), ncclSuccess);
        rondo_fiber_prepare(lane.fiber, RunLane, &lane);
    }
    for (unsigned turn = 0;; turn++) {
        bool moved = ResumeAll(lanes);
        if (std::all_of(lanes.begin(), lanes.end(), [](const Lane &lane) { return lane.done; }))
            break;
        if (!moved) {
            deadlocked_ = true;
            RaiseStop(0, RONDO_STOP_ABORT);
            SpreadStops();
        }
        if (between_turns)
            between_turns(*this, turn);
    }
    for (Lane &lane : lanes)
        rondo_fiber_destroy(lane.fiber);
    return Ended();
}

static bool PollUntil(rondo_lane *lane, const std::function<bool()> &has_come)
{
    while (!has_come()) {
        if (rondo_line_read(lane->stop) != 0)
            return false;
        std::this_thread::yield();
    }
    return true;
}

bool World::ThreadWait(rondo_lane *lane, rondo_line *line, uint64_t target)
{
    return PollUntil(lane, [&] { return static_cast<int64_t>(rondo_line_read(line) - target) >= 0; });
}

bool World::ThreadWaitFlag(rondo_lane *lane, rondo_line *, const uint32_t *flag, uint32_t value)
{
    return PollUntil(lane, [&] { return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == value; });
}

void World::ThreadYield(rondo_lane *)
{
    std::this_thread::yield();
}

bool World::RunThreads(rondo_cpu_kernel kernel)
{
    static const rondo_lane_ops ops = {ThreadWait, ThreadWaitFlag, ThreadRing, ThreadYield};
    std::deque<Lane> lanes = Lanes(kernel, &ops);
    std::vector<std::thread> threads;

    for (Lane &lane : lanes)
        threads.emplace_back(RunLane, nullptr, &lane);
    for (std::thread &thread : threads)
        thread.join();
    return Ended();
}

void World::RaiseStop(unsigned rank, uint64_t value)
{
    uint64_t none = 0;

    __atomic_compare_exchange_n(&ranks_[rank].page->stop.value, &none, value, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
}

// What the host does with a stop: everybody gets it.
void World::SpreadStops()
{
    uint64_t value = 0;

    for (Rank &rank : ranks_)
        if (rank.page->stop.value != 0)
            value = rank.page->stop.value;
    for (unsigned r = 0; value != 0 && r < Ranks(); r++)
        RaiseStop(r, value);
}

bool World::Ended()
{
    bool well = true;

    for (Rank &rank : ranks_) {
        well = well && rank.page->stop.value == 0 && rank.fault.code == 0;
        for (const rondo_note &note : rank.page->notes)
            EXPECT_EQ(note.wait, RONDO_WAIT_NONE) << "a note outlives its wait";
    }
    return well;
}
