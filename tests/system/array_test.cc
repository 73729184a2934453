/*
 * array_test.cc - a pairwise covering array over everything a collective call can vary in.
 *
 *   array_test SLOT_BYTES     slots of this size (NCCL_BUFFSIZE is 8 times it);
 *                             counts lie around its multiples
 *
 * Cases that share ranks, layout, channels and way run in one job. The coverage printed is counted from the
 * cases that ran and passed.
 */
#include "api_call.h"
#include "covering.h"
#include "exact_values.h"
#include "forked_job.h"

#include <cstdio>
#include <cstdlib>
#include <map>

enum FactorIndex {
    OPERATION,
    TYPE,
    REDOP,
    PLACE,
    COUNT,
    PLACEMENT,
    RANKS,
    LAYOUT,
    ROOT,
    CHANNELS,
    MEMORY,
    WAY
};

static const Layout layouts[] = {{1, false},       {1, true},  {2, false}, {2, true},
                                 {3, false, true}, {4, false}, {4, true},  {2, false, true}};
/* What the library chooses, and what it can be told. */
struct Way {
    const char *algorithm, *protocol;
};
static const Way ways[] = {{"NCCL_ALGO=", "NCCL_PROTO="},
                           {"NCCL_ALGO=Ring", "NCCL_PROTO=Simple"},
                           {"NCCL_ALGO=Ring", "NCCL_PROTO=LL"},
                           {"NCCL_ALGO=Ring", "NCCL_PROTO=LL128"},
                           {"NCCL_ALGO=Direct", "NCCL_PROTO=Simple"},
                           {"NCCL_ALGO=Direct", "NCCL_PROTO=LL"},
                           {"NCCL_ALGO=Direct", "NCCL_PROTO=LL128"},
                           {"NCCL_ALGO=AllReduce:Tree;Ring", "NCCL_PROTO="}};
static const int kCounts = 16, kEndPlacement = 16;

static std::vector<Factor> factors()
{
    return {{"operation", NUM_OPERATIONS},
            {"type", ncclNumTypes},
            {"reduction", 5},
            {"place", 2},
            {"count", kCounts},
            {"placement", kEndPlacement + 1},
            {"ranks", 8},
            {"layout", (int)(sizeof(layouts) / sizeof(layouts[0]))},
            {"root", 3},
            {"channels", 3},
            {"memory", 3},
            {"way", (int)(sizeof(ways) / sizeof(ways[0]))}};
}

static bool is_valid(const Case &one)
{
    if (one[OPERATION] >= 0) {
        Operation operation = (Operation)one[OPERATION];
        if (one[REDOP] > 0 && !operation_reduces(operation))
            return false;
        if (one[PLACE] == 1 && !operation_has_in_place(operation))
            return false;
        if (one[PLACE] == 0 && operation == BCAST)
            return false;
        if (one[ROOT] > 0 && !operation_has_root(operation))
            return false;
    }
    if (one[LAYOUT] >= 0 && one[RANKS] >= 0 && layouts[one[LAYOUT]].processes > one[RANKS] + 1)
        return false;
    return true;
}

static size_t count_of(int level, size_t chunk, int ranks)
{
    size_t n = (size_t)ranks;
    const size_t counts[kCounts] = {0,
                                    1,
                                    2,
                                    3,
                                    7,
                                    17,
                                    64,
                                    255,
                                    1001,
                                    chunk - 1,
                                    chunk,
                                    chunk + 1,
                                    n * chunk,
                                    n * chunk + 1,
                                    8 * n * chunk - 1,
                                    9 * n * chunk + 3};
    return counts[level];
}

static Call make_call(const Case &one, size_t slot_bytes, uint64_t seed)
{
    Call call;
    int ranks = one[RANKS] + 1;
    const int roots[] = {0, ranks - 1, ranks / 2};
    call.operation = (Operation)one[OPERATION];
    call.type = (ncclDataType_t)one[TYPE];
    call.redop = (ncclRedOp_t)one[REDOP];
    call.in_place = one[PLACE] == 1;
    call.count = count_of(one[COUNT], slot_bytes / type_bytes(call.type), ranks);
    call.root = roots[one[ROOT]];
    call.side = one[PLACEMENT] == kEndPlacement ? Guarded::END : Guarded::START;
    call.offset = call.side == Guarded::END ? 0 : (size_t)one[PLACEMENT];
    call.device_memory = one[MEMORY];
    call.seed = seed;
    return call;
}

/* Run one case on the ranks of this thread. */
static void run_case(Context &context, const Call &call)
{
    std::vector<Buffers> buffers;
    for (LocalRank &local : context.local)
        buffers.push_back(make_buffers(call, local.rank, context.ranks));
    bool is_up = context.ok(ncclGroupStart(), "ncclGroupStart");
    for (size_t i = 0; i < context.local.size(); i++)
        is_up &= context.ok(issue(call, context.local[i], context.ranks, buffers[i]), describe(call).c_str());
    is_up &= context.ok(ncclGroupEnd(), describe(call).c_str());
    context.synchronize();
    for (size_t i = 0; is_up && i < context.local.size(); i++) {
        std::string wrong = verify(call, context.local[i].rank, context.ranks, buffers[i]);
        if (!wrong.empty())
            context.fail("rank %d of %d: %s: %s", context.local[i].rank, context.ranks,
                         describe(call).c_str(), wrong.c_str());
    }
}

int main(int argc, char **argv)
{
    size_t slot_bytes = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1024;
    std::vector<Factor> all = factors();
    Covering covering = make_covering(all, is_valid);
    std::map<std::vector<int>, std::vector<size_t>> jobs; /* ranks, layout, channels, way -> cases */
    for (size_t i = 0; i < covering.cases.size(); i++) {
        const Case &one = covering.cases[i];
        jobs[{one[RANKS], one[LAYOUT], one[CHANNELS], one[WAY]}].push_back(i);
    }
    std::vector<Case> passed;
    int failed = 0;
    for (const auto &job : jobs) {
        int ranks = job.first[0] + 1, channels = job.first[2] + 1;
        const Way &way = ways[job.first[3]];
        JobOptions options;
        options.environment = {"NCCL_BUFFSIZE=" + std::to_string(8 * slot_bytes),
                               "NCCL_MIN_CTAS=" + std::to_string(channels),
                               "NCCL_MAX_CTAS=" + std::to_string(channels), way.algorithm, way.protocol};
        auto body = [&](Context &context) {
            for (size_t i : job.second)
                run_case(context, make_call(covering.cases[i], slot_bytes, i + 1));
        };
        std::string verdict = run_job(ranks, layouts[job.first[1]], body, options);
        if (verdict.empty()) {
            for (size_t i : job.second)
                passed.push_back(covering.cases[i]);
            continue;
        }
        failed++;
        printf("FAILED %d ranks, %s, %d channels, %s %s: %s\n", ranks, layouts[job.first[1]].name().c_str(),
               channels, way.algorithm, way.protocol, verdict.c_str());
    }
    size_t covered = count_pairs(passed);
    printf(
        "%zu cases in %zu jobs, slots of %zu bytes; pairs of levels covered by cases that passed: %zu of %zu "
        "possible (%zu make no sense)\n",
        covering.cases.size(), jobs.size(), slot_bytes, covered, covering.pairs_possible,
        covering.pairs_invalid);
    return failed || covered < covering.pairs_possible ? 1 : 0;
}
