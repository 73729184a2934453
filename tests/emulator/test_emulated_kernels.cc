// Today's kernels on many lanes: every kind, against the reference and the CPU device, in many orders.
//
// RONDO_EMULATOR_STRENGTH (3; 2 with sanitizers) columns meet in every way, and one more of those that
// reductions depend on. RONDO_EMULATOR_SEEDS orders are tried of each case (10; 20 with sanitizers, whose
// cases are fewer) and of each scenario (20; 5). More of either: a longer run.
#include "../kernels/reference.h"
#include "covering_rows.h"
#include "scenarios.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace emulator
{
namespace
{

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned kCaseSeeds = 20, kScenarioSeeds = 5, kUsualStrength = 2;
#else
constexpr unsigned kCaseSeeds = 10, kScenarioSeeds = 20, kUsualStrength = 3;
#endif

unsigned FromEnvironment(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text ? static_cast<unsigned>(atoi(text)) : otherwise;
}

unsigned Seeds(unsigned usual)
{
    return FromEnvironment("RONDO_EMULATOR_SEEDS", usual);
}

// The columns of the covering array.
struct What {
    rondo_operation operation;
    bool is_chain, is_tree = false;
};
const What kWhats[] = {
    {RONDO_OP_ALL_REDUCE, false},       {RONDO_OP_ALL_GATHER, false},    {RONDO_OP_REDUCE_SCATTER, false},
    {RONDO_OP_BROADCAST, false},        {RONDO_OP_REDUCE, false},        {RONDO_OP_ALL_TO_ALL, false},
    {RONDO_OP_GATHER, false},           {RONDO_OP_SCATTER, false},       {RONDO_OP_SEND, false},
    {RONDO_OP_ALL_REDUCE, true},        {RONDO_OP_REDUCE_SCATTER, true}, {RONDO_OP_REDUCE, true},
    {RONDO_OP_ALL_REDUCE, false, true},
};
const ncclDataType_t kTypes[] = {ncclFloat32, ncclFloat16, ncclInt8};
const unsigned kOffsets[] = {0, 4, 3};
const uint64_t kFirstSteps[] = {0, UINT64_MAX - 4}; // counters wrap on the way
constexpr unsigned kCounts = 5;
const std::vector<unsigned> kSizes = {13, 7, 3, 2, 3, RONDO_REDOP_NUM, 7, kCounts, 3, 2, 2};

// How data travels: a protocol, SIMPLE over a network, or directly.
struct Way {
    const char *name;
    rondo_protocol protocol;
    bool has_network, is_direct;
};
const Way kWays[] = {{"", RONDO_PROTOCOL_SIMPLE, false, false},
                     {", network", RONDO_PROTOCOL_SIMPLE, true, false},
                     {", LL", RONDO_PROTOCOL_LL, false, false},
                     {", LL128", RONDO_PROTOCOL_LL128, false, false},
                     {", direct", RONDO_PROTOCOL_SIMPLE, false, true},
                     {", one-shot LL", RONDO_PROTOCOL_LL, false, true},
                     {", one-shot LL128", RONDO_PROTOCOL_LL128, false, true}};

// Around what fits a slot, and what fills all channels several times.
uint64_t CountOf(unsigned which, uint64_t in_slot, const Shape &shape, bool has_blocks)
{
    switch (which) {
    case 0:
        return 1;
    case 1:
        return in_slot - 1;
    case 2:
        return in_slot * shape.channels + 1;
    case 3:
        return has_blocks ? 2 * in_slot + 1 : in_slot * shape.ranks * shape.channels + 17;
    default:
        return has_blocks ? 3 * in_slot : 2 * in_slot * shape.ranks + in_slot / 2 + 3;
    }
}

// Have a scenario's shape say what is done and which way; and tell both in words. Trees know no direct works.
std::string Take(Shape &shape, const What &what, const Way &way, bool is_precise)
{
    shape.is_deterministic = what.is_chain;
    shape.protocol = way.protocol;
    shape.has_network = way.has_network;
    shape.is_direct = way.is_direct && !what.is_tree;
    shape.is_precise = is_precise;
    return std::string(what.is_chain  ? ", chain"
                       : what.is_tree ? ", tree"
                                      : "") +
           way.name + (is_precise ? ", precise, " : ", ") + std::to_string(shape.ranks) + " ranks";
}

Scenario ScenarioOf(const Row &row, unsigned index)
{
    const What &what = kWhats[row[0]];
    const Way &way = kWays[row[6]];
    const rondo_facts &facts = *rondo_operation_facts(what.operation);
    Scenario scenario;
    Call call;

    scenario.shape.ranks = 2 + row[1];
    scenario.shape.channels = 1 + row[2];
    scenario.shape.lanes = row[3] ? 96 : 64;
    scenario.shape.slot_bytes = way.is_direct ? 256 : 128; // for a piece of 8 ranks
    std::string way_text = Take(scenario.shape, what, way, row[10]);
    scenario.shape.hosts = what.is_tree ? 1 + index % scenario.shape.ranks : 0;
    scenario.shape.is_apart = index / 2 % 2;
    scenario.shape.bounced = index % 3 == 0 ? 0 : index % 3 == 1 ? ~0u : index * 2654435761u >> 16;
    scenario.shape.first_step = way.protocol == RONDO_PROTOCOL_SIMPLE ? kFirstSteps[row[9]] : 0;
    call.operation = what.operation;
    call.dtype = kTypes[row[4]];
    call.redop = static_cast<int>(row[5]);
    const reference::Type &type = reference::TypeOf(call.dtype);
    call.count =
        CountOf(row[7], 128 / (scenario.shape.is_precise && facts.reduces ? type.wide_bytes : type.bytes),
                scenario.shape, facts.send_blocks || facts.recv_blocks);
    call.root = static_cast<int>(index % scenario.shape.ranks);
    call.offset = kOffsets[row[8]];
    call.is_exact = index % 2;
    scenario.launches = {{call}};
    scenario.name = call.Name() + way_text + ", " + std::to_string(scenario.shape.channels) + " channels, " +
                    std::to_string(scenario.shape.lanes) + " lanes";
    return scenario;
}

void RunSeeds(Machine &machine, const Scenario &scenario, unsigned seeds)
{
    Communicator communicator(machine, scenario.shape, scenario.launches);

    if (scenario.prepare)
        scenario.prepare(communicator);
    for (uint64_t seed = 0; seed < seeds; seed++) {
        Failure failure = RunScenario(scenario, communicator, seed);
        ASSERT_FALSE(failure) << scenario.name << ", seed " << seed << "\n" << failure.text;
    }
}

// Says what the rows cover; they must have all of `strength` columns.
void RequireCoverage(const std::vector<Row> &rows, const std::vector<unsigned> &sizes, unsigned strength,
                     unsigned seeds)
{
    for (unsigned tuple = 2; tuple <= kUsualStrength + 1; tuple++) {
        Coverage coverage = CoverageOf(rows, sizes, tuple);
        std::printf("%zu cases of %u orders each have %zu of all %zu choices of %u columns\n", rows.size(),
                    seeds, coverage.covered, coverage.all, tuple);
        if (tuple <= strength) {
            ASSERT_EQ(coverage.covered, coverage.all);
        }
    }
}

unsigned Strength()
{
    return FromEnvironment("RONDO_EMULATOR_STRENGTH", kUsualStrength);
}

TEST(Kernels, EveryKindInEveryShape)
{
    std::vector<Row> rows = CoveringRows(kSizes, Strength());
    Machine machine(0);

    RequireCoverage(rows, kSizes, Strength(), Seeds(kCaseSeeds));
    for (unsigned i = 0; i < rows.size() && !HasFatalFailure(); i++)
        RunSeeds(machine, ScenarioOf(rows[i], i), Seeds(kCaseSeeds));
}

// The columns of another: what partial sums are made of, and where they go.
const std::vector<What> &Reductions()
{
    static const std::vector<What> reductions = [] {
        std::vector<What> all;
        std::copy_if(std::begin(kWhats), std::end(kWhats), std::back_inserter(all),
                     [](const What &what) { return rondo_operation_facts(what.operation)->reduces; });
        return all;
    }();
    return reductions;
}

Scenario ReductionOf(const Row &row, unsigned index)
{
    const reference::Type &type = reference::Types()[row[0]];
    const What &what = Reductions()[row[2]];
    const Way &way = kWays[row[3]];
    Scenario scenario;
    Call call;

    scenario.shape.ranks = 1 + row[5]; /* one rank: a copy */
    scenario.shape.lanes = 32;
    std::string way_text = Take(scenario.shape, what, way, row[4]);
    scenario.shape.hosts = what.is_tree ? scenario.shape.ranks : 0;
    call.operation = what.operation;
    call.dtype = type.id;
    call.redop = static_cast<int>(row[1]);
    call.count = 150;
    call.offset = index % 16 / type.bytes * type.bytes;
    call.is_exact = row[6]; /* if not, wide sums and narrow ones differ */
    scenario.launches = {{call}};
    scenario.name = call.Name() + way_text;
    return scenario;
}

// On one schedule each.
TEST(Kernels, EveryTypeAndOperation)
{
    const std::vector<unsigned> sizes = {static_cast<unsigned>(reference::Types().size()),
                                         RONDO_REDOP_NUM,
                                         static_cast<unsigned>(Reductions().size()),
                                         static_cast<unsigned>(std::size(kWays)),
                                         2,
                                         4,
                                         2};
    unsigned strength = Strength() + 1;
    std::vector<Row> rows = CoveringRows(sizes, strength);
    Machine machine(0);

    RequireCoverage(rows, sizes, strength, 1);
    for (unsigned i = 0; i < rows.size() && !HasFatalFailure(); i++)
        RunSeeds(machine, ReductionOf(rows[i], i), 1);
}

// The scenarios that mutants are judged by are right with the kernels as they are.
class Scenarios : public testing::TestWithParam<Scenario>
{
};

TEST_P(Scenarios, EndWell)
{
    const Scenario &scenario = GetParam();
    Machine machine(0);

    RunSeeds(machine, scenario, Seeds(kScenarioSeeds));
}

std::string NameOf(const testing::TestParamInfo<Scenario> &info)
{
    std::string name;

    for (char c : info.param.name)
        if (isalnum(static_cast<unsigned char>(c)))
            name += c;
    return name;
}

INSTANTIATE_TEST_SUITE_P(Data, Scenarios, testing::ValuesIn(DataScenarios()), NameOf);
INSTANTIATE_TEST_SUITE_P(Trouble, Scenarios, testing::ValuesIn(TroubleScenarios()), NameOf);

} // namespace
} // namespace emulator
