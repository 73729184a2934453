/* covering.cc - see covering.h. */
#include "covering.h"

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

using Pair = std::tuple<int, int, int, int>; /* factor, level, later factor, level */

static int newly_covered(const Case &chosen, int factor, int level, const std::set<Pair> &open)
{
    int gain = 0;
    for (int other = 0; other < (int)chosen.size(); other++) {
        if (chosen[other] < 0 || other == factor)
            continue;
        Pair pair = other < factor ? Pair(other, chosen[other], factor, level)
                                   : Pair(factor, level, other, chosen[other]);
        gain += (int)open.count(pair);
    }
    return gain;
}

/* Complete a case greedily, factors in a shuffled order; false when a factor has no valid level left. */
static bool complete(Case &chosen, const std::vector<Factor> &factors,
                     const std::function<bool(const Case &)> &valid, const std::set<Pair> &open,
                     std::mt19937 &random)
{
    std::vector<int> order;
    for (int factor = 0; factor < (int)factors.size(); factor++)
        if (chosen[factor] < 0)
            order.push_back(factor);
    std::shuffle(order.begin(), order.end(), random);
    for (int factor : order) {
        int best = -1, best_gain = -1;
        int start = (int)(random() % (unsigned)factors[factor].levels);
        for (int i = 0; i < factors[factor].levels; i++) {
            int level = (start + i) % factors[factor].levels;
            Case trial = chosen;
            trial[factor] = level;
            int gain = newly_covered(chosen, factor, level, open);
            if (gain > best_gain && valid(trial)) {
                best = level;
                best_gain = gain;
            }
        }
        if (best < 0)
            return false;
        chosen[factor] = best;
    }
    return true;
}

static void cover(const Case &chosen, std::set<Pair> &open)
{
    for (int a = 0; a < (int)chosen.size(); a++)
        for (int b = a + 1; b < (int)chosen.size(); b++)
            open.erase(Pair(a, chosen[a], b, chosen[b]));
}

Covering make_covering(const std::vector<Factor> &factors, const std::function<bool(const Case &)> &valid)
{
    Covering result;
    std::mt19937 random(20260101);
    std::set<Pair> open;
    for (int a = 0; a < (int)factors.size(); a++)
        for (int b = a + 1; b < (int)factors.size(); b++)
            for (int i = 0; i < factors[a].levels; i++)
                for (int j = 0; j < factors[b].levels; j++) {
                    Case trial(factors.size(), -1);
                    trial[a] = i;
                    trial[b] = j;
                    if (valid(trial))
                        open.insert(Pair(a, i, b, j));
                    else
                        result.pairs_invalid++;
                }
    result.pairs_possible = open.size();
    while (!open.empty()) {
        Pair first = *open.begin();
        Case best;
        size_t best_left = open.size() + 1;
        for (int attempt = 0; attempt < 8; attempt++) {
            Case chosen(factors.size(), -1);
            chosen[std::get<0>(first)] = std::get<1>(first);
            chosen[std::get<2>(first)] = std::get<3>(first);
            if (!complete(chosen, factors, valid, open, random))
                continue;
            std::set<Pair> left = open;
            cover(chosen, left);
            if (left.size() < best_left) {
                best_left = left.size();
                best = chosen;
            }
        }
        if (best.empty()) { /* no completion found: not possible, and said so by the count */
            open.erase(first);
            result.pairs_possible--;
            result.pairs_invalid++;
            continue;
        }
        cover(best, open);
        result.cases.push_back(best);
    }
    result.pairs_covered = count_pairs(result.cases);
    return result;
}

size_t count_pairs(const std::vector<Case> &cases)
{
    std::set<Pair> seen;
    for (const Case &one : cases)
        for (int a = 0; a < (int)one.size(); a++)
            for (int b = a + 1; b < (int)one.size(); b++)
                seen.insert(Pair(a, one[a], b, one[b]));
    return seen.size();
}
