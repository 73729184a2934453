#include "mutant_list.h"

#include <cstring>

namespace emulator
{

const std::vector<Mutant> &AllMutants()
{
    static const std::vector<Mutant> mutants = {
#include "mutants.inc"
    };
    return mutants;
}

const std::vector<Equivalent> &AllEquivalents()
{
    static const std::vector<Equivalent> equivalents = {
#include "equivalents.inc"
    };
    return equivalents;
}

bool IsOf(const Equivalent &e, const Mutant &mutant)
{
    return e.effect == mutant.effect && strcmp(e.file, mutant.file) == 0 &&
           strcmp(e.function, mutant.function) == 0 && strcmp(e.text, mutant.text) == 0;
}

const char *WhyEquivalent(const Mutant &mutant)
{
    for (const Equivalent &e : AllEquivalents())
        if (IsOf(e, mutant))
            return e.why;
    return nullptr;
}

} // namespace emulator
