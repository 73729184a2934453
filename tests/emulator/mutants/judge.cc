#include "judge.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace emulator
{

namespace
{

constexpr unsigned kRoundSeeds = 2;
constexpr unsigned kHang = 300; // seconds, after which a round hangs outside the emulator's sight

// Runs the seeds of one round; the failure and its seed, or none.
Failure RunRound(Machine &machine, const Scenario &scenario, const Mutation &mutation, unsigned first,
                 unsigned seeds, unsigned *seed_out)
{
    Communicator communicator(machine, scenario.shape, scenario.launches);
    Failure failure;

    if (scenario.prepare)
        scenario.prepare(communicator);
    ActiveMutation() = mutation;
    for (*seed_out = first; *seed_out < first + seeds; ++*seed_out) {
        failure = RunScenario(scenario, communicator, *seed_out);
        if (failure)
            break;
    }
    ActiveMutation() = {};
    return failure;
}

// Memory that mutants see is that of a new machine each time, whatever was run before.
bool IsKilled(const Mutant &mutant, const Trial &trial, unsigned first, unsigned seeds, Verdict *verdict_out)
{
    Machine machine(0);
    unsigned seed = 0;

    machine.max_operations = 4000000;
    alarm(kHang);
    Failure failure = RunRound(machine, trial.scenario, {mutant.site, mutant.effect}, first, seeds, &seed);
    if (failure)
        *verdict_out = {true, FaultName(failure.kind), trial.scenario.name, seed};
    return static_cast<bool>(failure);
}

} // namespace

std::vector<Trial> TryAll(unsigned sites)
{
    std::vector<Scenario> scenarios = TroubleScenarios(), more = DataScenarios();
    std::vector<Trial> trials;
    Machine machine(0);

    scenarios.insert(scenarios.end(), more.begin(), more.end());
    for (const Scenario &scenario : scenarios) {
        unsigned seed = 0;
        trials.push_back({scenario, std::vector<bool>(sites)});
        SitesReached() = &trials.back().reached;
        Failure failure = RunRound(machine, scenario, {}, 0, kRoundSeeds, &seed);
        SitesReached() = nullptr;
        if (failure) {
            fprintf(stderr, "without a mutant, %s, seed %u\n%s\n", scenario.name.c_str(), seed,
                    failure.text.c_str());
            exit(2);
        }
        trials.back().operations = machine.operations();
    }
    return trials;
}

Verdict Hunt(const Mutant &mutant, const std::vector<Trial> &trials, const Verdict &likely, unsigned seeds)
{
    std::vector<const Trial *> hunters;
    Verdict verdict;

    for (const Trial &trial : trials) {
        if (trial.scenario.name == likely.where && IsKilled(mutant, trial, likely.seed, 1, &verdict))
            return verdict;
        if (trial.reached[mutant.site])
            hunters.push_back(&trial);
    }
    std::stable_sort(hunters.begin(), hunters.end(),
                     [](const Trial *a, const Trial *b) { return a->operations < b->operations; });
    for (unsigned first = 0; first < seeds; first += kRoundSeeds)
        for (const Trial *trial : hunters)
            if (IsKilled(mutant, *trial, first, std::min(kRoundSeeds, seeds - first), &verdict))
                return verdict;
    return verdict;
}

} // namespace emulator
