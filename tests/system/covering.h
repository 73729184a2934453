/*
 * covering.h - pairwise covering arrays: few cases in which every pair of levels of any two factors occurs.
 *
 * Greedy: each new case starts from a pair not covered yet and takes, factor by factor, the level that covers
 * most of the others. Deterministic. A constraint removes combinations that make no sense; pairs that no
 * valid case can contain are reported apart, so that the coverage printed is of what is possible.
 */
#ifndef RONDO_TESTS_COVERING_H
#define RONDO_TESTS_COVERING_H

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

struct Factor {
    std::string name;
    int levels;
};

using Case = std::vector<int>; /* a level a factor; -1: not chosen yet */

struct Covering {
    std::vector<Case> cases;
    size_t pairs_possible = 0; /* that some valid case can contain, as far as the search found */
    size_t pairs_covered = 0;
    size_t pairs_invalid = 0; /* that the constraint forbids */
};

/* valid judges a partial case: it must accept whenever some completion may be valid. */
Covering make_covering(const std::vector<Factor> &factors, const std::function<bool(const Case &)> &valid);

/* Distinct pairs of levels in the cases: count those that really ran. */
size_t count_pairs(const std::vector<Case> &cases);

#endif
