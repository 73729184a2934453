// Which process this is, from the variables of each launcher.
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nccl.h> // has C++ overloads, so it cannot come first inside the braces below

extern "C" {
#include "processes.h"
}

namespace
{

class PerfLaunch : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        for (const char *name :
             {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE",
              "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "PMI_RANK", "PMI_SIZE",
              "MPI_LOCALNRANKS", "MV2_COMM_WORLD_RANK", "SLURM_PROCID", "SLURM_NTASKS",
              "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NNODES"})
            unsetenv(name);
    }
    void TearDown() override
    {
        SetUp();
    }
    void Set(const std::vector<std::pair<const char *, const char *>> &variables)
    {
        for (auto &v : variables)
            setenv(v.first, v.second, 1);
    }
    perf_identity Read()
    {
        perf_identity identity;
        status_ = perf_identity_read(&identity);
        return identity;
    }
    perf_status status_;
};

} // namespace

TEST_F(PerfLaunch, NoneIsOneProcess)
{
    perf_identity id = Read();
    EXPECT_EQ(status_, PERF_OK);
    EXPECT_EQ(id.rank, 0);
    EXPECT_EQ(id.size, 1);
}

TEST_F(PerfLaunch, OpenMpiInsideSlurmIsOpenMpi)
{
    Set({{"SLURM_JOB_ID", "7"},
         {"SLURM_PROCID", "0"},
         {"SLURM_NTASKS", "9"},
         {"OMPI_COMM_WORLD_RANK", "2"},
         {"OMPI_COMM_WORLD_SIZE", "4"},
         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
         {"PMIX_NAMESPACE", "job-1"}});
    perf_identity id = Read();
    EXPECT_EQ(status_, PERF_OK);
    EXPECT_STREQ(id.launcher, "Open MPI");
    EXPECT_EQ(id.rank, 2);
    EXPECT_EQ(id.size, 4);
    EXPECT_EQ(id.local_size, 4);
    EXPECT_NE(std::string(id.job).find("job-1"), std::string::npos);
}

TEST_F(PerfLaunch, Torchrun)
{
    Set({{"RANK", "5"},
         {"WORLD_SIZE", "8"},
         {"LOCAL_WORLD_SIZE", "4"},
         {"MASTER_ADDR", "host"},
         {"MASTER_PORT", "29500"}});
    perf_identity id = Read();
    EXPECT_STREQ(id.launcher, "torchrun");
    EXPECT_EQ(id.rank, 5);
    EXPECT_EQ(id.local_size, 4);
}

TEST_F(PerfLaunch, SlurmStepButNotItsBatchShell)
{
    Set({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}});
    EXPECT_EQ(Read().size, 1); // a batch script's shell has the job's variables, and is one process
    Set({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "6"}});
    perf_identity id = Read();
    EXPECT_EQ(id.rank, 3);
    EXPECT_EQ(id.size, 6); // the step's size, not the job's
}

TEST_F(PerfLaunch, ContradictionsAreUsageErrors)
{
    Set({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}});
    Read();
    EXPECT_EQ(status_, PERF_USAGE);
    Set({{"PMI_RANK", "x"}});
    Read();
    EXPECT_EQ(status_, PERF_USAGE);
}

TEST(PerfSplit, OperatorsAndMasks)
{
    struct {
        const char *split, *mask;
        int color; // of rank 5; -1: refused
    } rows[] = {{nullptr, nullptr, 0}, {"%2", nullptr, 1},   {"MOD 2", nullptr, 1},  {"/4", nullptr, 1},
                {"DIV4", nullptr, 1},  {"&0x4", nullptr, 4}, {"AND0b1", nullptr, 1}, {"|2", nullptr, 7},
                {"OR 2", nullptr, 7},  {nullptr, "4", 4},    {"%2", "ff", 5},        {"%0", nullptr, -1},
                {"x", nullptr, -1},    {"%", nullptr, -1},   {nullptr, "zz", -1}};
    for (auto &row : rows) {
        int color = 99;
        bool understood = perf_split_color(5, row.split, row.mask, &color);
        EXPECT_EQ(understood, row.color >= 0) << (row.split ? row.split : "-");
        EXPECT_EQ(color, understood ? row.color : color) << (row.split ? row.split : "-");
    }
}
