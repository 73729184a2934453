// known_killers.h - the table of mutants in docs/verification.md: how it is written, what an earlier one
// says is the scenario to try first, and whether it is of today's mutants.
#ifndef RONDO_TESTS_EMULATOR_KNOWN_KILLERS_H
#define RONDO_TESTS_EMULATOR_KNOWN_KILLERS_H

#include "judge.h"

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace emulator
{

const char *EffectName(Effect effect);

void WriteTableHead(FILE *table);

// why: of an equivalent mutant, or NULL.
void WriteRow(FILE *table, const Mutant &mutant, const Verdict &verdict, const char *why);

// The first row that is not as it would be written today, and why; empty if there is none. The table is the
// end of the document. What it says of who noticed a mutant is not tried, but must name one of the scenarios.
std::string StaleRow(const std::string &document, const std::vector<Mutant> &mutants,
                     const char *(*why)(const Mutant &), const std::set<std::string> &scenarios);

class KnownKillers
{
  public:
    // Of a file with such a table somewhere; none if there is no such file.
    explicit KnownKillers(const char *path);

    // Where this mutant, or one of the same name, was noticed. Not killed: nobody knows.
    Verdict Of(const Mutant &mutant) const;

  private:
    std::map<std::string, Verdict> killers_; // by the columns that name the mutant
};

} // namespace emulator

#endif
