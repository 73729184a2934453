// process_test.cpp - what depends on a process's environment, its forks and its end; each case is a run of
// probe.c.
#include "hostcuda_test.h"

#define EXPECT_LINE(text, line) EXPECT_NE((text).find(std::string(line) + "\n"), std::string::npos) << (text)

static std::string Probe(const std::string &environment, const std::string &what)
{
    return RunProgram(environment, std::string(PROBE) + " " + what);
}

TEST(HostCudaProcess, EightDevicesByDefault)
{
    std::string text = Probe("-u RONDO_CPU_DEVICES -u CUDA_VISIBLE_DEVICES", "count");

    EXPECT_LINE(text, "count_error 0");
    EXPECT_LINE(text, "count 8");
    EXPECT_LINE(text, "malloc 0");
    EXPECT_LINE(text, "exit 0");
}

TEST(HostCudaProcess, TheEnvironmentSetsTheCount)
{
    EXPECT_LINE(Probe("RONDO_CPU_DEVICES=3", "count"), "count 3");
    EXPECT_LINE(Probe("CUDA_VISIBLE_DEVICES=0,2", "count"), "count 2");
    EXPECT_LINE(Probe("CUDA_VISIBLE_DEVICES=5", "count"), "count 1");
    EXPECT_LINE(Probe("CUDA_VISIBLE_DEVICES=1,99,2", "count"),
                "count 1"); // cut at the first that is not there
    EXPECT_LINE(Probe("CUDA_VISIBLE_DEVICES=1,2 RONDO_CPU_DEVICES=2", "count"), "count 1");
}

TEST(HostCudaProcess, WithoutDevicesEveryCallSaysSo)
{
    for (const char *environment : {"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1"}) {
        std::string text = Probe(environment, "count");
        EXPECT_LINE(text, "count_error 100");
        EXPECT_LINE(text, "count 0");
        EXPECT_LINE(text, "last 100");
        EXPECT_LINE(text, "set 100");
        EXPECT_LINE(text, "get 100");
        EXPECT_LINE(text, "malloc 100");
        EXPECT_LINE(text, "synchronize 100");
        EXPECT_LINE(text, "exit 0");
    }
}

TEST(HostCudaProcess, AChildMayUseWhatItsParentDidNot)
{
    std::string text = Probe("", "fork-unused");

    EXPECT_LINE(text, "child_malloc 0");
    EXPECT_LINE(text, "child_memset 0");
    EXPECT_LINE(text, "child_synchronize 0");
    EXPECT_LINE(text, "child_status 0");
    EXPECT_LINE(text, "parent_synchronize 0");
    EXPECT_LINE(text, "exit 0");
}

TEST(HostCudaProcess, AChildMayNotUseWhatItsParentDid)
{
    std::string text = Probe("NCCL_DEBUG=WARN", "fork-used");

    EXPECT_LINE(text, "parent_malloc 0");
    EXPECT_LINE(text, "child_malloc 3");
    EXPECT_LINE(text, "child_memset 3");
    EXPECT_LINE(text, "child_synchronize 3");
    EXPECT_LINE(text, "child_last 3");
    EXPECT_LINE(text, "child_status 0");
    EXPECT_LINE(text, "parent_synchronize 0");
    EXPECT_LINE(text, "exit 0");
}

TEST(HostCudaProcess, CallsInExitHandlersWork)
{
    std::string text = Probe("", "exit");

    EXPECT_LINE(text, "memset 0");
    EXPECT_LINE(text, "atexit_malloc 0");
    EXPECT_LINE(text, "atexit_free 0");
    EXPECT_LINE(text, "exit 0");
}

TEST(HostCudaProcess, CallsAfterTheRuntimesEndSaySo)
{
    std::string text =
        RunProgram("", std::string(LATE_PROGRAM) + " " + LATE + " " + HOSTCUDA_FOLDER + "/libcudart.so.12");

    EXPECT_LINE(text, "passed_on 1");
    EXPECT_LINE(text, "malloc 0");
    EXPECT_LINE(text, "late_malloc 4");
    EXPECT_LINE(text, "late_last 4");
    EXPECT_LINE(text, "exit 0");
}

TEST(HostCudaProcess, FailuresAreExplainedAtWarn)
{
    std::string text = Probe("NCCL_DEBUG=WARN", "fail");

    EXPECT_LINE(text, "set 101");
    EXPECT_LINE(text, "copy 1");
    EXPECT_LINE(text, "capture 801");
    EXPECT_LINE(text, "free 1");
    EXPECT_NE(text.find("use device 99"), std::string::npos) << text;
    EXPECT_NE(text.find("destination of a copy"), std::string::npos) << text;
    EXPECT_NE(text.find("cudaStreamBeginCapture"), std::string::npos) << text;
    EXPECT_NE(text.find("no device allocation is there"), std::string::npos) << text;
    std::string quiet = Probe("-u NCCL_DEBUG", "fail");
    EXPECT_EQ(quiet.find("use device 99"), std::string::npos) << quiet;
}

// A program as its author builds it: no build system, no rpath, only -lcudart.
TEST(HostCudaProcess, ProgramsLinkWithTheRuntimeAlone)
{
    if (IS_SANITIZED)
        GTEST_SKIP() << "sanitized libraries need a sanitized program";
    std::string program = std::string(WORK_FOLDER) + "/hostcuda_plain", folder = HOSTCUDA_FOLDER;
    std::string text = RunProgram("", COMPILER + std::string(" -std=c99 -D_GNU_SOURCE -I") + HEADERS + " " +
                                          PROBE_SOURCE + " -o " + program + " -L" + folder + " -lcudart");

    ASSERT_EQ(text, "exit 0\n");
    EXPECT_LINE(RunProgram("LD_LIBRARY_PATH=" + folder, program + " count"), "malloc 0");
}

TEST(HostCudaProcess, AForeignDriverIsNamedAsTheCause)
{
    if (IS_SANITIZED)
        GTEST_SKIP() << "sanitized libraries need a sanitized program";
    std::string folder = std::string(WORK_FOLDER) + "/foreign";
    std::string text =
        RunProgram("", "mkdir -p " + folder + " && echo \"int cuInit(void) { return 0; }\" | " + COMPILER +
                           " -x c -shared -fPIC -Wl,-soname,libcuda.so.1 -o " + folder + "/libcuda.so.1 -");

    ASSERT_EQ(text, "exit 0\n");
    text = RunProgram("LD_BIND_NOW=1 LD_LIBRARY_PATH=" + folder, PROBE + std::string(" count"));
    EXPECT_LINE(text, "count_error 35");
    EXPECT_LINE(text, "malloc 35");
    EXPECT_NE(text.find("is not hostcuda's"), std::string::npos) << text;
}
