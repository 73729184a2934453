// run_mutants.cc - runs every mutant of the kernels until something notices.
//
//   mutants [--table FILE] [--known FILE] [--only NUMBER] [--seeds N] [--jobs N]
//
// Each mutant runs in a process of its own, N at a time (2). What noticed it when the table in the known file
// was written is tried first. Prints a line each, writes the table, and exits with 1 if a mutant that is not
// listed in equivalents.inc survives N seeds (6), or one that is listed there does not, or a row of that list
// names no mutant.
#include "known_killers.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace emulator;

namespace
{

struct Options {
    const char *table = nullptr, *known = "";
    unsigned only = 0, seeds = 6, jobs = 2;
};

// A child that judges one mutant.
struct Running {
    size_t index;
    FILE *in;
    std::chrono::steady_clock::time_point begin;
};

class Court
{
  public:
    explicit Court(const Options &options) : options_(options), known_(options.known)
    {
        unsigned sites = 0;

        for (const Mutant &mutant : AllMutants()) {
            sites = std::max(sites, mutant.site + 1);
            if (options.only == 0 || options.only == mutant.site)
                mutants_.push_back(&mutant);
        }
        trials_ = TryAll(sites);
        verdicts_.resize(mutants_.size());
    }

    // Those that nothing is expected to notice take longest, and begin.
    void JudgeAll()
    {
        for (bool is_equivalent : {true, false})
            for (size_t i = 0; i < mutants_.size(); i++) {
                if ((WhyEquivalent(*mutants_[i]) != nullptr) != is_equivalent)
                    continue;
                Start(i);
                while (running_.size() >= options_.jobs)
                    End();
            }
        while (!running_.empty())
            End();
    }

    // The table; how many mutants are not as expected.
    unsigned Report();

  private:
    void Start(size_t index)
    {
        int ends[2];

        fflush(nullptr);
        if (pipe(ends) != 0)
            abort();
        pid_t child = fork();
        FILE *in = fdopen(ends[0], "r");
        if (child < 0 || !in) {
            perror("mutants: run one in a process of its own");
            exit(2);
        }
        if (child == 0) {
            fclose(in);
            FILE *out = fdopen(ends[1], "w");
            Verdict verdict = Hunt(*mutants_[index], trials_, known_.Of(*mutants_[index]), options_.seeds);
            if (verdict.is_killed)
                fprintf(out, "%u\t%s\t%s\n", verdict.seed, verdict.how.c_str(), verdict.where.c_str());
            fclose(out);
            _exit(0);
        }
        close(ends[1]);
        running_[child] = {index, in, std::chrono::steady_clock::now()};
    }

    // Waits for one of them.
    void End()
    {
        int status = 0;
        auto found = running_.find(waitpid(-1, &status, 0));
        if (found == running_.end())
            abort();
        Running running = found->second;
        Verdict &verdict = verdicts_[running.index];
        char line[512] = "";

        if (fgets(line, sizeof(line), running.in)) {
            char *kind = strchr(line, '\t') + 1, *name = strchr(kind, '\t') + 1;
            verdict = {true, std::string(kind, name - 1), std::string(name, strcspn(name, "\n")),
                       static_cast<unsigned>(atoi(line))};
        } else if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
            bool is_hang = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
            verdict = {true, is_hang ? "hang" : "crash", "-", 0};
        }
        fclose(running.in);
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - running.begin;
        PrintLine(*mutants_[running.index], verdict, took.count());
        running_.erase(found);
    }

    static void PrintLine(const Mutant &mutant, const Verdict &verdict, double seconds)
    {
        const char *why = WhyEquivalent(mutant);
        std::string end = verdict.is_killed ? verdict.how + " in " + verdict.where + ", seed " +
                                                  std::to_string(verdict.seed)
                          : why ? "equivalent"
                                : "SURVIVES";

        printf("%3u %-16s %-20s %-12s %-60.60s %s%s (%.1f s)\n", mutant.site, mutant.file, mutant.function,
               EffectName(mutant.effect), mutant.text, end.c_str(),
               verdict.is_killed && why ? ", although it is listed as equivalent" : "", seconds);
    }

    Options options_;
    KnownKillers known_;
    std::vector<const Mutant *> mutants_;
    std::vector<Trial> trials_;
    std::vector<Verdict> verdicts_;
    std::map<pid_t, Running> running_;
};

unsigned Court::Report()
{
    FILE *table = options_.table ? fopen(options_.table, "w") : nullptr;
    unsigned killed = 0, equivalent = 0, wrong = 0;

    if (table)
        WriteTableHead(table);
    for (size_t i = 0; i < mutants_.size(); i++) {
        const Mutant &mutant = *mutants_[i];
        const Verdict &verdict = verdicts_[i];
        const char *why = WhyEquivalent(mutant);
        killed += verdict.is_killed;
        equivalent += !verdict.is_killed && why;
        wrong += verdict.is_killed == (why != nullptr);
        if (table)
            WriteRow(table, mutant, verdict, why);
    }
    for (const Equivalent &e : AllEquivalents())
        if (std::none_of(AllMutants().begin(), AllMutants().end(),
                         [&](const Mutant &mutant) { return IsOf(e, mutant); })) {
            printf("no mutant: %s, %s, %s, %s\n", e.file, e.function, e.text, EffectName(e.effect));
            wrong++;
        }
    printf("%zu mutants: %u killed, %u equivalent, %u not as expected\n", mutants_.size(), killed, equivalent,
           wrong);
    if (table && fclose(table) != 0)
        wrong++;
    return wrong;
}

} // namespace

int main(int argc, char **argv)
{
    Options options;

    for (int i = 1; i < argc; i += 2) {
        unsigned number = i + 1 < argc ? static_cast<unsigned>(atoi(argv[i + 1])) : 0;
        if (i + 1 == argc) {
            fprintf(stderr, "mutants: %s has no value\n", argv[i]);
            return 2;
        }
        if (strcmp(argv[i], "--table") == 0)
            options.table = argv[i + 1];
        else if (strcmp(argv[i], "--known") == 0)
            options.known = argv[i + 1];
        else if (strcmp(argv[i], "--only") == 0)
            options.only = number;
        else if (strcmp(argv[i], "--seeds") == 0)
            options.seeds = number;
        else if (strcmp(argv[i], "--jobs") == 0)
            options.jobs = std::max(1u, number);
        else {
            fprintf(stderr, "mutants: %s is none of --table, --known, --only, --seeds, --jobs\n", argv[i]);
            return 2;
        }
    }
    Court court(options);
    court.JudgeAll();
    return court.Report() != 0;
}
