// standing.h - a failure in words: what happened, and where every lane stands.
#ifndef RONDO_TESTS_EMULATOR_STANDING_H
#define RONDO_TESTS_EMULATOR_STANDING_H

#include "machine.h"

namespace emulator
{

class Reporter
{
  public:
    explicit Reporter(Machine &machine) : machine_(machine)
    {
    }

    // by: the lane that noticed, or NULL.
    Failure Make(Fault kind, const std::string &what, const Lane *by);

  private:
    std::string TeamName(const Team &team) const;
    std::string Standing(const Lane &lane) const;

    Machine &machine_;
};

} // namespace emulator

#endif
