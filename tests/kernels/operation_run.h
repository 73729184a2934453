// operation_run.h - one collective on a World: its buffers, its works on every rank and channel, and what
// must come out.
#ifndef RONDO_TESTS_OPERATION_RUN_H
#define RONDO_TESTS_OPERATION_RUN_H

#include "reference.h"
#include "wired_world.h"

#include "topology/trees.h"

#include <deque>
#include <string>

// How inputs are chosen. EXACT: small whole numbers, whose results are exact in every type and order.
// SIXTEENTHS: multiples of 1/16 whose sums are exact in the accumulator but not in narrow types. ANY: finite
// numbers of like size.
enum class Inputs { EXACT, SIXTEENTHS, ANY };

struct Operation {
    rondo_work_kind kind;
    ncclDataType_t dtype = ncclFloat32;
    int redop = RONDO_REDOP_SUM;
    uint64_t count = 1; // as the API counts: per block for all-gather and reduce-scatter
    uint64_t chunk = 16;
    int32_t root = 0;
    bool in_place = false, precise = false;
    unsigned offset = 0; // bytes by which buffers are out of alignment
    unsigned channels = 1;
    Inputs inputs = Inputs::EXACT;

    // Direct kinds. Bit r: rank r's buffers go through its bounce area. is_apart: ranks see each other as
    // processes do, through windows that end where the other's memory does.
    unsigned bounced = 0;
    bool is_apart = false;

    // Trees: the ranks are dealt round so many hosts, one more than this modulo the ranks.
    unsigned hosts = 0;

    rondo_operation Pattern() const; // what it does, whichever way
    bool IsReduction() const;
    bool IsChain() const;
    bool IsDirect() const;
    bool IsTree() const; // TREE_UP stands for it and TREE_DOWN
    std::string Name() const;
};

class OperationRun
{
  public:
    OperationRun(World &world, const Operation &operation, unsigned seed);

    // Append the works of all ranks, one a channel and block, to the world.
    void AddWorks(uint64_t fingerprint);

    // Compare all of all ranks' buffers with the reference; reports the first difference of each.
    void Verify() const;

    // Result bytes of a rank.
    std::vector<unsigned char> Result(unsigned rank) const;

    const unsigned char *Recv(unsigned rank) const
    {
        return buffers_[rank].recv_at;
    }

  private:
    // What a direct or tree work of one rank and channel needs.
    struct Direct {
        std::vector<rondo_peer_ends> peers;
        std::vector<rondo_source> sources;
        std::vector<unsigned char> bounce;
    };

    struct Buffers {
        std::vector<unsigned char> send, recv; // with offset before and canaries around
        unsigned char *send_at = nullptr, *recv_at = nullptr;
        std::vector<uint64_t> input;
    };

    uint64_t SendCount() const;
    uint64_t RecvCount() const;
    uint64_t RandomInput(uint64_t &state) const;
    void MakeBuffers(unsigned rank, uint64_t &state);
    bool UsesSend(unsigned rank) const;
    bool UsesRecv(unsigned rank) const;
    rondo_window Window(unsigned rank, const Direct &direct) const;
    void ConnectDirect(unsigned channel, uint64_t first_direct);
    rondo_work MakeWork(unsigned rank, unsigned channel, uint64_t first, uint64_t count);
    uint64_t Share() const; // of a channel, but for the last ones
    rondo_tree_node NodeOf(unsigned rank, unsigned channel) const;
    void AddTree(rondo_work work, unsigned rank);
    reference::Value FoldedByTree(unsigned rank, unsigned channel, uint64_t index) const;
    uint64_t Folded(uint64_t index) const;
    bool Expected(unsigned rank, uint64_t index, uint64_t &raw_out) const;

    World &world_;
    Operation operation_;
    const reference::Type &type_;
    uint64_t ScalarOf(unsigned rank) const;
    std::vector<Buffers> buffers_;
    std::vector<uint64_t> folded_; // of every element, for reductions
    std::deque<Direct> directs_;   // of all ranks for channel 0, then of channel 1, ..
};

#endif
