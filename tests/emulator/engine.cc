// The progress engine between two hosts, as far as kernels can tell: it moves posted slots from the
// sender's side of every connection to the receiver's, and gives the sender credit once a slot is copied.
#include "emulated_world.h"

#define RONDO_KERNELS rondo_engine
#define RONDO_PORT "port_emulator.h"
#include "kernels/port.h"

namespace emulator
{

using namespace rondo_engine; // of which machine is the port's

void Communicator::RunEngine()
{
    rondo_engine::machine where{&pages_[0]->stop};
    std::vector<std::pair<const Connection *, uint64_t>> wires; // and steps moved
    unsigned polls = 0;

    for (auto &[key, c] : connections_)
        wires.push_back({&c, shape_.first_step});
    for (;;) {
        bool has_moved = false;
        for (auto &[c, step] : wires) {
            if (!has_reached(c->near.posted, step + 1) ||
                !has_reached(c->far.consumed, step + 1 - RONDO_SLOTS))
                continue;
            uint64_t slot = step % RONDO_SLOTS;
            rondo_slot_head head = load_plain(&c->near.heads[slot]);
            copy_bytes(c->far.slots + slot * shape_.slot_bytes, nullptr,
                       c->near.slots + slot * shape_.slot_bytes, head.bytes);
            store_plain(&c->far.heads[slot], head);
            step++;
            publish(where, c->far.posted, step, nullptr);
            publish(where, c->near.consumed, step, nullptr);
            has_moved = true;
        }
        if (!has_moved && !poll_again(where, polls))
            return;
    }
}

} // namespace emulator
