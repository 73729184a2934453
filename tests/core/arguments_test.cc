// What each entry point says to arguments that are wrong: the code, and a text that names the culprit.
#include "refusals.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace
{

TEST_F(Arguments, Version)
{
    int version = 0;
    EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
    EXPECT_EQ(version, 23007);
    ExpectRefusal(ncclGetVersion(nullptr), ncclInvalidArgument, "ncclGetVersion");
}

// People look the constant up, whatever the words.
TEST_F(Arguments, ErrorStringsNameTheirConstant)
{
    const char *names[] = {"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                           "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                           "ncclRemoteError",   "ncclInProgress",         "ncclTimeout"};
    static_assert(sizeof(names) / sizeof(names[0]) == ncclNumResults);

    for (int result = 0; result < ncclNumResults; result++)
        EXPECT_NE(strstr(ncclGetErrorString(static_cast<ncclResult_t>(result)), names[result]), nullptr)
            << names[result];
}

TEST_F(Arguments, ErrorStringsDifferAndAreNeverNull)
{
    for (int a = 0; a < ncclNumResults; a++) {
        for (int b = 0; b < a; b++)
            EXPECT_STRNE(ncclGetErrorString(static_cast<ncclResult_t>(a)),
                         ncclGetErrorString(static_cast<ncclResult_t>(b)));
        EXPECT_STRNE(ncclGetErrorString(static_cast<ncclResult_t>(a)),
                     ncclGetErrorString(static_cast<ncclResult_t>(99)));
    }
    EXPECT_STREQ(ncclGetErrorString(static_cast<ncclResult_t>(-1)),
                 ncclGetErrorString(static_cast<ncclResult_t>(99)));
}

TEST_F(Arguments, Init)
{
    ncclUniqueId id;
    ncclComm_t comm = comm_[0];

    ExpectRefusal(ncclGetUniqueId(nullptr), ncclInvalidArgument, "ncclGetUniqueId");
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess) << LastError();
    ExpectRefusal(ncclCommInitRank(&comm, 0, id, 0), ncclInvalidArgument, "nranks is 0");
    EXPECT_EQ(comm, nullptr);
    ExpectRefusal(ncclCommInitRank(&comm, -3, id, -1), ncclInvalidArgument, "nranks is -3");
    ExpectRefusal(ncclCommInitRank(&comm, 2, id, 2), ncclInvalidArgument, "rank 2 is outside 0..1");
    ExpectRefusal(ncclCommInitRank(&comm, 2, id, -1), ncclInvalidArgument, "rank -1 is outside 0..1");
    ExpectRefusal(ncclCommInitRank(nullptr, 2, id, 2), ncclInvalidArgument,
                  "rank 2"); // the rank is looked at first
    ExpectRefusal(ncclCommInitRank(nullptr, 2, id, 1), ncclInvalidArgument, "NULL");
    memset(&id, 0x5a, sizeof(id));
    comm = comm_[0];
    EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument) << LastError();
    EXPECT_EQ(comm, nullptr);
}

TEST_F(Arguments, InitAll)
{
    ncclComm_t comms[2] = {comm_[0], comm_[1]};
    int twice[2] = {1, 1}, outside[2] = {0, 99999}, negative[2] = {0, -1};

    ExpectRefusal(ncclCommInitAll(nullptr, 2, nullptr), ncclInvalidArgument, "NULL");
    ExpectRefusal(ncclCommInitAll(comms, -1, nullptr), ncclInvalidArgument, "ndev is -1");
    ExpectRefusal(ncclCommInitAll(comms, 2, outside), ncclInvalidArgument,
                  "device 99999 of rank 1 is outside 0..");
    EXPECT_EQ(comms[0], nullptr);
    ExpectRefusal(ncclCommInitAll(comms, 2, negative), ncclInvalidArgument, "device -1 of rank 1");
    ExpectRefusal(ncclCommInitAll(comms, 2, twice), ncclInvalidUsage, "ranks 0 and 1 both use device 1");
    ExpectRefusal(ncclCommInitAll(comms, 2, twice), ncclInvalidUsage, "cudaStreamNonBlocking");
    EXPECT_EQ(ncclCommInitAll(comms, 0, nullptr), ncclSuccess);
}

