// judge.h - whether any scenario notices a mutant, and which.
#ifndef RONDO_TESTS_EMULATOR_JUDGE_H
#define RONDO_TESTS_EMULATOR_JUDGE_H

#include "../scenarios.h"
#include "mutant_list.h"

#include <string>
#include <vector>

namespace emulator
{

struct Verdict {
    bool is_killed = false;
    std::string how, where; // the fault, and the scenario
    unsigned seed = 0;
};

// What a scenario does with the kernels as they are.
struct Trial {
    Scenario scenario;
    std::vector<bool> reached; // by site
    uint64_t operations = 0;
};

// Each scenario with the first seeds. A failure here is one of the kernels or of the emulator, and ends the
// program.
std::vector<Trial> TryAll(unsigned sites);

// Try to have the mutant noticed, by `likely` first (unless it names no scenario), then by all scenarios that
// come by its site, quick ones first, a few seeds at a time. What one that does not would make of the mutant
// is what it makes of the kernels as they are. For a process of its own: mutants may leave anything behind.
Verdict Hunt(const Mutant &mutant, const std::vector<Trial> &trials, const Verdict &likely, unsigned seeds);

} // namespace emulator

#endif
