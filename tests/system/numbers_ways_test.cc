/*
 * numbers_ways_test.cc - the promises of docs/numerics.md, by every way that a reduction can go: each
 * algorithm with each of its protocols, forced by NCCL_ALGO and NCCL_PROTO.
 */
#include "exact_values.h"
#include "forked_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

/* An algorithm as NCCL_ALGO has it, the protocols that it has, how often the default mode rounds: at every
 * rank, or once, and whether it folds the ranks in the order of deterministic mode. A new algorithm is a row
 * here. */
struct Algorithm {
    const char *name;
    std::vector<const char *> protocols;
    bool rounds_once, is_ordered;
};

static const Algorithm kAlgorithms[] = {
    {"Ring", {"Simple", "LL", "LL128"}, false, true},
    {"Direct", {"Simple", "LL", "LL128"}, true, true},
    {"AllReduce:Tree", {"Simple", "LL", "LL128"}, false, false}, /* which is all that trees do */
};

static const ncclDataType_t kNarrow[] = {ncclFloat16, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};

static bool is_narrow(ncclDataType_t type)
{
    return std::find(std::begin(kNarrow), std::end(kNarrow), type) != std::end(kNarrow);
}

/* Run body for each algorithm and protocol, with these variables and those that force the two. */
static void
for_each_way(const std::vector<std::string> &environment,
             const std::function<void(const Algorithm &, const JobOptions &, const std::string &)> &body)
{
    for (const Algorithm &algorithm : kAlgorithms)
        for (const char *protocol : algorithm.protocols) {
            JobOptions options;
            options.environment = environment;
            options.environment.push_back(std::string("NCCL_ALGO=") + algorithm.name);
            options.environment.push_back(std::string("NCCL_PROTO=") + protocol);
            body(algorithm, options, std::string(algorithm.name) + " " + protocol);
        }
}

static void format_of(ncclDataType_t type, int &exponent_out, int &mantissa_out)
{
    exponent_out = type == ncclFloat64                           ? 11
                   : type == ncclFloat32 || type == ncclBfloat16 ? 8
                   : type == ncclFloat8e4m3                      ? 4
                                                                 : 5;
    mantissa_out = (int)type_bytes(type) * 8 - 1 - exponent_out;
}

/* Elements of random signs and mantissas, whose exponents are those of values from 2^low to 2^high; all
 * subnormal ones where that is below them. */
static std::vector<unsigned char> random_elements(ncclDataType_t type, size_t count, int rank, int low,
                                                  int high)
{
    std::mt19937_64 random(4000u + (unsigned)rank);
    size_t bytes = type_bytes(type);
    std::vector<unsigned char> elements(count * bytes);
    int exponent_bits, mantissa_bits;

    format_of(type, exponent_bits, mantissa_bits);
    for (size_t i = 0; i < count; i++) {
        int exponent = low + (int)(random() % (unsigned)(high - low + 1)) + (1 << (exponent_bits - 1)) - 1;
        uint64_t bits =
            (uint64_t)std::max(exponent, 0) << mantissa_bits | (random() & ((1ull << mantissa_bits) - 1));
        bits |= (random() & 1) << (bytes * 8 - 1);
        memcpy(&elements[i * bytes], &bits, bytes);
    }
    return elements;
}

/* What this rank has of the sums: [first, first + count), by one operation. */
struct Sums {
    const char *operation;
    size_t first, count;
    std::vector<unsigned char> bytes;
};

/* All reductions of the same inputs; count is a multiple of the ranks. */
static std::vector<Sums> reduce(Context &context, ncclDataType_t type, const std::vector<unsigned char> &in)
{
    LocalRank &me = context.local[0];
    size_t bytes = type_bytes(type), count = in.size() / bytes, block = count / (size_t)context.ranks;
    int root = context.ranks / 3;
    std::vector<Sums> all = {
        {"all-reduce", 0, count, {}},
        {"reduce", 0, me.rank == root ? count : 0, {}},
        {"reduce-scatter", block * (size_t)me.rank, block, {}},
    };
    for (Sums &sums : all)
        sums.bytes.resize(std::max<size_t>(sums.count, 1) * bytes);
    context.ok(ncclAllReduce(in.data(), all[0].bytes.data(), count, type, ncclSum, me.comm, me.stream),
               "all-reduce");
    context.ok(ncclReduce(in.data(), all[1].bytes.data(), count, type, ncclSum, root, me.comm, me.stream),
               "reduce");
    context.ok(ncclReduceScatter(in.data(), all[2].bytes.data(), block, type, ncclSum, me.comm, me.stream),
               "reduce-scatter");
    context.synchronize();
    return all;
}

