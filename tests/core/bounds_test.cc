// Buffers that the device knows: a call for more than they hold is refused before anything is touched.
#include "refusals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <dlfcn.h>

namespace
{

// Device memory, or host memory that the runtime made, of exactly kCount floats.
class Bounds : public Arguments
{
  protected:
    static constexpr size_t kCount = 1 << 18;
    static constexpr size_t kBytes = kCount * sizeof(float);

    void SetUp() override
    {
        Arguments::SetUp();
        for (float *&memory : memory_) {
            void *pointer = nullptr;
            ASSERT_EQ(ncclMemAlloc(&pointer, kBytes), ncclSuccess) << LastError();
            memory = static_cast<float *>(pointer);
        }
    }

    void TearDown() override
    {
        for (float *memory : memory_)
            EXPECT_EQ(ncclMemFree(memory), ncclSuccess) << LastError();
        Arguments::TearDown();
    }

    // Every operation with `small` as each of its buffers in turn, for count floats of which there are fewer.
    void ExpectRefusals(float *small, size_t count, const std::string &needle)
    {
        // A buffer that nobody knows the size of: it is refused before it is touched.
        float *other = data_;
        for (const Spoilable &op : Operations()) {
            SCOPED_TRACE(op.name);
            bool is_bcast = op.name == std::string("ncclBcast");
            if (op.reads) {
                ExpectRefusal(op.call(small, other, count, ncclFloat, ncclSum, 0, comm_[0]),
                              ncclInvalidArgument, needle);
                EXPECT_NE(LastError().find("sendbuff"), std::string::npos) << LastError();
                EXPECT_NE(LastError().find(op.name), std::string::npos) << LastError();
            }
            if (op.writes) {
                ExpectRefusal(op.call(other, small, count, ncclFloat, ncclSum, 0, comm_[0]),
                              ncclInvalidArgument, needle);
                EXPECT_NE(LastError().find(is_bcast ? "the buffer" : "recvbuff"), std::string::npos)
                    << LastError();
                EXPECT_NE(LastError().find(op.name), std::string::npos) << LastError();
            }
        }
    }

