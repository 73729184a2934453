#include "covering_rows.h"

#include "seeded_random.h"

#include <algorithm>

namespace emulator
{

namespace
{

// The tuples of some columns, each a bit.
struct Tuples {
    std::vector<unsigned> columns;
    std::vector<bool> covered;
    size_t missing;
};

std::vector<Tuples> AllTuples(const std::vector<unsigned> &sizes, unsigned strength)
{
    std::vector<Tuples> all;
    unsigned n = static_cast<unsigned>(sizes.size());

    for (unsigned mask = 0; mask < 1u << n; mask++) {
        Tuples tuples;
        size_t count = 1;
        for (unsigned c = 0; c < n; c++)
            if (mask >> c & 1) {
                tuples.columns.push_back(c);
                count *= sizes[c];
            }
        if (tuples.columns.size() != strength)
            continue;
        tuples.covered.resize(count);
        tuples.missing = count;
        all.push_back(tuples);
    }
    return all;
}

size_t IndexOf(const Tuples &tuples, const Row &row, const std::vector<unsigned> &sizes)
{
    size_t index = 0;

    for (unsigned column : tuples.columns)
        index = index * sizes[column] + row[column];
    return index;
}

void Cover(std::vector<Tuples> &all, const Row &row, const std::vector<unsigned> &sizes)
{
    for (Tuples &tuples : all) {
        size_t index = IndexOf(tuples, row, sizes);
        tuples.missing -= !tuples.covered[index];
        tuples.covered[index] = true;
    }
}

// Tuples that a row would add, of those whose columns are set.
size_t Gain(const std::vector<Tuples> &all, const Row &row, const std::vector<bool> &is_set, unsigned column,
            const std::vector<unsigned> &sizes)
{
    size_t gain = 0;

    for (const Tuples &tuples : all) {
        bool counts = false;
        for (unsigned c : tuples.columns)
            counts = counts || c == column;
        for (unsigned c : tuples.columns)
            counts = counts && is_set[c];
        gain += counts && !tuples.covered[IndexOf(tuples, row, sizes)];
    }
    return gain;
}

// A row with one missing tuple, and as many more as going through the columns once finds.
Row NextRow(const std::vector<Tuples> &all, const std::vector<unsigned> &sizes, Random &random)
{
    Row row(sizes.size());
    std::vector<bool> is_set(sizes.size());
    auto most = std::max_element(all.begin(), all.end(),
                                 [](const Tuples &a, const Tuples &b) { return a.missing < b.missing; });
    size_t index = static_cast<size_t>(std::find(most->covered.begin(), most->covered.end(), false) -
                                       most->covered.begin());

    for (size_t i = most->columns.size(); i-- > 0;) {
        unsigned column = most->columns[i];
        row[column] = static_cast<unsigned>(index % sizes[column]);
        index /= sizes[column];
        is_set[column] = true;
    }
    for (unsigned column = 0; column < sizes.size(); column++) {
        if (is_set[column])
            continue;
        is_set[column] = true;
        unsigned first = random.Below(sizes[column]), best = first;
        size_t best_gain = 0;
        for (unsigned i = 0; i < sizes[column]; i++) {
            row[column] = (first + i) % sizes[column];
            size_t gain = Gain(all, row, is_set, column, sizes);
            if (gain > best_gain) {
                best = row[column];
                best_gain = gain;
            }
        }
        row[column] = best;
    }
    return row;
}

} // namespace

std::vector<Row> CoveringRows(const std::vector<unsigned> &sizes, unsigned strength)
{
    std::vector<Tuples> all = AllTuples(sizes, strength);
    std::vector<Row> rows;
    Random random(strength);

    while (std::any_of(all.begin(), all.end(), [](const Tuples &t) { return t.missing > 0; })) {
        rows.push_back(NextRow(all, sizes, random));
        Cover(all, rows.back(), sizes);
    }
    return rows;
}

Coverage CoverageOf(const std::vector<Row> &rows, const std::vector<unsigned> &sizes, unsigned strength)
{
    std::vector<Tuples> all = AllTuples(sizes, strength);
    Coverage coverage{0, 0};

    for (const Row &row : rows)
        Cover(all, row, sizes);
    for (const Tuples &tuples : all) {
        coverage.all += tuples.covered.size();
        coverage.covered += tuples.covered.size() - tuples.missing;
    }
    return coverage;
}

} // namespace emulator
