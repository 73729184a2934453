// The table of mutants in docs/verification.md is of the mutants that the kernels have today.
#include "known_killers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

namespace emulator
{
namespace
{

using Names = std::set<std::string>;

Names ScenarioNames()
{
    Names names;

    for (const auto &scenarios : {TroubleScenarios(), DataScenarios()})
        for (const Scenario &scenario : scenarios)
            names.insert(scenario.name);
    return names;
}

TEST(MutantsTable, IsOfTodaysKernels)
{
    std::ifstream in(RONDO_MUTANTS_TABLE);
    std::stringstream document;

    document << in.rdbuf();
    ASSERT_FALSE(AllMutants().empty());
    EXPECT_EQ(StaleRow(document.str(), AllMutants(), WhyEquivalent, ScenarioNames()), "")
        << "the kernels, their mutants or scenarios have changed since " << RONDO_MUTANTS_TABLE
        << " was written: run scripts/mutate";
}

// Lambdas have none of their own.
TEST(Mutants, AreInFunctionsWithNames)
{
    for (const Mutant &mutant : AllMutants()) {
        std::string name = mutant.function;
        EXPECT_TRUE(!name.empty() && std::all_of(name.begin(), name.end(),
                                                 [](unsigned char c) { return std::isalnum(c) || c == '_'; }))
            << "site " << mutant.site << ", " << mutant.file << ": " << name;
    }
}

// Functions of one name are in several files.
TEST(Mutants, AreEquivalentInTheirOwnFile)
{
    for (const Mutant &mutant : AllMutants())
        if (const char *why = WhyEquivalent(mutant)) {
            Mutant other = mutant;
            other.file = "another.cuh";
            EXPECT_EQ(WhyEquivalent(other), nullptr) << why;
        }
}

const std::vector<Mutant> kMutants = {
    {1, Effect::REMOVED, "a.cuh", "first", "agree(a || b)"},
    {1, Effect::RELAXED, "a.cuh", "first", "agree(a || b)"},
    {2, Effect::LESS, "b.cuh", "second", "a count in c(1)"},
};
const Names kNames = {"scenario, LL"};

const char *WhyLess(const Mutant &mutant)
{
    return mutant.effect == Effect::LESS ? "slower | never wrong" : nullptr;
}

const char *WhyNone(const Mutant &)
{
    return nullptr;
}

const char *WhyOther(const Mutant &mutant)
{
    return WhyLess(mutant) ? "another reason" : nullptr;
}

const char *WhyMore(const Mutant &mutant)
{
    return mutant.effect == Effect::LESS      ? WhyLess(mutant)
           : mutant.effect == Effect::RELAXED ? "new"
                                              : nullptr;
}

// As scripts/mutate writes it.
std::string Written(const std::vector<Mutant> &mutants, const Verdict &verdict)
{
    char *text = nullptr;
    size_t bytes = 0;
    FILE *table = open_memstream(&text, &bytes);

    WriteTableHead(table);
    for (const Mutant &mutant : mutants)
        WriteRow(table, mutant, WhyLess(mutant) ? Verdict{} : verdict, WhyLess(mutant));
    fclose(table);
    std::string document = "# Title\n\n| a | table |\n\n<!-- mutants -->\n" + std::string(text, bytes);
    free(text);
    return document;
}

const Verdict kVerdict = {true, "race", "scenario, LL", 3};

TEST(MutantsTable, AsWrittenIsCurrent)
{
    EXPECT_EQ(StaleRow(Written(kMutants, kVerdict), kMutants, WhyLess, kNames), "");
    EXPECT_EQ(StaleRow(Written(kMutants, {true, "crash", "-", 0}), kMutants, WhyLess, kNames), "");
}

TEST(MutantsTable, EveryChangeOfTheMutantsIsNoticed)
{
    using Change = std::function<void(std::vector<Mutant> &)>;
    const std::pair<const char *, Change> changes[] = {
        {"first removed", [](auto &m) { m.erase(m.begin()); }},
        {"last removed", [](auto &m) { m.pop_back(); }},
        {"one more",
         [](auto &m) {
             m.push_back({3, Effect::MORE, "b.cuh", "second", "d(1)"});
         }},
        {"one before",
         [](auto &m) {
             m.insert(m.begin(), {1, Effect::MORE, "a.cuh", "first", "d(1)"});
         }},
        {"order", [](auto &m) { std::swap(m[0], m[1]); }},
        {"site", [](auto &m) { m[2].site = 3; }},
        {"effect", [](auto &m) { m[1].effect = Effect::NARROWED; }},
        {"file", [](auto &m) { m[1].file = "c.cuh"; }},
        {"function", [](auto &m) { m[1].function = "firs"; }},
        {"text", [](auto &m) { m[1].text = "agree(a)"; }},
        {"all gone", [](auto &m) { m.clear(); }},
    };

    for (const auto &[name, change] : changes) {
        std::vector<Mutant> mutants = kMutants;
        change(mutants);
        EXPECT_NE(StaleRow(Written(kMutants, kVerdict), mutants, WhyLess, kNames), "") << name;
    }
}

TEST(MutantsTable, EveryChangeOfWhatIsExpectedIsNoticed)
{
    std::string written = Written(kMutants, kVerdict);

    for (auto why : {WhyNone, WhyOther, WhyMore})
        EXPECT_NE(StaleRow(written, kMutants, why, kNames), "");
    EXPECT_NE(StaleRow(written, kMutants, WhyLess, {"another scenario"}), "");
    EXPECT_NE(StaleRow(Written(kMutants, {}), kMutants, WhyLess, kNames), "") << "a mutant that survives";
    EXPECT_NE(StaleRow(written + "more\n", kMutants, WhyLess, kNames), "");
    EXPECT_NE(StaleRow("", kMutants, WhyLess, kNames), "");
    size_t seed = written.rfind("LL | 3 |");
    EXPECT_NE(StaleRow(written.replace(seed, 8, "LL |  |"), kMutants, WhyLess, kNames), "");
}

} // namespace
} // namespace emulator