    float *memory_[4] = {};
};

TEST_F(Bounds, CountsBeyondTheAllocationAreRefused)
{
    std::string whole = std::to_string(kBytes) + " bytes left";
    ExpectRefusals(memory_[0], kCount + 1, whole);
    ExpectRefusals(memory_[0], size_t{1} << 33, whole);
    ExpectRefusals(memory_[0], size_t{1} << 58, whole);
    ExpectRefusals(memory_[0] + kCount - 1, 2, " 4 bytes left");
    ExpectRefusals(reinterpret_cast<float *>(reinterpret_cast<char *>(memory_[0]) + kBytes - 7), 2,
                   " 7 bytes left"); // aligned to nothing
}

// Two blocks of count, one for each rank, in the buffers that have them.
TEST_F(Bounds, BlocksOfAllRanksCount)
{
    float *in = memory_[0], *out = memory_[1];
    size_t count = kCount / 2 + 1;
    std::string needle = std::to_string(2 * count * sizeof(float)) + " bytes";

    ExpectRefusal(ncclAllGather(in, out, count, ncclFloat, comm_[0], nullptr), ncclInvalidArgument, needle);
    EXPECT_NE(LastError().find("recvbuff"), std::string::npos) << LastError();
    ExpectRefusal(ncclGather(in, out, count, ncclFloat, 0, comm_[0], nullptr), ncclInvalidArgument, needle);
    EXPECT_NE(LastError().find("recvbuff"), std::string::npos) << LastError();
    ExpectRefusal(ncclReduceScatter(in, out, count, ncclFloat, ncclSum, comm_[0], nullptr),
                  ncclInvalidArgument, needle);
    EXPECT_NE(LastError().find("sendbuff"), std::string::npos) << LastError();
    ExpectRefusal(ncclScatter(in, out, count, ncclFloat, 0, comm_[0], nullptr), ncclInvalidArgument, needle);
    EXPECT_NE(LastError().find("sendbuff"), std::string::npos) << LastError();
    ExpectRefusal(ncclAlltoAll(in, out, count, ncclFloat, comm_[0], nullptr), ncclInvalidArgument, needle);
}

TEST_F(Bounds, WhatJustFitsIsServed)
{
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < 2; r++) {
        float *in = memory_[2 * r], *out = memory_[2 * r + 1];
        std::fill(in, in + kCount, r + 1.0f);
        EXPECT_EQ(ncclAllReduce(in, out, kCount, ncclFloat, ncclSum, comm_[r], nullptr), ncclSuccess);
        EXPECT_EQ(ncclAllGather(in + kCount / 2, out, kCount / 2, ncclFloat, comm_[r], nullptr), ncclSuccess);
        // A buffer that this rank does not use is not looked at.
        EXPECT_EQ(
            ncclReduce(in, r == 0 ? out : out + kCount - 1, kCount, ncclFloat, ncclSum, 0, comm_[r], nullptr),
            ncclSuccess)
            << LastError();
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << LastError();
    for (int r = 0; r < 2; r++)
        EXPECT_EQ(Outcome(r, comm_[r], ncclSuccess), ncclSuccess) << LastError();
    EXPECT_EQ(memory_[1][kCount - 1], 3);
    EXPECT_EQ(memory_[3][kCount - 1], 2);
}

TEST_F(Bounds, FreedMemoryIsRefused)
{
    void *pointer = nullptr;
    ASSERT_EQ(ncclMemAlloc(&pointer, kBytes), ncclSuccess);
    ncclGroupStart(); // known to whatever remembers past answers
    for (int r = 0; r < 2; r++) {
        float *own = static_cast<float *>(pointer) + r; // two ranks must not work on the same element
        EXPECT_EQ(ncclAllReduce(own, own, 1, ncclFloat, ncclSum, comm_[r], nullptr), ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess) << LastError();
    for (int r = 0; r < 2; r++)
        EXPECT_EQ(Outcome(r, comm_[r], ncclSuccess), ncclSuccess);
    ASSERT_EQ(ncclMemFree(pointer), ncclSuccess);
    ExpectRefusals(static_cast<float *>(pointer), 1, "nothing is allocated");
}

// A factor on the device is read when the operation runs, so it is looked at whenever it is used.
TEST_F(Bounds, ScalarsOnTheDeviceAreChecked)
{
    void *freed = nullptr;
    ncclRedOp_t gone, cut;
    ASSERT_EQ(ncclMemAlloc(&freed, kBytes), ncclSuccess);
    char *end = reinterpret_cast<char *>(memory_[0]) + kBytes;
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&gone, freed, ncclFloat, ncclScalarDevice, comm_[0]), ncclSuccess);
    ASSERT_EQ(ncclRedOpCreatePreMulSum(&cut, end - 3, ncclFloat, ncclScalarDevice, comm_[0]), ncclSuccess);
    ASSERT_EQ(ncclMemFree(freed), ncclSuccess);
    for (const Spoilable &op : Operations()) {
        if (!op.reduces)
            continue;
        SCOPED_TRACE(op.name);
        ExpectRefusal(op.call(data_, data_ + 32, 1, ncclFloat, gone, 0, comm_[0]), ncclInvalidArgument,
                      "nothing is allocated");
        EXPECT_NE(LastError().find("scalar"), std::string::npos) << LastError();
        ExpectRefusal(op.call(data_, data_ + 32, 1, ncclFloat, cut, 0, comm_[0]), ncclInvalidArgument,
                      " 3 bytes left");
    }
    EXPECT_EQ(ncclRedOpDestroy(gone, comm_[0]), ncclSuccess);
    EXPECT_EQ(ncclRedOpDestroy(cut, comm_[0]), ncclSuccess);
}

TEST_F(Bounds, HostMemoryOfTheRuntimeIsChecked)
{
    auto allocate = reinterpret_cast<int (*)(void **, size_t)>(dlsym(RTLD_DEFAULT, "cudaMallocHost"));
    auto release = reinterpret_cast<int (*)(void *)>(dlsym(RTLD_DEFAULT, "cudaFreeHost"));
    void *pointer = nullptr;
    if (!allocate || !release)
        return; // there is no runtime in this variant of the program
    ASSERT_EQ(allocate(&pointer, kBytes), 0);
    ExpectRefusals(static_cast<float *>(pointer), kCount + 1, std::to_string(kBytes) + " bytes left");
    EXPECT_EQ(release(pointer), 0);
}

} // namespace
