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

// What ranks and their users do at moments that matter: memory is used again, nobody waits, flags come round.
std::vector<Scenario> MomentScenarios();

// One call on two channels, of ranks whose slots hold 128 bytes.
Scenario MakeScenario(const char *name, rondo_operation operation, unsigned ranks, uint64_t count,
                      void (*prepare)(Communicator &), Failure (*run)(Communicator &, uint64_t));

// Adds the watch thread, and somebody who raises stop on one rank at any moment; nobody reports a fault.
void AddStopper(Communicator &c);

// Adds the watch thread alone.
void AddWatch(Communicator &c);

// A run that may be stopped, and has no fault, no results.
Failure RunUntilStop(Communicator &c, uint64_t seed);

// The same over each protocol, which has_network leaves to SIMPLE alone.
void AddOverProtocols(const Scenario &scenario, std::vector<Scenario> &scenarios);

// The same over the protocols whose words carry flags.
void AddOverFlags(const Scenario &scenario, std::vector<Scenario> &scenarios);

// A run of a scenario that has been prepared.
Failure RunScenario(const Scenario &scenario, Communicator &communicator, uint64_t seed);

} // namespace emulator

#endif