TEST_F(Arguments, InitOfTwoRanksOnOneDevice)
{
    if (!HasCudaRuntime())
        GTEST_SKIP() << "without a CUDA runtime ranks have no devices to share";
    ExpectSuccess(RunRanks(Mode::kThreads, 2, [](Party &party) -> std::string {
        ncclComm_t comm = nullptr;

        UseDeviceOf(0);
        if (ncclCommInitRank(&comm, 2, party.id, party.first) != ncclInvalidUsage)
            return "both ranks were let onto device 0";
        for (const char *part :
             {"rank 0 (pid", "rank 1 (pid", "NCCL_MULTI_RANK_GPU_ENABLE=1", "cudaStreamNonBlocking"})
            if (LastError().find(part) == std::string::npos)
                return "no word of " + std::string(part) + ": " + LastError();
        return "";
    }));
}

TEST_F(Arguments, Queries)
{
    int value = -1;
    ncclResult_t error = ncclInternalError;
    ncclComm_t wild = reinterpret_cast<ncclComm_t>(static_cast<uintptr_t>(0x1234560));

    for (int r = 0; r < 2; r++) {
        EXPECT_EQ(ncclCommCount(comm_[r], &value), ncclSuccess);
        EXPECT_EQ(value, 2);
        EXPECT_EQ(ncclCommUserRank(comm_[r], &value), ncclSuccess);
        EXPECT_EQ(value, r);
        EXPECT_EQ(ncclCommCuDevice(comm_[r], &value), ncclSuccess);
        EXPECT_EQ(value, r);
        EXPECT_EQ(ncclCommGetAsyncError(comm_[r], &error), ncclSuccess);
        EXPECT_EQ(error, ncclSuccess);
    }
    ExpectRefusal(ncclCommCount(nullptr, &value), ncclInvalidArgument, "ncclCommCount");
    ExpectRefusal(ncclCommCount(comm_[0], nullptr), ncclInvalidArgument, "ncclCommCount");
    ExpectRefusal(ncclCommUserRank(wild, &value), ncclInvalidArgument, "ncclCommUserRank");
    ExpectRefusal(ncclCommUserRank(comm_[0], nullptr), ncclInvalidArgument, "ncclCommUserRank");
    ExpectRefusal(ncclCommCuDevice(nullptr, &value), ncclInvalidArgument, "ncclCommCuDevice");
    ExpectRefusal(ncclCommCuDevice(comm_[0], nullptr), ncclInvalidArgument, "ncclCommCuDevice");
    ExpectRefusal(ncclCommGetAsyncError(nullptr, &error), ncclInvalidArgument, "ncclCommGetAsyncError");
    ExpectRefusal(ncclCommGetAsyncError(comm_[0], nullptr), ncclInvalidArgument, "ncclCommGetAsyncError");
    ExpectRefusal(ncclCommGetAsyncError(wild, &error), ncclInvalidArgument, "ncclCommGetAsyncError");
}

