// scenarios.h - what communicators go through on the emulator: collectives, stops, faults, and what others
// see of them. The tests of the kernels run them, and so does every mutant.
#ifndef RONDO_TESTS_EMULATOR_SCENARIOS_H
#define RONDO_TESTS_EMULATOR_SCENARIOS_H

#include "emulated_world.h"

#include <string>
#include <vector>

namespace emulator
{

struct Scenario {
    std::string name;
    Shape shape;
    std::vector<std::vector<Call>> launches;
    void (*prepare)(Communicator &) = nullptr;
    Failure (*run)(Communicator &, uint64_t seed) = nullptr; // NULL: Communicator::Run
};

// Every operation over every protocol, and over a network; many in one launch, and several launches.
std::vector<Scenario> DataScenarios();

// Stops, faults, notes.
std::vector<Scenario> TroubleScenarios();

// The same over each protocol, which has_network leaves to SIMPLE alone.
void AddOverProtocols(const Scenario &scenario, std::vector<Scenario> &scenarios);

// A run of a scenario that has been prepared.
Failure RunScenario(const Scenario &scenario, Communicator &communicator, uint64_t seed);

} // namespace emulator

#endif
