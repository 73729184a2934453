// covering_rows.h - few rows in which every choice of each two (or three) columns meets every other.
#ifndef RONDO_TESTS_EMULATOR_COVERING_ROWS_H
#define RONDO_TESTS_EMULATOR_COVERING_ROWS_H

#include <cstddef>
#include <vector>

namespace emulator
{

using Row = std::vector<unsigned>;

// Rows over columns of these many values, made greedily and always alike, that cover all tuples of
// `strength` columns.
std::vector<Row> CoveringRows(const std::vector<unsigned> &sizes, unsigned strength);

// How many tuples of `strength` columns there are, and how many of them the rows have.
struct Coverage {
    size_t covered, all;
};
Coverage CoverageOf(const std::vector<Row> &rows, const std::vector<unsigned> &sizes, unsigned strength);

} // namespace emulator

#endif
