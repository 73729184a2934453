// lane_failure.h - what can be wrong with a kernel, and where in its source.
#ifndef RONDO_TESTS_EMULATOR_LANE_FAILURE_H
#define RONDO_TESTS_EMULATOR_LANE_FAILURE_H

#include <cstdint>
#include <string>

namespace emulator
{

enum class Fault {
    NONE,
    DEADLOCK,   // nobody can go on
    DIVERGENCE, // lanes that must act together do not
    BOUNDS,     // memory outside every allocation
    RACE,       // two accesses that nothing orders, one of them a plain one or of too small a scope
    LOST_STOP,  // stop is raised, and somebody waits on
    ENDLESS,    // lanes go on and on
    MISUSE,     // the port's contract is broken otherwise
    WRONG,      // the run ended, and left something wrong behind
};

inline const char *FaultName(Fault fault)
{
    static const char *const names[] = {"none",      "deadlock", "divergence", "out of bounds", "race",
                                        "lost stop", "endless",  "misuse",     "wrong result"};
    return names[static_cast<int>(fault)];
}

struct Failure {
    Fault kind = Fault::NONE;
    std::string text; // what happened, then where every lane stands

    explicit operator bool() const
    {
        return kind != Fault::NONE;
    }
};

// A place in a kernel's source. Functions of the emulator's port take one as a last argument that callers
// leave out; mutants (mutation.h) give its number.
struct Site {
    const char *function;
    unsigned line;
    unsigned mutant;

    static constexpr Site Here(unsigned mutant = 0, const char *function = __builtin_FUNCTION(),
                               unsigned line = __builtin_LINE())
    {
        return {function, line, mutant};
    }
};

} // namespace emulator

#endif