/* How far sums may be from exact ones; see docs/numerics.md. */
struct Bound {
    bool rounds_once;
    int ranks;

    double of(ncclDataType_t type, double found, double exact, double sizes) const
    {
        if (!rounds_once)
            return (ranks - 1) * float_spacing(type, sizes) / 2;
        double rounding = std::fmax(float_spacing(type, found), float_spacing(type, exact)) / 2;
        return rounding + ranks * std::ldexp(sizes, -24);
    }
};

/* Check one type within one window; returns how many sums are not within the bound of sums rounded once. */
static unsigned check_window(Context &context, ncclDataType_t type, int low, int high, bool rounds_once)
{
    const size_t count = 16 * 211;
    const double most = type == ncclFloat8e4m3 ? 448 : type == ncclFloat8e5m2 ? 57344 : INFINITY;
    size_t bytes = type_bytes(type);
    std::vector<std::vector<unsigned char>> inputs;
    unsigned coarse = 0;

    for (int rank = 0; rank < context.ranks; rank++)
        inputs.push_back(random_elements(type, count, rank, low, high));
    for (const Sums &sums : reduce(context, type, inputs[(size_t)context.local[0].rank]))
        for (size_t i = 0; i < sums.count; i++) {
            double exact = 0, sizes = 0, found = decode_float(&sums.bytes[i * bytes], type);
            for (auto &input : inputs) {
                double x = decode_float(&input[(sums.first + i) * bytes], type);
                exact += x;
                sizes += std::fabs(x);
            }
            if (sizes >= most)
                continue; /* may saturate on the way */
            double error = std::fabs(found - exact);
            double once = Bound{true, context.ranks}.of(type, found, exact, sizes);
            coarse += !(error <= once);
            if (!(error <=
                  (rounds_once ? once : Bound{false, context.ranks}.of(type, found, exact, sizes)))) {
                context.fail("%s, %s, element %zu: found %g, exact %g, sizes %g", sums.operation,
                             type_name(type), i, found, exact, sizes);
                return coarse;
            }
        }
    return coarse;
}

/* Sums of 16 ranks are as near to the exact ones as the page says, in both modes; and where the default mode
 * rounds at every rank it is seen to be coarser, so that the precise bound is one that can be missed. */
TEST(NumbersWays, SumsOfSixteenRanksAreWithinTheirBounds)
{
    const int windows[][2] = {{-1000, -1000}, {-2, 2}, {-6, 3}};

    for (int precise = 0; precise <= 1; precise++)
        for_each_way({"RONDO_CPU_DEVICES=16", "RONDO_PRECISE=" + std::to_string(precise)},
                     [&](const Algorithm &algorithm, JobOptions options, const std::string &way) {
                         bool rounds_once = precise || algorithm.rounds_once;
                         uint64_t words[64] = {0};
                         options.words_out = words;
                         std::string verdict = run_job(
                             16, Layout{1, false},
                             [&](Context &context) {
                                 for (size_t t = 0; t < std::size(kNarrow); t++)
                                     for (auto &window : windows) {
                                         unsigned coarse = check_window(context, kNarrow[t], window[0],
                                                                        window[1], rounds_once);
                                         __atomic_fetch_add(&context.shared[t], coarse, __ATOMIC_RELAXED);
                                     }
                             },
                             options);
                         EXPECT_EQ(verdict, "") << way << ", RONDO_PRECISE=" << precise;
                         for (size_t t = 0; t < std::size(kNarrow); t++)
                             EXPECT_EQ(words[t] > 0, !rounds_once) << way << ", " << type_name(kNarrow[t])
                                                                   << ": " << words[t] << " sums are coarse";
                     });
}

static uint64_t hash_bytes(const std::vector<unsigned char> &data)
{
    uint64_t hash = 14695981039346656037ull;
    for (unsigned char byte : data)
        hash = (hash ^ byte) * 1099511628211ull;
    return hash;
}

