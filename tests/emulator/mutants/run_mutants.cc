// run_mutants.cc - runs every mutant of the kernels until something notices.
//
//   mutants [--table FILE] [--only NUMBER] [--seeds N]
//
// Each mutant runs in a process of its own through all scenarios, a few seeds at a time, until one fails.
// Prints a line each, writes the table, and exits with 1 if a mutant that is not listed in equivalents.inc
// survives, or one that is listed there does not.
#include "../mutation.h"
#include "../scenarios.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace emulator;

namespace
{

struct Mutant {
    unsigned site;
    Effect effect;
    const char *file, *function, *text;
};

const Mutant kMutants[] = {
#include "mutants.inc"
};

// Mutants that change nothing that anybody could notice, and why.
struct Equivalent {
    const char *function, *text;
    Effect effect;
    const char *why;
};

const Equivalent kEquivalents[] = {
#include "equivalents.inc"
};

constexpr unsigned kHang = 300; // seconds, after which a mutant hangs outside the emulator's sight
constexpr unsigned kRoundSeeds = 2;

struct Verdict {
    bool is_killed = false;
    std::string how, where;
    unsigned seed = 0;
};

const char *EffectName(Effect effect)
{
    static const char *const names[] = {"", "removed", "relaxed", "device scope", "one less", "one more"};
    return names[static_cast<int>(effect)];
}

const char *WhyEquivalent(const Mutant &mutant)
{
    for (const Equivalent &e : kEquivalents)
        if (e.effect == mutant.effect && strcmp(e.function, mutant.function) == 0 &&
            strcmp(e.text, mutant.text) == 0)
            return e.why;
    return nullptr;
}

// In a child: find a failure, and say it in one line.
void Hunt(const Mutant &mutant, unsigned seeds, FILE *out)
{
    Machine machine(0);
    std::vector<Scenario> scenarios = TroubleScenarios(), more = DataScenarios();

    scenarios.insert(scenarios.begin(), more.begin(), more.end());
    machine.max_operations = 4000000;
    for (unsigned first = 0; first < seeds; first += kRoundSeeds)
        for (const Scenario &scenario : scenarios) {
            Communicator communicator(machine, scenario.shape, scenario.launches);
            if (scenario.prepare)
                scenario.prepare(communicator);
            ActiveMutation() = {mutant.site, mutant.effect};
            for (unsigned seed = first; seed < first + kRoundSeeds; seed++) {
                Failure failure = RunScenario(scenario, communicator, seed);
                if (failure) {
                    fprintf(out, "%u\t%s\t%s\n", seed, FaultName(failure.kind), scenario.name.c_str());
                    return;
                }
            }
            ActiveMutation() = {};
        }
}

Verdict Judge(const Mutant &mutant, unsigned seeds)
{
    int ends[2];
    Verdict verdict;

    fflush(nullptr);
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm(kHang);
        FILE *out = fdopen(ends[1], "w");
        Hunt(mutant, seeds, out);
        fclose(out);
        _exit(0);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    char line[512] = "";
    if (fgets(line, sizeof(line), in)) {
        char *kind = strchr(line, '\t') + 1, *name = strchr(kind, '\t') + 1;
        verdict.is_killed = true;
        verdict.seed = static_cast<unsigned>(atoi(line));
        verdict.how.assign(kind, name - 1);
        verdict.where.assign(name, strcspn(name, "\n"));
    }
    fclose(in);
    int status = 0;
    waitpid(child, &status, 0);
    if (!verdict.is_killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
        verdict.is_killed = true;
        verdict.how = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "hang" : "crash";
        verdict.where = "-";
    }
    return verdict;
}

// Pipes separate the columns of a table.
std::string Cell(const std::string &text)
{
    std::string out;

    for (char c : text)
        out += c == '|' ? std::string("\\|") : std::string(1, c);
    return out;
}

void WriteRow(FILE *table, const Mutant &mutant, const Verdict &verdict, const char *why)
{
    std::string end = verdict.is_killed ? verdict.how + " in " + verdict.where
                      : why             ? std::string("equivalent: ") + why
                                        : "SURVIVES";

    fprintf(table, "| %u | %s | %s | `%s` | %s | %s | %s |\n", mutant.site, mutant.file, mutant.function,
            Cell(mutant.text).c_str(), EffectName(mutant.effect), Cell(end).c_str(),
            verdict.is_killed ? std::to_string(verdict.seed).c_str() : "");
}

} // namespace

int main(int argc, char **argv)
{
    FILE *table = nullptr;
    unsigned only = 0, seeds = 20, killed = 0, equivalent = 0, wrong = 0;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--table") == 0)
            table = fopen(argv[i + 1], "w");
        else if (strcmp(argv[i], "--only") == 0)
            only = static_cast<unsigned>(atoi(argv[i + 1]));
        else if (strcmp(argv[i], "--seeds") == 0)
            seeds = static_cast<unsigned>(atoi(argv[i + 1]));
    }
    if (table)
        fprintf(
            table,
            "| site | file | function | what | change | killed by | seed |\n|---|---|---|---|---|---|---|\n");
    for (const Mutant &mutant : kMutants) {
        if (only != 0 && mutant.site != only)
            continue;
        auto begin = std::chrono::steady_clock::now();
        Verdict verdict = Judge(mutant, seeds);
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        const char *why = WhyEquivalent(mutant);
        killed += verdict.is_killed;
        equivalent += !verdict.is_killed && why;
        wrong += verdict.is_killed == (why != nullptr);
        printf("%3u %-12s %-60.60s %s (%.1f s)\n", mutant.site, EffectName(mutant.effect), mutant.text,
               verdict.is_killed
                   ? (verdict.how + " in " + verdict.where + ", seed " + std::to_string(verdict.seed)).c_str()
               : why ? "equivalent"
                     : "SURVIVES",
               took.count());
        if (table)
            WriteRow(table, mutant, verdict, why);
    }
    printf("%u killed, %u equivalent, %u not as expected\n", killed, equivalent, wrong);
    if (table && fclose(table) != 0)
        return 2;
    return wrong != 0;
}
