#include "known_killers.h"

#include <fstream>
#include <vector>

namespace emulator
{

namespace
{

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

std::string Key(const std::string &file, const std::string &function, const std::string &text,
                const std::string &effect)
{
    return file + '\t' + function + '\t' + text + '\t' + effect;
}

} // namespace

const char *EffectName(Effect effect)
{
    static const char *const names[] = {"", "removed", "relaxed", "device scope", "one less", "one more"};
    return names[static_cast<int>(effect)];
}

void WriteTableHead(FILE *table)
{
    fprintf(table, "| site | file | function | what | change | killed by | seed |\n"
                   "|---|---|---|---|---|---|---|\n");
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