/* Sum in calls that end at cuts. */
static std::vector<unsigned char> reduce_in_pieces(Context &context, ncclDataType_t type,
                                                   const std::vector<unsigned char> &in,
                                                   const std::vector<size_t> &cuts)
{
    LocalRank &me = context.local[0];
    std::vector<unsigned char> out(in.size());
    size_t bytes = type_bytes(type), start = 0;

    for (size_t cut : cuts) {
        context.ok(ncclAllReduce(&in[start * bytes], &out[start * bytes], cut - start, type, ncclSum, me.comm,
                                 me.stream),
                   "piece");
        start = cut;
    }
    context.synchronize();
    return out;
}

static const ncclDataType_t kFloats[] = {ncclFloat16,    ncclBfloat16, ncclFloat8e4m3,
                                         ncclFloat8e5m2, ncclFloat32,  ncclFloat64};
static const std::vector<std::vector<size_t>> kSplits = {
    {30012}, {7919, 30012}, {1, 2, 3, 10007, 30012}, {13, 4099, 16411, 20011, 30012}};

/* One rank of a deterministic job: a hash of each type's sums goes to shared[its place]. */
static void sum_deterministically(Context &context, const std::function<bool(ncclDataType_t)> &is_refused)
{
    LocalRank &me = context.local[0];
    const size_t count = kSplits[0].back();

    for (size_t t = 0; t < std::size(kFloats); t++) {
        ncclDataType_t type = kFloats[t];
        std::vector<unsigned char> in = random_elements(type, count, me.rank, -6, 3), first;
        if (is_refused(type)) {
            first.resize(in.size());
            ncclResult_t result =
                ncclAllReduce(in.data(), first.data(), count, type, ncclSum, me.comm, me.stream);
            if (result != ncclInvalidUsage)
                context.fail("%s: not refused but %d", type_name(type), result);
            continue;
        }
        for (const std::vector<size_t> &cuts : kSplits) {
            std::vector<unsigned char> sums = reduce_in_pieces(context, type, in, cuts);
            if (first.empty())
                first = sums;
            if (sums != first)
                context.fail("%s: %zu pieces give other bits", type_name(type), cuts.size());
        }
        for (const Sums &sums : reduce(context, type, in))
            if (memcmp(sums.bytes.data(), &first[sums.first * type_bytes(type)],
                       sums.count * type_bytes(type)) != 0)
                context.fail("%s: %s gives other bits", type_name(type), sums.operation);
        context.shared[t * 8 + (size_t)me.rank] = hash_bytes(first);
    }
}

/* In deterministic mode one hash comes out of every run: however the call is cut, in whatever reduction, over
 * however many channels, by whatever way, in whatever processes. A way that would come to other sums is
 * refused: trees, and narrow types whose partial sums some ways round and others do not. */
TEST(NumbersWays, DeterministicSumsHaveOneHash)
{
    const int ranks = 4;

    for (int precise = 0; precise <= 1; precise++) {
        uint64_t expected[std::size(kFloats)] = {0};
        unsigned runs = 0;
        for (Layout layout : {Layout{1, false}, Layout{2, false}, Layout{2, false, true}})
            for (int channels = 1; channels <= 3; channels++)
                for_each_way({"RONDO_DETERMINISTIC=1", "RONDO_PRECISE=" + std::to_string(precise),
                              "NCCL_MIN_CTAS=" + std::to_string(channels),
                              "NCCL_MAX_CTAS=" + std::to_string(channels)},
                             [&](const Algorithm &algorithm, JobOptions options, const std::string &way) {
                                 auto is_refused = [&](ncclDataType_t type) {
                                     return !algorithm.is_ordered ||
                                            (algorithm.rounds_once && !precise && is_narrow(type));
                                 };
                                 uint64_t words[64] = {0};
                                 options.words_out = words;
                                 std::string verdict = run_job(
                                     ranks, layout,
                                     [&](Context &context) { sum_deterministically(context, is_refused); },
                                     options);
                                 ASSERT_EQ(verdict, "")
                                     << way << ", " << layout.name() << ", " << channels << " channels";
                                 for (size_t t = 0; t < std::size(kFloats); t++)
                                     for (size_t rank = 0; rank < ranks && !is_refused(kFloats[t]); rank++) {
                                         expected[t] = expected[t] ? expected[t] : words[t * 8 + rank];
                                         EXPECT_EQ(words[t * 8 + rank], expected[t])
                                             << type_name(kFloats[t]) << ", rank " << rank << ": " << way
                                             << ", " << layout.name() << ", " << channels << " channels";
                                     }
                                 runs += algorithm.is_ordered ? (unsigned)kSplits.size() : 0;
                             });
        EXPECT_GE(runs, 100u);
    }
}
