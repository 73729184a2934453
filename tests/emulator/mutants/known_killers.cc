#include "known_killers.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace emulator
{

namespace
{

const char *const kMark = "<!-- mutants -->\n"; // as scripts/mutate has it
const char *const kTableHead = "| site | file | function | what | change | killed by | seed |\n"
                               "|---|---|---|---|---|---|---|\n";

// Pipes separate the columns of a table.
std::string Cell(const std::string &text)
{
    std::string out;

    for (char c : text)
        out += c == '|' ? std::string("\\|") : std::string(1, c);
    return out;
}

std::vector<std::string> Cells(const std::string &line)
{
    std::vector<std::string> cells;
    size_t begin = 2;

    for (size_t end; (end = line.find(" |", begin)) != std::string::npos; begin = end + 3) {
        cells.push_back(line.substr(begin, end - begin));
        if (end + 3 > line.size())
            break;
    }
    return cells;
}

// Of a row, the columns that name the mutant.
std::string Head(const Mutant &mutant)
{
    return "| " + std::to_string(mutant.site) + " | " + mutant.file + " | " + mutant.function + " | `" +
           Cell(mutant.text) + "` | " + EffectName(mutant.effect) + " | ";
}

std::string Equivalence(const char *why)
{
    return std::string("equivalent: ") + why;
}

// Whether a row of that mutant says that one of the scenarios has noticed it, or why nobody can.
bool IsAsExpected(const std::string &row, const char *why, const std::set<std::string> &scenarios)
{
    std::vector<std::string> cells = Cells(row);
    if (cells.size() != 7)
        return false;
    const std::string &end = cells[5], &seed = cells[6];
    if (why)
        return end == Cell(Equivalence(why)) && seed.empty();
    size_t where = end.find(" in ");
    if (where == std::string::npos || seed.empty())
        return false;
    std::string name = end.substr(where + 4);
    return (name == "-" || scenarios.count(name)) &&
           std::all_of(seed.begin(), seed.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::string Key(const std::string &file, const std::string &function, const std::string &text,
                const std::string &effect)
{
    return file + '\t' + function + '\t' + text + '\t' + effect;
}

} // namespace

const char *EffectName(Effect effect)
{
    static const char *const names[] = {"", "removed", "relaxed", "device scope", "one less", "one more"};
    static_assert(std::size(names) == static_cast<size_t>(Effect::NUM), "a name for each effect");
    return names[static_cast<int>(effect)];
}

void WriteTableHead(FILE *table)
{
    fprintf(table, "%s", kTableHead);
}

void WriteRow(FILE *table, const Mutant &mutant, const Verdict &verdict, const char *why)
{
    std::string end = verdict.is_killed ? verdict.how + " in " + verdict.where
                      : why             ? Equivalence(why)
                                        : "SURVIVES";

    fprintf(table, "%s%s | %s |\n", Head(mutant).c_str(), Cell(end).c_str(),
            verdict.is_killed ? std::to_string(verdict.seed).c_str() : "");
}

std::string StaleRow(const std::string &document, const std::vector<Mutant> &mutants,
                     const char *(*why)(const Mutant &), const std::set<std::string> &scenarios)
{
    std::string begin = std::string("\n") + kMark + kTableHead, row;
    size_t at = document.find(begin);

    if (at == std::string::npos)
        return "no table";
    std::istringstream table(document.substr(at + begin.size()));
    for (const Mutant &mutant : mutants) {
        std::string head = Head(mutant);
        if (!std::getline(table, row))
            return "no row: " + head;
        if (row.compare(0, head.size(), head) != 0)
            return "this row: " + row + "\nshould be: " + head;
        if (!IsAsExpected(row, why(mutant), scenarios))
            return "this row: " + row +
                   "\nshould name a scenario and a seed, or why nobody can notice the mutant" +
                   (why(mutant) ? ": " + Equivalence(why(mutant)) : "");
    }
    return std::getline(table, row) ? "no such mutant: " + row : "";
}

KnownKillers::KnownKillers(const char *path)
{
    std::ifstream in(path);
    std::string line;

    while (std::getline(in, line)) {
        std::vector<std::string> cells =
            line.compare(0, 2, "| ") == 0 ? Cells(line) : std::vector<std::string>();
        size_t where = cells.size() == 7 ? cells[5].find(" in ") : std::string::npos;
        if (where == std::string::npos || cells[6].empty() || cells[3].size() < 2)
            continue;
        std::string text = cells[3].substr(1, cells[3].size() - 2);
        killers_[Key(cells[1], cells[2], text, cells[4])] = {
            true, cells[5].substr(0, where), cells[5].substr(where + 4),
            static_cast<unsigned>(std::atoi(cells[6].c_str()))};
    }
}

Verdict KnownKillers::Of(const Mutant &mutant) const
{
    auto found =
        killers_.find(Key(mutant.file, mutant.function, Cell(mutant.text), EffectName(mutant.effect)));

    return found == killers_.end() ? Verdict{} : found->second;
}

} // namespace emulator
