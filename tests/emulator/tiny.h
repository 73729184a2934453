// tiny.h - kernels of a few lines, right and wrong, that the machine must tell apart.
#ifndef RONDO_TESTS_EMULATOR_TINY_H
#define RONDO_TESTS_EMULATOR_TINY_H

#define RONDO_KERNELS rondo_tiny
#define RONDO_PORT "port_emulator.h"
#include "kernels/port.h"

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace tiny
{

using namespace rondo_tiny;

// Memory that all ranks share, zeroed.
struct Shared {
    uint64_t *data;         // [256]
    uint64_t *words;        // [16]
    rondo_line *line;       // [4]
    rondo_rank_page *page;  // of all
    ll_pair *pair;          // [4]
    unsigned char *flagged; // 4 lines of 128 bytes
};

struct Tiny {
    const char *name;
    emulator::Fault expected; // NONE: a correct twin
    unsigned ranks, blocks, lanes;
    void (*body)(const Shared &s, unsigned rank, unsigned block);
    unsigned launches = 1;
};

inline void PrintTo(const Tiny &tiny, std::ostream *out)
{
    *out << tiny.name;
}

// What must hold in a correct run.
inline void Require(bool holds, const char *what)
{
    if (!holds)
        emulated().Fail(emulator::Fault::WRONG, what);
}

// tiny_*.cc
const std::vector<Tiny> &BlockCases();
const std::vector<Tiny> &MessageCases();
const std::vector<Tiny> &WarpCases();

emulator::Failure RunTiny(emulator::Machine &machine, const Tiny &tiny, uint64_t seed);

} // namespace tiny

#endif
