// unsupported_test.cpp - what this version does not implement says so by name, whatever the arguments; linked
// to libnccl.so.2.
#include "device_api.h"

#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <nccl.h>
#include <set>
#include <string>
#include <vector>

namespace
{

struct Row {
    std::string name;
    std::function<ncclResult_t()> call;
};

#define REFUSES(function, ...)                          \
    Row                                                 \
    {                                                   \
#function, [] { return function(__VA_ARGS__); } \
    }

const std::vector<Row> refusing = {
    REFUSES(ncclCommGetUniqueId, nullptr, nullptr),
    REFUSES(ncclCommInitRankScalable, nullptr, 0, 0, 0, nullptr, nullptr),
    REFUSES(ncclCommRevoke, nullptr, 0),
    REFUSES(ncclCommSplit, nullptr, 0, 0, nullptr, nullptr),
    REFUSES(ncclCommShrink, nullptr, nullptr, 0, nullptr, nullptr, 0),
    REFUSES(ncclCommGrow, nullptr, 0, nullptr, 0, nullptr, nullptr),
    REFUSES(ncclCommQueryProperties, nullptr, nullptr),
    REFUSES(ncclCommRegister, nullptr, nullptr, 0, nullptr),
    REFUSES(ncclCommDeregister, nullptr, nullptr),
    REFUSES(ncclCommWindowRegister, nullptr, nullptr, 0, nullptr, 0),
    REFUSES(ncclCommWindowDeregister, nullptr, nullptr),
    REFUSES(ncclWinGetUserPtr, nullptr, nullptr, nullptr),
    REFUSES(ncclCommSuspend, nullptr, 0),
    REFUSES(ncclCommResume, nullptr),
    REFUSES(ncclCommMemStats, nullptr, ncclStatGpuMemTotal, nullptr),
    REFUSES(ncclPutSignal, nullptr, 0, ncclInt8, 0, nullptr, 0, 0, 0, 0, nullptr, nullptr),
    REFUSES(ncclSignal, 0, 0, 0, 0, nullptr, nullptr),
    REFUSES(ncclWaitSignal, 0, nullptr, nullptr, nullptr),
    REFUSES(ncclGroupSimulateEnd, nullptr),
    REFUSES(ncclParamBind, nullptr, nullptr),
    REFUSES(ncclParamGetI8, nullptr, nullptr),
    REFUSES(ncclParamGetI16, nullptr, nullptr),
    REFUSES(ncclParamGetI32, nullptr, nullptr),
    REFUSES(ncclParamGetI64, nullptr, nullptr),
    REFUSES(ncclParamGetU8, nullptr, nullptr),
    REFUSES(ncclParamGetU16, nullptr, nullptr),
    REFUSES(ncclParamGetU32, nullptr, nullptr),
    REFUSES(ncclParamGetU64, nullptr, nullptr),
    REFUSES(ncclParamGetStr, nullptr, nullptr),
    REFUSES(ncclParamGet, nullptr, nullptr, 0, nullptr),
    REFUSES(ncclParamGetParameter, nullptr, nullptr, nullptr),
    REFUSES(ncclParamGetAllParameterKeys, nullptr, nullptr),
    REFUSES(ncclDevCommCreate, nullptr, nullptr, nullptr),
    REFUSES(ncclDevCommDestroy, nullptr, nullptr),
    REFUSES(ncclGetLsaMultimemDevicePointer, nullptr, 0, nullptr),
    REFUSES(ncclGetMultimemDevicePointer, nullptr, 0, {}, nullptr),
    REFUSES(ncclGetLsaDevicePointer, nullptr, 0, 0, nullptr),
    REFUSES(ncclGetPeerDevicePointer, nullptr, 0, 0, nullptr),
    REFUSES(ncclLsaBarrierCreateRequirement, {}, 0, nullptr, nullptr),
    REFUSES(ncclGinBarrierCreateRequirement, nullptr, {}, 0, nullptr, nullptr),
    REFUSES(ncclLLA2ACreateRequirement, 0, 0, nullptr, nullptr),
    REFUSES(ncclGinOutboxCreateRequirement, 0, 0, nullptr, nullptr),
    REFUSES(ncclGinInboxA2ACreateRequirement, {}, 0, 0, nullptr, nullptr),
};

// Those without a result.
const std::set<std::string> resultless = {"ncclParamDumpAll",  "ncclTeamWorld",       "ncclTeamLsa",
                                          "ncclTeamRail",      "ncclTeamRankToWorld", "ncclTeamRankToLsa",
                                          "ncclLLA2ACalcSlots"};

const std::set<std::string> implemented = {"ncclAllGather",
                                           "ncclAllReduce",
                                           "ncclAlltoAll",
                                           "ncclBcast",
                                           "ncclBroadcast",
                                           "ncclCommAbort",
                                           "ncclCommCount",
                                           "ncclCommCuDevice",
                                           "ncclCommDestroy",
                                           "ncclCommFinalize",
                                           "ncclCommGetAsyncError",
                                           "ncclCommInitAll",
                                           "ncclCommInitRank",
                                           "ncclCommInitRankConfig",
                                           "ncclCommUserRank",
                                           "ncclGather",
                                           "ncclGetErrorString",
                                           "ncclGetLastError",
                                           "ncclGetUniqueId",
                                           "ncclGetVersion",
                                           "ncclGroupEnd",
                                           "ncclGroupStart",
                                           "ncclMemAlloc",
                                           "ncclMemFree",
                                           "ncclRecv",
                                           "ncclRedOpCreatePreMulSum",
                                           "ncclRedOpDestroy",
                                           "ncclReduce",
                                           "ncclReduceScatter",
                                           "ncclResetDebugInit",
                                           "ncclScatter",
                                           "ncclSend"};

void ExpectLastErrorNames(const std::string &function)
{
    std::string text = ncclGetLastError(nullptr);

    EXPECT_EQ(text.compare(0, function.size() + 1, function + " "), 0) << text;
}

TEST(Unsupported, ReturnsInvalidUsageAndNamesTheFunction)
{
    for (const Row &row : refusing) {
        EXPECT_EQ(row.call(), ncclInvalidUsage) << row.name;
        ExpectLastErrorNames(row.name);
    }
}

TEST(Unsupported, LeavesNoHandleBehind)
{
    ncclComm_t comm = reinterpret_cast<ncclComm_t>(1);
    ncclWindow_t window = reinterpret_cast<ncclWindow_t>(1);

    EXPECT_EQ(ncclCommSplit(nullptr, 0, 0, &comm, nullptr), ncclInvalidUsage);
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(ncclCommWindowRegister(nullptr, nullptr, 0, &window, NCCL_WIN_DEFAULT), ncclInvalidUsage);
    EXPECT_EQ(window, nullptr);
}

TEST(Unsupported, WithoutAResultAnswersWithAFailure)
{
    for (auto team : {ncclTeamWorld, ncclTeamLsa, ncclTeamRail})
        EXPECT_EQ(team(nullptr).nRanks, 0);
    ExpectLastErrorNames("ncclTeamRail");
    EXPECT_EQ(ncclTeamRankToWorld(nullptr, {}, 0), -1);
    ExpectLastErrorNames("ncclTeamRankToWorld");
    EXPECT_EQ(ncclTeamRankToLsa(nullptr, {}, 0), -1);
    ExpectLastErrorNames("ncclTeamRankToLsa");
    EXPECT_EQ(ncclLLA2ACalcSlots(4, 4), -1);
    ExpectLastErrorNames("ncclLLA2ACalcSlots");
    testing::internal::CaptureStdout();
    ncclParamDumpAll();
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    ExpectLastErrorNames("ncclParamDumpAll");
}

// A function that moves from one list to the other must move here too.
TEST(Unsupported, EveryFunctionIsInOneOfTheLists)
{
    std::ifstream file(RONDO_SOURCE "/tests/interface/functions.txt");
    std::set<std::string> all, listed = implemented;

    for (std::string line; std::getline(file, line);)
        all.insert(line);
    listed.insert(resultless.begin(), resultless.end());
    for (const Row &row : refusing)
        listed.insert(row.name);
    EXPECT_EQ(listed, all);
    EXPECT_EQ(implemented.size() + resultless.size() + refusing.size(), all.size());
}

} // namespace
