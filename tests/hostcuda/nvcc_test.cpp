// nvcc_test.cpp - runs kernel.cu's program, where nvcc was there to compile it.
#include "hostcuda_test.h"

TEST(HostCudaNvcc, AProgramRunsUpToItsKernel)
{
#if HAS_NVCC
    std::string text = RunProgram("-u NCCL_DEBUG", KERNEL_PROGRAM);
    for (const char *line :
         {"properties 0", "warp 32", "major 1", "malloc 0", "to 0", "attributes 0", "type 2", "launch 209",
          "synchronize 0", "from 0", "value 63", "free 0", "exit 0"})
        EXPECT_NE(text.find(std::string(line) + "\n"), std::string::npos) << line << "\n" << text;
    EXPECT_NE(text.find("kernel _Z9scale_allPffi was not run"), std::string::npos) << text;
#else
    GTEST_SKIP() << "nvcc of CUDA 13 was not found when this was configured";
#endif
}
