// All lists of all ranks of a launch, run one slot at a time in random order over wires of RONDO_SLOTS slots,
// with credit as each protocol gives it.
//
// A list is a sequence of actions: what it must receive before it goes on and what it then sends. Nothing
// moving while something is unfinished is a deadlock; a slot that is not the one its receiver expects is a
// failure of the test.
#ifndef RONDO_TESTS_COLLECTIVES_SIMULATION_H
#define RONDO_TESTS_COLLECTIVES_SIMULATION_H

#include "plan_world.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <random>

// A part that a rank handles, through all the connections of its work; 0 bytes with has_... set is a slot
// that only synchronises.
struct Action {
    bool receives, sends;
    uint64_t received_bytes, sent_bytes;
};

// The number of actions of a work, and each of them.
struct Script {
    uint64_t actions;
    std::function<Action(uint64_t index)> at;
};

inline Script MessageScript(const rondo_work &work)
{
    bool is_send = work.kind == RONDO_WORK_SEND;
    uint64_t chunk = work.chunk, count = work.count;
    if (work.kind == RONDO_WORK_COPY)
        return {0, {}};
    return {std::max<uint64_t>((count + chunk - 1) / chunk, 1), [=](uint64_t i) {
                uint64_t bytes = std::min(chunk, count - i * chunk);
                return Action{!is_send, is_send, bytes, bytes};
            }};
}

class Simulation
{
  public:
    using Scripts = std::function<Script(int rank, const rondo_work &work)>;

    Simulation(const World &world, const std::vector<Plan> &launch, Scripts scripts)
        : world_(world), scripts_(std::move(scripts))
    {
        for (size_t rank = 0; rank < launch.size(); rank++) {
            const Plan &plan = launch[rank];
            for (uint32_t b = 0; plan && b < plan->args.blocks; b++) {
                for (int role = 0; role < 2; role++) {
                    if (plan->blocks[b].works[role] > 0)
                        lists_.push_back({(int)rank,
                                          plan->works + plan->blocks[b].first[role],
                                          plan->blocks[b].works[role],
                                          0,
                                          {},
                                          0,
                                          false});
                }
            }
        }
    }

    // Runs to the end in random order; false: stuck, or a slot was wrong.
    bool Run(std::mt19937 &random)
    {
        std::vector<size_t> active(lists_.size());
        for (size_t i = 0; i < active.size(); i++)
            active[i] = i;
        while (!active.empty() && is_right_) {
            bool has_moved = false;
            std::shuffle(active.begin(), active.end(), random);
            for (size_t i : active) {
                uint32_t turns = 1 + random() % 20;
                while (turns-- > 0 && Step(lists_[i]))
                    has_moved = true;
            }
            active.erase(std::remove_if(active.begin(), active.end(),
                                        [&](size_t i) { return lists_[i].index == lists_[i].works; }),
                         active.end());
            if (!has_moved && !active.empty())
                return false;
        }
        for (auto &[name, wire] : wires_)
            EXPECT_TRUE(wire.slots.empty()) << "sent and never received";
        return is_right_;
    }

  private:
    struct Slot {
        uint64_t fingerprint, bytes;
    };

    struct Slots {
        std::deque<Slot> slots;
        uint64_t sent = 0, taken = 0;

        bool HasCredit(int protocol) const
        {
            if (protocol == RONDO_PROTOCOL_SIMPLE)
                return sent - taken < RONDO_SLOTS;
            return sent % RONDO_CREDIT_STEPS != 0 ||
                   taken - taken % RONDO_CREDIT_STEPS + RONDO_CREDIT_STEPS >= sent;
        }
    };

    struct List {
        int rank;
        const rondo_work *first;
        uint32_t works, index;
        Script script;
        uint64_t done;
        bool is_open; // script and wires are those of the work at index
        std::vector<Slots *> in = {}, out = {};
    };

    // The wires of a work.
    void Open(List &list, const rondo_work &work)
    {
        bool is_up = work.kind == RONDO_WORK_TREE_UP, is_tree = is_up || work.kind == RONDO_WORK_TREE_DOWN;
        std::vector<const rondo_end *> from = {work.from}, to = {work.to};
        for (uint32_t port = 0; is_tree && port < RONDO_TREE_PORTS; port++) {
            const rondo_peer_ends &peer = work.peers[port];
            bool is_parent = port == RONDO_TREE_PARENT, is_root = !work.peers[RONDO_TREE_PARENT].to;
            from.push_back(is_up != is_parent ? peer.from : nullptr);
            to.push_back(is_up == is_parent || is_root ? peer.to : nullptr);
        }
        list.in.clear();
        list.out.clear();
        for (const rondo_end *end : from) {
            if (end)
                list.in.push_back(&wires_[world_.WireOf(end)]);
        }
        for (const rondo_end *end : to) {
            if (end)
                list.out.push_back(&wires_[world_.WireOf(end)]);
        }
    }

    bool MayMove(const List &list, const Action &action, int protocol) const
    {
        bool has_come = !action.receives || std::none_of(list.in.begin(), list.in.end(),
                                                         [](const Slots *in) { return in->slots.empty(); });
        bool has_room = !action.sends || std::all_of(list.out.begin(), list.out.end(), [&](const Slots *out) {
            return out->HasCredit(protocol);
        });
        return has_come && has_room;
    }

    // One action, or the end of a work; false: the list is finished or waits.
    bool Step(List &list)
    {
        if (list.index == list.works)
            return false;
        const rondo_work &work = list.first[list.index];
        if (!list.is_open) {
            list.script = scripts_(list.rank, work);
            Open(list, work);
            list.done = 0;
            list.is_open = true;
        }
        if (list.done == list.script.actions) {
            list.is_open = false;
            list.index++;
            return true;
        }
        Action action = list.script.at(list.done);
        if (!MayMove(list, action, work.protocol))
            return false;
        for (Slots *in : action.receives ? list.in : std::vector<Slots *>{}) {
            const Slot &slot = in->slots.front();
            if (slot.fingerprint != work.fingerprint || slot.bytes != action.received_bytes) {
                ADD_FAILURE() << "rank " << list.rank << " expected " << action.received_bytes
                              << " bytes and found " << slot.bytes;
                is_right_ = false;
            }
            in->slots.pop_front();
            in->taken++;
        }
        for (Slots *out : action.sends ? list.out : std::vector<Slots *>{}) {
            out->slots.push_back({work.fingerprint, action.sent_bytes});
            out->sent++;
            EXPECT_LE(out->slots.size(), RONDO_SLOTS) << "a slot is overwritten";
        }
        list.done++;
        return true;
    }

    const World &world_;
    Scripts scripts_;
    std::vector<List> lists_;
    std::map<Wire, Slots> wires_;
    bool is_right_ = true;
};

#endif
