// Whole runs of every program: all results verified, in several mixtures of processes, threads and devices.
#include "run_perf.h"

namespace
{

struct Program {
    const char *name;
    bool verifies_in_place;
    bool is_rooted;
    bool reduces;
};

const Program kPrograms[] = {
    {"all_reduce_perf", true, false, true},     {"all_gather_perf", true, false, false},
    {"reduce_scatter_perf", true, false, true}, {"broadcast_perf", true, true, false},
    {"reduce_perf", true, true, true},          {"alltoall_perf", false, false, false},
    {"gather_perf", true, true, false},         {"scatter_perf", true, true, false},
    {"sendrecv_perf", false, false, false},     {"hypercube_perf", true, false, false},
};

class PerfPrograms : public ::testing::TestWithParam<Program>
{
};

std::string Name(const ::testing::TestParamInfo<Program> &info)
{
    return info.param.name;
}

} // namespace

INSTANTIATE_TEST_SUITE_P(All, PerfPrograms, ::testing::ValuesIn(kPrograms), Name);

TEST_P(PerfPrograms, OneThreadManyDevices)
{
    ExpectAllRight(RunShell(std::string(GetParam().name) + " -g 4 -b 8 -e 200K -f 16 -n 2"), 4,
                   GetParam().verifies_in_place);
}

TEST_P(PerfPrograms, ProcessesAndThreads)
{
    ExpectAllRight(RunShell(std::string(GetParam().name) + " --procs 2 -t 2 -b 8 -e 200K -f 16 -n 2"), 4,
                   GetParam().verifies_in_place);
}

TEST_P(PerfPrograms, AllTypesOperationsAndRoots)
{
    const Program &p = GetParam();
    Outcome run =
        RunShell(std::string(p.name) + " --procs 2 -b 1000 -e 1000 -n 1 -w 0 -d all -o all -r -1 -u 1 -m 2");
    ExpectAllRight(run, 12u * (p.reduces ? 6 : 1) * (p.is_rooted ? 2 : 1), p.verifies_in_place);
}

TEST_P(PerfPrograms, OneRank)
{
    ExpectAllRight(RunShell(std::string(GetParam().name) + " -b 0 -e 4K -i 2K -n 1"), 3,
                   GetParam().verifies_in_place);
}

TEST(PerfVerifyRuns, AByteInjectedIsFoundAndExits7)
{
    for (const char *program : {"all_reduce_perf", "all_gather_perf", "broadcast_perf"}) {
        Outcome run =
            RunShell(std::string("RONDO_PERF_INJECT=1:5 ") + program + " --procs 2 -b 1K -e 1K -n 1");
        EXPECT_EQ(run.status, 7) << run.text;
        EXPECT_TRUE(Has(run.text, "# Out of bounds values : 2 FAILED")) << run.text;
        std::vector<Row> rows = Rows(run.text);
        ASSERT_EQ(rows.size(), 1u) << run.text;
        EXPECT_EQ(rows[0].wrong[0], "1");
        EXPECT_EQ(rows[0].wrong[1], "1");
    }
}

TEST(PerfVerifyRuns, AnAverageIsHeldToItsTolerance)
{
    Outcome run = RunShell("RONDO_PERF_INJECT=0:0 all_reduce_perf -g 2 -b 1K -e 1K -n 1 -o avg -d f8e5m2");
    EXPECT_EQ(run.status, 7) << run.text;
}

TEST(PerfVerifyRuns, AnInjectionThatFindsNoByteIsSaid)
{
    Outcome run = RunShell("RONDO_PERF_INJECT=1:4096 all_reduce_perf -g 2 -b 1K -e 1K -n 1");
    EXPECT_EQ(run.status, 0) << run.text;
    EXPECT_TRUE(Has(run.text, "RONDO_PERF_INJECT has damaged nothing")) << run.text;
}

TEST(PerfVerifyRuns, WithoutChecksNothingIsCalledRight)
{
    Outcome run = RunShell("all_reduce_perf -g 2 -b 1K -e 1K -n 1 -c 0");
    EXPECT_EQ(run.status, 0);
    EXPECT_TRUE(Has(run.text, "not validated")) << run.text;
    EXPECT_FALSE(Has(run.text, "OK")) << run.text;
    EXPECT_EQ(Rows(run.text).at(0).wrong[0], "N/A");
}

// Fifteen floats a rank are rounded down to blocks of none.
TEST(PerfVerifyRuns, NothingComparedIsNotCalledRight)
{
    Outcome run = RunShell("all_gather_perf -g 4 -b 60 -e 60 -n 1");
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(Rows(run.text).at(0).size, 0);
    EXPECT_TRUE(Has(run.text, "# Out of bounds values : 0 (not validated)")) << run.text;
}

TEST(PerfVerifyRuns, OddSizesAreRoundedAndSaid)
{
    Outcome run = RunShell("all_reduce_perf -g 2 -b 9 -e 9 -n 1");
    ExpectAllRight(run, 1);
    EXPECT_EQ(Rows(run.text).at(0).size, 8);
    EXPECT_TRUE(Has(run.text, "# 9 bytes rounded down to 8")) << run.text;
}

TEST(PerfVerifyRuns, HypercubeNeedsAPowerOfTwo)
{
    Outcome run = RunShell("hypercube_perf -g 3 -b 1K -e 1K -n 1");
    EXPECT_EQ(run.status, 0) << run.text;
    EXPECT_TRUE(Has(run.text, "nRanks 3 is not a power of 2, skipping")) << run.text;
    EXPECT_TRUE(Has(run.text, "# Out of bounds values : 0 (not validated)")) << run.text;
    ExpectAllRight(RunShell("hypercube_perf --procs 4 -b 1K -e 1K -n 3"), 1);
}

TEST(PerfVerifyRuns, OtherWaysOfRunning)
{
    for (const char *options :
         {"-z 1", "-z 2 -m 3", "-z 3", "-y 1", "-p 1 -t 2 -g 1", "-C 1", "-c 3", "-N 2 -f 2", "-a 0", "-a 2",
          "-a 3", "-T 30", "-I 1 -K 1", "-S 1", "-M 1", "-w 3", "-x 1"}) {
        Outcome run = RunShell("all_reduce_perf -g 2 -b 1K -e 1K -n 3 " + std::string(options));
        EXPECT_EQ(run.status, 0) << options << "\n" << run.text;
        EXPECT_TRUE(Has(run.text, "0 OK")) << options << "\n" << run.text;
    }
}
