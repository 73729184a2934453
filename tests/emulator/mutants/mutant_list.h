// mutant_list.h - the mutants that generate_mutants.cc has made of the kernels, and which are equivalent.
#ifndef RONDO_TESTS_EMULATOR_MUTANT_LIST_H
#define RONDO_TESTS_EMULATOR_MUTANT_LIST_H

#include "../mutation.h"

#include <vector>

namespace emulator
{

struct Mutant {
    unsigned site;
    Effect effect;
    const char *file, *function, *text;
};

// Mutants that change nothing that anybody could notice, and why.
struct Equivalent {
    const char *file, *function, *text;
    Effect effect;
    const char *why;
};

// By site, as in the table.
const std::vector<Mutant> &AllMutants();
const std::vector<Equivalent> &AllEquivalents();

bool IsOf(const Equivalent &e, const Mutant &mutant);

// NULL: it is not equivalent.
const char *WhyEquivalent(const Mutant &mutant);

} // namespace emulator

#endif