TEST_F(Arguments, EndingNullIsNoError)
{
    EXPECT_EQ(ncclCommDestroy(nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(nullptr), ncclSuccess);
    ExpectRefusal(ncclCommDestroy(reinterpret_cast<ncclComm_t>(data_)), ncclInvalidArgument,
                  "ncclCommDestroy");
    ExpectRefusal(ncclCommAbort(reinterpret_cast<ncclComm_t>(data_)), ncclInvalidArgument, "ncclCommAbort");
    ExpectRefusal(ncclCommFinalize(reinterpret_cast<ncclComm_t>(data_)), ncclInvalidArgument,
                  "ncclCommFinalize");
}

TEST_F(Arguments, Communication)
{
    for (const Spoilable &op : Operations()) {
        SCOPED_TRACE(op.name);
        auto type = [](int value) { return static_cast<ncclDataType_t>(value); };
        auto redop = [](int value) { return static_cast<ncclRedOp_t>(value); };
        std::string name = op.name;

        ExpectRefusal(op.call(data_, data_ + 32, 4, ncclFloat, ncclSum, 0, nullptr), ncclInvalidArgument,
                      name);
        ExpectRefusal(
            op.call(data_, data_ + 32, 4, ncclFloat, ncclSum, 0, reinterpret_cast<ncclComm_t>(data_)),
            ncclInvalidArgument, name);
        ExpectRefusal(op.call(data_, data_ + 32, 4, type(12), ncclSum, 0, comm_[0]), ncclInvalidArgument,
                      "datatype 12");
        ExpectRefusal(op.call(data_, data_ + 32, 4, type(-1), redop(99), 7, comm_[0]), ncclInvalidArgument,
                      "datatype -1"); // the first
        ExpectRefusal(op.call(data_, data_ + 32, SIZE_MAX / 2, ncclDouble, ncclSum, 0, comm_[0]),
                      ncclInvalidArgument, name);
        if (op.reduces) {
            ExpectRefusal(op.call(data_, data_ + 32, 4, ncclFloat, redop(99), 0, comm_[0]),
                          ncclInvalidArgument, "reduction 99");
            ExpectRefusal(op.call(data_, data_ + 32, 4, ncclFloat, redop(-1), 0, comm_[0]),
                          ncclInvalidArgument, "reduction -1");
        }
        if (op.reads)
            ExpectRefusal(op.call(nullptr, data_ + 32, 4, ncclFloat, ncclSum, 0, comm_[0]),
                          ncclInvalidArgument, "sendbuff is NULL");
        if (op.writes)
            ExpectRefusal(op.call(data_, nullptr, 4, ncclFloat, ncclSum, 0, comm_[0]), ncclInvalidArgument,
                          name == "ncclBcast" ? "the buffer is NULL" : "recvbuff is NULL");
        if (op.rooted) {
            ExpectRefusal(op.call(data_, data_ + 32, 4, ncclFloat, ncclSum, 2, comm_[0]), ncclInvalidArgument,
                          "2 is outside 0..1"); // A07
            ExpectRefusal(op.call(data_, data_ + 32, 4, ncclFloat, ncclSum, -1, comm_[0]),
                          ncclInvalidArgument, "-1 is outside 0..1");
        }
    }
}

// Nothing is read or written then, so there need be no buffers; alone, and in one launch with work that has some.
TEST_F(Arguments, CountsOfZeroNeedNoBuffers)
{
    for (const Spoilable &op : Operations()) {
        SCOPED_TRACE(op.name);
        for (bool has_company : {false, true}) {
            EXPECT_EQ(ncclGroupStart(), ncclSuccess);
            for (int r = 0; r < 2; r++) {
                bool is_message = op.name == std::string("ncclSend") || op.name == std::string("ncclRecv");
                if (is_message) { // to and from both ranks
                    for (int peer = 0; peer < 2; peer++) {
                        EXPECT_EQ(ncclSend(nullptr, 0, ncclFloat, peer, comm_[r], nullptr), ncclSuccess);
                        EXPECT_EQ(ncclRecv(nullptr, 0, ncclFloat, peer, comm_[r], nullptr), ncclSuccess);
                    }
                } else {
                    EXPECT_EQ(op.call(nullptr, nullptr, 0, ncclFloat, ncclSum, 0, comm_[r]), ncclSuccess)
                        << LastError();
                }
                if (has_company) {
                    float *own = data_ + 8 * r;
                    EXPECT_EQ(ncclAllReduce(own, own, 1, ncclFloat, ncclSum, comm_[r], nullptr), ncclSuccess);
                }
            }
            EXPECT_EQ(ncclGroupEnd(), ncclSuccess) << LastError();
            for (int r = 0; r < 2; r++)
                EXPECT_EQ(Outcome(r, comm_[r], ncclSuccess), ncclSuccess) << LastError();
        }
    }
}

TEST_F(Arguments, FinalizedTakesNoMoreCalls)
{
    ncclComm_t comm;
    int count = 0;

    ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    ExpectRefusal(ncclAllReduce(data_, data_, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidArgument,
                  "finalized");
    ExpectRefusal(ncclCommFinalize(comm), ncclInvalidArgument, "finalized");
    EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST_F(Arguments, Memory)
{
    void *pointer = nullptr;

    ASSERT_EQ(ncclMemAlloc(&pointer, 1000), ncclSuccess) << LastError();
    ASSERT_NE(pointer, nullptr);
    memset(pointer, 1, 1000);
    EXPECT_EQ(ncclMemFree(pointer), ncclSuccess) << LastError();
    EXPECT_EQ(ncclMemFree(nullptr), ncclSuccess) << LastError();
    EXPECT_EQ(ncclMemFree(data_), ncclUnhandledCudaError);
    EXPECT_EQ(ncclMemAlloc(nullptr, 1000), ncclUnhandledCudaError);
    EXPECT_EQ(ncclMemAlloc(&pointer, 0), ncclSuccess) << LastError();
    EXPECT_EQ(pointer, nullptr);
    EXPECT_EQ(ncclMemAlloc(&pointer, SIZE_MAX / 2), ncclUnhandledCudaError);
}

TEST_F(Arguments, ReductionsOfOnesOwn)
{
    ncclRedOp_t op, other;
    float scalar = 2;

    ExpectRefusal(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, nullptr),
                  ncclInvalidArgument, "NULL");
    ExpectRefusal(ncclRedOpCreatePreMulSum(nullptr, &scalar, ncclFloat, ncclScalarHostImmediate, comm_[0]),
                  ncclInvalidArgument, "operation");
    ExpectRefusal(ncclRedOpCreatePreMulSum(&op, nullptr, ncclFloat, ncclScalarDevice, comm_[0]),
                  ncclInvalidArgument, "of the scalar is NULL");
    for (int residence : {-1, 2}) {
        ExpectRefusal(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat,
                                               static_cast<ncclScalarResidence_t>(residence), comm_[0]),
                      ncclInvalidArgument, "residence " + std::to_string(residence));
    }
    for (int residence : {ncclScalarDevice, ncclScalarHostImmediate}) {
        for (int type : {-1, 12}) {
            ExpectRefusal(ncclRedOpCreatePreMulSum(&op, &scalar, static_cast<ncclDataType_t>(type),
                                                   static_cast<ncclScalarResidence_t>(residence), comm_[0]),
                          ncclInvalidArgument, "datatype " + std::to_string(type));
        }
    }
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, comm_[0]),
              ncclSuccess);
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&other, &scalar, ncclFloat, ncclScalarHostImmediate, comm_[1]),
              ncclSuccess);
    EXPECT_GE(static_cast<int>(op), static_cast<int>(ncclNumOps));
    EXPECT_NE(op, other);
    ExpectRefusal(ncclAllReduce(data_, data_, 1, ncclDouble, op, comm_[0], nullptr), ncclInvalidArgument,
                  "was made for ncclFloat32");
    ExpectRefusal(ncclAllReduce(data_, data_, 1, ncclFloat, op, comm_[1], nullptr), ncclInvalidArgument,
                  "no such operation");
    ExpectRefusal(ncclRedOpDestroy(op, comm_[1]), ncclInvalidArgument, "no such operation");
    ExpectRefusal(ncclRedOpDestroy(ncclSum, comm_[0]), ncclInvalidArgument, "built-in");
    ExpectRefusal(ncclRedOpDestroy(op, nullptr), ncclInvalidArgument, "NULL");
    EXPECT_EQ(ncclRedOpDestroy(op, comm_[0]), ncclSuccess);
    ExpectRefusal(ncclRedOpDestroy(op, comm_[0]), ncclInvalidArgument, "no such operation");
    EXPECT_EQ(ncclRedOpDestroy(other, comm_[1]), ncclSuccess);
}

