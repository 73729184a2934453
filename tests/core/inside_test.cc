// Parts of core that can be asked alone: scalars, records in words, who waits for whom, and verdicts.
#include "paged_comm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "comm.h"
#include "record.h"
#include "redop.h"
#include "waits.h"
}

namespace
{

float Scalar(uint16_t bits, ncclDataType_t type)
{
    uint32_t word = static_cast<uint32_t>(rondo_scalar_bits(&bits, type));
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
}

TEST(Scalars, NarrowOnesAreWidenedExactly)
{
    EXPECT_EQ(Scalar(0x3c00, ncclFloat16), 1.0f);
    EXPECT_EQ(Scalar(0x0001, ncclFloat16), std::ldexp(1.0f, -24));
    EXPECT_EQ(Scalar(0x03ff, ncclFloat16), std::ldexp(1023.0f, -24));
    EXPECT_EQ(Scalar(0x0400, ncclFloat16), std::ldexp(1.0f, -14));
    EXPECT_EQ(Scalar(0x7bff, ncclFloat16), 65504.0f);
    EXPECT_EQ(Scalar(0xfc00, ncclFloat16), -INFINITY);
    EXPECT_TRUE(std::isnan(Scalar(0x7e00, ncclFloat16)));
    EXPECT_TRUE(std::signbit(Scalar(0x8000, ncclFloat16)));
    EXPECT_EQ(Scalar(0x3f80, ncclBfloat16), 1.0f);
    EXPECT_EQ(Scalar(0x38, ncclFloat8e4m3), 1.0f);
    EXPECT_EQ(Scalar(0x7e, ncclFloat8e4m3), 448.0f);
    EXPECT_EQ(Scalar(0x01, ncclFloat8e4m3), std::ldexp(1.0f, -9));
    EXPECT_TRUE(std::isnan(Scalar(0xff, ncclFloat8e4m3)));
    EXPECT_EQ(Scalar(0x3c, ncclFloat8e5m2), 1.0f);
    EXPECT_EQ(Scalar(0x7b, ncclFloat8e5m2), 57344.0f);
    EXPECT_EQ(Scalar(0x7c, ncclFloat8e5m2), INFINITY);
    EXPECT_EQ(Scalar(0x01, ncclFloat8e5m2), std::ldexp(1.0f, -16));
}

TEST(Scalars, OthersAreTheirOwnBits)
{
    int8_t small = -2;
    double wide = 0.1;
    uint64_t bits;
    memcpy(&bits, &wide, sizeof(bits));
    EXPECT_EQ(rondo_scalar_bits(&small, ncclInt8), 0xfeu);
    EXPECT_EQ(rondo_scalar_bits(&wide, ncclFloat64), bits);
}

std::string Text(unsigned kind, unsigned redop = 0)
{
    rondo_record record = {};
    char text[RONDO_RECORD_TEXT];
    record.kind = (uint8_t)kind;
    record.redop = (uint8_t)redop;
    record.dtype = ncclFloat32;
    record.count = 4;
    record.root = 3;
    return rondo_record_text(&record, text);
}

TEST(Records, SayWhatTheOperationHas)
{
    EXPECT_EQ(Text(RONDO_OP_ALL_REDUCE), "AllReduce(count 4, ncclFloat32, ncclSum)");
    EXPECT_EQ(Text(RONDO_OP_REDUCE_SCATTER, 255), "ReduceScatter(count 4, ncclFloat32, a user's operation)");
    EXPECT_EQ(Text(RONDO_OP_REDUCE, ncclMax), "Reduce(count 4, ncclFloat32, ncclMax, root 3)");
    for (unsigned kind : {RONDO_OP_ALL_GATHER, RONDO_OP_ALL_TO_ALL})
        EXPECT_NE(Text(kind).find("ncclFloat32)"), std::string::npos) << Text(kind);
    for (unsigned kind : {RONDO_OP_BROADCAST, RONDO_OP_GATHER, RONDO_OP_SCATTER})
        EXPECT_NE(Text(kind).find("ncclFloat32, root 3)"), std::string::npos) << Text(kind);
    EXPECT_EQ(Text(RONDO_OP_SEND), "Send(count 4, ncclFloat32, peer 3)");
    EXPECT_EQ(Text(RONDO_OP_RECV), "Recv(count 4, ncclFloat32, peer 3)");
    EXPECT_EQ(Text(200), "unknown operation(count 4, ncclFloat32)");
}

constexpr int kRanks = 4;

// Rank 0's view of ranks whose pages the test fills in.
class Waits : public PagedComm<kRanks>
{
  protected:
    // Rank has a launch that waits for peer.
    void Wait(int rank, int peer, int note = 0)
    {
        pages_[rank].launched = 1;
        pages_[rank].notes[note].peer = peer;
        pages_[rank].notes[note].number = 7;
        pages_[rank].notes[note].operation = RONDO_OP_SEND;
        pages_[rank].notes[note].wait = RONDO_WAIT_SEND;
    }

