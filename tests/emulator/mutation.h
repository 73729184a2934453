// mutation.h - the one thing that is wrong with the kernels in a run of a mutant, if any (run_mutants.cc).
#ifndef RONDO_TESTS_EMULATOR_MUTATION_H
#define RONDO_TESTS_EMULATOR_MUTATION_H

#include <vector>

namespace emulator
{

// What a mutant does to a site.
enum class Effect {
    NONE,
    REMOVED,  // nothing happens; what it would have found is taken to be so
    RELAXED,  // it happens, and orders nothing
    NARROWED, // its scope is the device and not the system
    LESS,     // a number is smaller by one
    MORE,     // a number is greater by one
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