// Each is found among all others, and none twice, in whatever order they go.
TEST_F(Arguments, ManyReductionsOfOnesOwn)
{
    std::vector<ncclRedOp_t> ops(100000);
    float scalar = 1;

    for (ncclRedOp_t &op : ops)
        ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat, ncclScalarHostImmediate, comm_[0]),
                  ncclSuccess);
    for (size_t i = 0; i < ops.size(); i += 2)
        ASSERT_EQ(ncclRedOpDestroy(ops[i], comm_[0]), ncclSuccess) << i;
    for (size_t i = ops.size(); i-- > ops.size() / 2;) {
        ASSERT_EQ(ncclRedOpDestroy(ops[i], comm_[0]), i % 2 ? ncclSuccess : ncclInvalidArgument) << i;
    }
    ExpectRefusal(ncclAllReduce(data_, data_, 1, ncclDouble, ops[1], comm_[0], nullptr), ncclInvalidArgument,
                  "was made for ncclFloat32"); // still there; the rest goes with the communicator
    ExpectRefusal(ncclAllReduce(data_, data_, 1, ncclFloat, ops[2], comm_[0], nullptr), ncclInvalidArgument,
                  "no such operation");
}

TEST_F(Arguments, PreMulSumMultipliesFirst)
{
    ncclRedOp_t op[2];
    float scalar = 3, in[2] = {10, 20}, out[2] = {};
    void *device_scalar;

    ASSERT_EQ(ncclMemAlloc(&device_scalar, sizeof(float)), ncclSuccess);
    // Rank 0 from the host, and destroyed before the group runs; rank 1 from device memory, which is read
    // when it runs.
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op[0], &scalar, ncclFloat, ncclScalarHostImmediate, comm_[0]),
              ncclSuccess);
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&op[1], device_scalar, ncclFloat, ncclScalarDevice, comm_[1]),
              ncclSuccess);
    scalar = -1;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < 2; r++) {
        EXPECT_EQ(ncclAllReduce(&in[r], &out[r], 1, ncclFloat, op[r], comm_[r], nullptr), ncclSuccess)
            << LastError();
        EXPECT_EQ(ncclRedOpDestroy(op[r], comm_[r]), ncclSuccess);
    }
    *static_cast<float *>(device_scalar) = 0.5f;
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << LastError();
    for (int r = 0; r < 2; r++)
        EXPECT_EQ(Outcome(r, comm_[r], ncclSuccess), ncclSuccess) << LastError();
    EXPECT_EQ(out[0], 40);
    EXPECT_EQ(out[1], 40);
    EXPECT_EQ(ncclMemFree(device_scalar), ncclSuccess);
}

