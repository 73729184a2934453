// abi_test.cpp - the values behind nccl.h's initialisers, in every dialect, and agreement with NVIDIA's
// header. Sizes, offsets and constants are checked by the compiler in abi_checks.h.
#include "constants.h"

#include <gtest/gtest.h>
#include <nccl.h>

extern "C" {
void abi_fill_c99(ncclConfig_t *, ncclSimInfo_t *);
void abi_fill_c17(ncclConfig_t *, ncclSimInfo_t *);
void abi_fill_cxx11(ncclConfig_t *, ncclSimInfo_t *);
void abi_fill_cxx17(ncclConfig_t *, ncclSimInfo_t *);
void abi_fill_c99_hostcuda(ncclConfig_t *, ncclSimInfo_t *);
void abi_fill_cxx11_hostcuda(ncclConfig_t *, ncclSimInfo_t *);
}

namespace
{

class Initialiser : public testing::TestWithParam<void (*)(ncclConfig_t *, ncclSimInfo_t *)>
{
};

TEST_P(Initialiser, LeavesEverySettingUnset)
{
    ncclConfig_t config;
    ncclSimInfo_t info;

    GetParam()(&config, &info);
    EXPECT_EQ(config.size, 96u);
    EXPECT_EQ(config.magic, 0xcafebeefu);
    EXPECT_EQ(config.version, 23007u);
    EXPECT_EQ(config.netName, nullptr);
    EXPECT_EQ(config.commName, nullptr);
    for (int setting :
         {config.blocking, config.cgaClusterSize, config.minCTAs, config.maxCTAs, config.splitShare,
          config.trafficClass, config.collnetEnable, config.CTAPolicy, config.shrinkShare, config.nvlsCTAs,
          config.nChannelsPerNetPeer, config.nvlinkCentricSched, config.graphUsageMode, config.numRmaCtx,
          config.maxP2pPeers, config.graphStreamOrdering})
        EXPECT_EQ(setting, NCCL_CONFIG_UNDEF_INT);
    EXPECT_EQ(info.size, 24u);
    EXPECT_EQ(info.magic, 0x74685283u);
    EXPECT_EQ(info.version, 23007u);
    EXPECT_EQ(info.estimatedTime, -1.0f);
}

INSTANTIATE_TEST_SUITE_P(Dialects, Initialiser,
                         testing::Values(abi_fill_c99, abi_fill_c17, abi_fill_cxx11, abi_fill_cxx17,
                                         abi_fill_c99_hostcuda, abi_fill_cxx11_hostcuda));

TEST(Reference, SameConstantsAndLayout)
{
#ifdef RONDO_REFERENCE_HEADER
    for (int i = 0; i < constants_count; i++)
        EXPECT_EQ(constants_ours[i].value, constants_reference[i].value) << constants_ours[i].name;
#else
    GTEST_SKIP() << "NVIDIA's nccl.h was not found at configure time";
#endif
}

} // namespace
