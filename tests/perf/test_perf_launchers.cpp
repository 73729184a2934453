// Several processes: of the built-in launcher, of mpirun, and of what srun and torchrun leave in the
// environment.
#include "run_perf.h"

namespace
{

// Two processes, each with its own variables (%r is the rank), as a launcher would start them.
std::vector<Outcome> RunTwo(const std::string &variables, const std::string &arguments)
{
    std::string both;
    char folder[] = "/tmp/rondo-perf-XXXXXX";
    std::vector<Outcome> runs(2);
    if (!mkdtemp(folder))
        return runs;
    for (const char *rank : {"0", "1"}) {
        std::string v = variables;
        for (size_t at; (at = v.find("%r")) != std::string::npos;)
            v.replace(at, 2, rank);
        both += "(env " + v + " ./all_reduce_perf " + arguments + " >" + folder + "/" + rank +
                " 2>&1; echo $? >" + folder + "/s" + rank + ") & ";
    }
    RunShell("sh -c '" + both + "wait'");
    for (int rank = 0; rank < 2; rank++) {
        std::ifstream text(std::string(folder) + "/" + std::to_string(rank));
        std::stringstream all;
        all << text.rdbuf();
        runs[rank].text = all.str();
        std::ifstream(std::string(folder) + "/s" + std::to_string(rank)) >> runs[rank].status;
    }
    if (system(("rm -r " + std::string(folder)).c_str()) != 0)
        ADD_FAILURE() << "remove " << folder;
    return runs;
}

void ExpectTwoRanks(const std::vector<Outcome> &runs)
{
    ExpectAllRight(runs[0], 1);
    EXPECT_TRUE(Has(runs[0].text, "#  Rank  1")) << runs[0].text;
    EXPECT_EQ(runs[1].status, 0) << runs[1].text;
    EXPECT_EQ(runs[1].text, ""); // one process speaks for all
}

const char kArguments[] = "-b 1K -e 1K -n 2";

} // namespace

TEST(PerfLaunchers, OneToFourProcesses)
{
    for (int procs = 1; procs <= 4; procs++) {
        Outcome run =
            RunShell("all_reduce_perf --procs " + std::to_string(procs) + " -b 8 -e 256K -f 32 -n 2");
        ExpectAllRight(run, 4);
        EXPECT_TRUE(Has(run.text, "#  Rank  " + std::to_string(procs - 1))) << run.text;
        EXPECT_FALSE(Has(run.text, "#  Rank  " + std::to_string(procs))) << run.text;
    }
}

TEST(PerfLaunchers, Mpirun)
{
    if (!*MPIRUN)
        GTEST_SKIP() << "mpirun is not installed: apt install openmpi-bin";
    const std::string mpirun = MPIRUN " --allow-run-as-root --oversubscribe ";
    ExpectAllRight(RunShell(mpirun + "-np 2 ./all_reduce_perf -b 8 -e 256K -f 32 -n 2"), 4);
    Outcome run = RunShell(mpirun + "-np 4 ./all_reduce_perf -g 2 -b 8 -e 8K -f 32 -n 2");
    ExpectAllRight(run, 3);
    EXPECT_TRUE(Has(run.text, "#  Rank  7")) << run.text;
    run = RunShell(mpirun + "-np 2 -x RONDO_PERF_INJECT=1:0 ./all_reduce_perf -b 8 -e 8 -n 2");
    EXPECT_NE(run.status, 0) << run.text;
    EXPECT_TRUE(Has(run.text, "FAILED")) << run.text;
    run = RunShell(mpirun + "-np 2 ./all_reduce_perf --procs 2");
    EXPECT_NE(run.status, 0) << run.text;
    EXPECT_TRUE(Has(run.text, "use one of the two")) << run.text;
}

// 32 ranks on devices that nobody had to ask for.
TEST(PerfLaunchers, DevicesFollowTheRun)
{
    Outcome run = RunShell("all_reduce_perf --procs 4 -g 8 -b 8 -e 8 -n 1 -w 0");
    ExpectAllRight(run, 1);
    EXPECT_TRUE(Has(run.text, "#  Rank 31")) << run.text;
    EXPECT_TRUE(Has(run.text, "device 31")) << run.text;
}

TEST(PerfLaunchers, SlurmVariables)
{
    ExpectTwoRanks(RunTwo("SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=%r SLURM_NTASKS=2 SLURM_LOCALID=%r",
                          kArguments));
}

TEST(PerfLaunchers, TorchrunVariables)
{
    ExpectTwoRanks(RunTwo(
        "RANK=%r WORLD_SIZE=2 LOCAL_RANK=%r LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29561",
        kArguments));
}

TEST(PerfLaunchers, TorchrunVariablesOverTcp)
{
    ExpectTwoRanks(
        RunTwo("RANK=%r WORLD_SIZE=2 LOCAL_RANK=%r MASTER_ADDR=127.0.0.1 MASTER_PORT=29562", kArguments));
}

TEST(PerfLaunchers, PmiVariables)
{
    ExpectTwoRanks(RunTwo("PMI_RANK=%r PMI_SIZE=2 MPI_LOCALRANKID=%r MPI_LOCALNRANKS=2 PMI_JOBID=rondo-test",
                          kArguments));
}

TEST(PerfLaunchers, GroupsOfASplitRunSideBySide)
{
    Outcome run = RunShell("NCCL_TESTS_SPLIT=%2 all_reduce_perf --procs 4 -b 1K -e 1K -n 2");
    ExpectAllRight(run, 1);
    EXPECT_TRUE(Has(run.text, "#  Rank  1 Group  1")) << run.text;
    EXPECT_FALSE(Has(run.text, "#  Rank  2")) << run.text;
    EXPECT_EQ(RunShell("NCCL_TESTS_SPLIT=%0 all_reduce_perf -b 8 -e 8").status, 6);
}

TEST(PerfLaunchers, AFirstDeviceCanBeChosen)
{
    Outcome run = RunShell("NCCL_TESTS_DEVICE=3 all_reduce_perf -g 2 -b 8 -e 8 -n 1");
    ExpectAllRight(run, 1);
    EXPECT_TRUE(Has(run.text, "device  4")) << run.text;
}