// ---- ncclConfig_t of every version of the interface ----

ncclResult_t InitWith(ncclConfig_t *config)
{
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    ncclResult_t result = ncclGetUniqueId(&id);

    if (result == ncclSuccess)
        result = ncclCommInitRankConfig(&comm, 1, id, 0, config);
    EXPECT_EQ(result == ncclSuccess, comm != nullptr);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    return result;
}

struct Age {
    size_t bytes;
    unsigned version;
};

const Age kAges[] = {{24, 21400}, {40, 21700}, {48, 21800}, {48, 22600}, {72, 22700},
                     {80, 22800}, {88, 22900}, {96, 23000}, {96, 23007}};

TEST(Config, CallersOfEveryAgeAreUnderstood)
{
    for (const Age &age : kAges) {
        SCOPED_TRACE(age.version);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.size = age.bytes;
        config.version = age.version;
        // What the caller's struct does not have is not even looked at.
        memset(reinterpret_cast<char *>(&config) + age.bytes, 0x77, sizeof(config) - age.bytes);
        EXPECT_EQ(InitWith(&config), ncclSuccess) << LastError();
        config.blocking = 7;
        ExpectRefusal(InitWith(&config), ncclInvalidArgument, "blocking is 7");
        config.blocking = 0;
        ExpectRefusal(InitWith(&config), ncclInvalidUsage, "not in this version");
    }
}