    uint64_t Closure()
    {
        return rondo_wait_closure(comms_[0], in_);
    }

    bool in_[kRanks] = {};
};

TEST_F(Waits, TwoForEachOther)
{
    char text[400];
    Wait(0, 1);
    Wait(1, 0);
    EXPECT_NE(Closure(), 0u);
    EXPECT_TRUE(in_[0] && in_[1] && !in_[2] && !in_[3]);
    rondo_wait_cycle_text(comms_[0], text, sizeof(text));
    EXPECT_EQ(std::string(text).substr(0, 11), "0 -> 1 -> 0") << text;
}

TEST_F(Waits, CycleThatTheAskerIsNotOn)
{
    char text[400];
    Wait(0, 3);
    Wait(3, 2);
    Wait(2, 1);
    Wait(1, 2);
    EXPECT_NE(Closure(), 0u);
    rondo_wait_cycle_text(comms_[0], text, sizeof(text));
    EXPECT_EQ(std::string(text).substr(0, 11), "1 -> 2 -> 1") << text;
}

TEST_F(Waits, OneThatMayMoveSavesAll)
{
    Wait(0, 1);
    Wait(1, 2);
    EXPECT_EQ(Closure(), 0u) << "rank 2 has called nothing yet";
    pages_[2].launched = 1;
    EXPECT_EQ(Closure(), 0u) << "rank 2 is running";
    Wait(2, 0);
    EXPECT_NE(Closure(), 0u);
    Wait(2, 3, 5);
    EXPECT_EQ(Closure(), 0u) << "rank 2 also waits for rank 3, which may move";
    pages_[2].landed = 1;
    EXPECT_EQ(Closure(), 0u) << "what rank 2 waited for has come";
}

TEST_F(Waits, AnyMovementIsSeen)
{
    Wait(0, 1);
    Wait(1, 0);
    uint64_t before = Closure();
    EXPECT_EQ(Closure(), before);
    pages_[1].notes[0].sequence++;
    EXPECT_NE(Closure(), before);
}

TEST_F(Waits, NonsenseInAPageIsNoWait)
{
    Wait(0, 1);
    Wait(1, 99);
    EXPECT_EQ(Closure(), 0u);
    pages_[1].notes[0].peer = -5;
    EXPECT_EQ(Closure(), 0u);
    pages_[1].notes[0].peer = 0;
    pages_[1].notes[0].wait = 77;
    EXPECT_EQ(Closure(), 0u);
}

// Rank 0 ends both; rank 1's verdict is being written by another rank.
class Verdict : public PagedComm<2>
{
  protected:
    void SetUp() override
    {
        PagedComm::SetUp();
        pages_[1].verdict_claim = 1;
    }
};

// Whoever raises its stop, the text that was being written is there then.
TEST_F(Verdict, IsThereWhenStopIsRaised)
{
    std::thread other([&] {
        usleep(5000);
        strcpy(pages_[1].verdict, "theirs");
        uint64_t none = 0;
        __atomic_compare_exchange_n(&pages_[1].stop.value, &none,
                                    RONDO_STOP_VALUE(ncclRemoteError | RONDO_STOP_TEXT, 1), false,
                                    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    });
    rondo_comm_end_all(comms_[0], ncclRemoteError, 1, "ours");
    other.join();
    EXPECT_TRUE(pages_[0].stop.value & RONDO_STOP_TEXT);
    EXPECT_STREQ(pages_[0].verdict, "ours");
    EXPECT_TRUE(pages_[1].stop.value & RONDO_STOP_TEXT);
    EXPECT_STREQ(pages_[1].verdict, "theirs");
}

// A writer that died before it raised stop does not keep the others from it.
TEST_F(Verdict, OfADeadWriterIsNotWaitedForLong)
{
    rondo_comm_end_all(comms_[0], ncclRemoteError, 1, "ours");
    EXPECT_EQ(pages_[1].stop.value, RONDO_STOP_VALUE(ncclRemoteError, 1));
}

} // namespace
