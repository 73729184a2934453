// mutation.h - the one thing that is wrong with the kernels in a run of a mutant, if any (run_mutants.cc).
#ifndef RONDO_TESTS_EMULATOR_MUTATION_H
#define RONDO_TESTS_EMULATOR_MUTATION_H

#include <vector>

namespace emulator
{

// What a mutant does to a site. A new one needs its name in known_killers.cc, the functions that it applies
// to in generate_mutants.cc (kPort, or a site of its own as CountSite and CompareSite make them), and what it
// does there in port_emulator.h or in what the generator writes.
enum class Effect {
    NONE,
    REMOVED,  // nothing happens; what it would have found is taken to be so
    RELAXED,  // it happens, and orders nothing
    NARROWED, // its scope is the device and not the system
    LESS,     // a number is smaller by one
    MORE,     // a number is greater by one
    NUM
};

struct Mutation {
    unsigned site = 0; // 0: none
    Effect effect = Effect::NONE;
};

inline Mutation &ActiveMutation()
{
    static Mutation mutation;
    return mutation;
}

// Sites that runs of this process have come by, while somebody wants to know; else NULL.
inline std::vector<bool> *&SitesReached()
{
    static std::vector<bool> *reached = nullptr;
    return reached;
}

inline Effect EffectAt(unsigned site)
{
    if (SitesReached() && site < SitesReached()->size())
        (*SitesReached())[site] = true;
    return site != 0 && site == ActiveMutation().site ? ActiveMutation().effect : Effect::NONE;
}

inline bool IsRemoved(unsigned site)
{
    return EffectAt(site) == Effect::REMOVED;
}

// What is added to a number at this site.
inline int Shift(unsigned site)
{
    Effect effect = EffectAt(site);
    return effect == Effect::LESS ? -1 : effect == Effect::MORE ? 1 : 0;
}

} // namespace emulator

#endif