TEST(Config, NewerCallersTailIsIgnored)
{
    struct {
        ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
        int more[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    } config;
    config.known.size = sizeof(config);
    config.known.version = 24001;
    EXPECT_EQ(InitWith(&config.known), ncclSuccess) << LastError();
}

TEST(Config, UninitialisedStructsAreRefused)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.magic = 0x12345;
    ExpectRefusal(InitWith(&config), ncclInvalidArgument, "magic");
    for (size_t bytes : {0, 8, 15}) {
        config = NCCL_CONFIG_INITIALIZER;
        config.size = bytes;
        ExpectRefusal(InitWith(&config), ncclInvalidArgument, "size");
    }
}

// Fields that a version did not have may hold anything where an old initializer left its padding.
TEST(Config, FieldsUnknownToTheCallersVersionDoNotCount)
{
    struct Field {
        const char *name;
        int ncclConfig_t::*member;
        unsigned since;
        int bad;
    };
    const Field fields[] = {
        {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, 21700, -1},
        {"maxCTAs", &ncclConfig_t::maxCTAs, 21700, 0},
        {"collnetEnable", &ncclConfig_t::collnetEnable, 22700, 2},
        {"CTAPolicy", &ncclConfig_t::CTAPolicy, 22700, 4},
        {"shrinkShare", &ncclConfig_t::shrinkShare, 22700, -1},
        {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 22700, 0},
        {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 22800, 65},
        {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 22800, 2},
        {"graphUsageMode", &ncclConfig_t::graphUsageMode, 22900, 3},
        {"numRmaCtx", &ncclConfig_t::numRmaCtx, 22900, -1},
        {"maxP2pPeers", &ncclConfig_t::maxP2pPeers, 23000, 0},
        {"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 23005, 2},
    };
    for (const Field &field : fields) {
        SCOPED_TRACE(field.name);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.*field.member = field.bad;
        config.version = field.since;
        ExpectRefusal(InitWith(&config), ncclInvalidArgument, field.name);
        config.version = field.since - 1;
        EXPECT_EQ(InitWith(&config), ncclSuccess) << LastError();
    }
}

TEST(Config, FieldsWithoutEffectAreLogged)
{
    char path[] = "/tmp/rondo-log-XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
    ncclResetDebugInit();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    EXPECT_EQ(InitWith(&config), ncclSuccess);
    config.graphUsageMode = 2; // the default
    config.maxCTAs = 4;
    EXPECT_EQ(InitWith(&config), ncclSuccess);
    config.graphUsageMode = 0;
    config.netName = "Socket";
    config.trafficClass = -1;
    EXPECT_EQ(InitWith(&config), ncclSuccess);
    unsetenv("NCCL_DEBUG");
    unsetenv("NCCL_DEBUG_FILE");
    ncclResetDebugInit();
    std::ifstream file(path);
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);) {
        if (line.find("has no effect") != std::string::npos)
            found.push_back(line.substr(line.find("version:")));
    }
    unlink(path);
    EXPECT_EQ(found, std::vector<std::string>{"version: netName=Socket trafficClass=-1 graphUsageMode=0"});
}

TEST(Config, BoundsOfChannels)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = 4;
    EXPECT_EQ(InitWith(&config), ncclSuccess) << LastError();
    config.minCTAs = 4;
    EXPECT_EQ(InitWith(&config), ncclSuccess) << LastError();
    config.minCTAs = 5;
    ExpectRefusal(InitWith(&config), ncclInvalidArgument, "minCTAs is 5");
    config.maxCTAs = NCCL_CONFIG_UNDEF_INT; // as raw values are compared, a maximum must be set too
    ExpectRefusal(InitWith(&config), ncclInvalidArgument, "minCTAs is 5");
    EXPECT_EQ(InitWith(nullptr), ncclSuccess) << LastError();
}

TEST(Config, NameIsCopiedAndUsedInMessages)
{
    char name[] = "gradients";
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t comm;
    config.commName = name;

    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), ncclSuccess) << LastError();
    memset(name, 0, sizeof(name));
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

} // namespace
