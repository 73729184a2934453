// known_killers.h - the table of mutants in docs/verification.md: how it is written, and what an earlier one
// says is the scenario to try first.
#ifndef RONDO_TESTS_EMULATOR_KNOWN_KILLERS_H
#define RONDO_TESTS_EMULATOR_KNOWN_KILLERS_H

#include "judge.h"

#include <cstdio>
#include <map>
#include <string>

namespace emulator
{

const char *EffectName(Effect effect);

void WriteTableHead(FILE *table);

// why: of an equivalent mutant, or NULL.
void WriteRow(FILE *table, const Mutant &mutant, const Verdict &verdict, const char *why);

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
