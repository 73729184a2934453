// Whether the ranks have called the same collectives, from records that the test writes.
#include "paged_comm.h"

#include <string>

extern "C" {
#include "agreement.h"
#include "record.h"
}

namespace
{

constexpr int kRanks = 3;

class Agreement : public PagedComm<kRanks>
{
  protected:
    // The rank calls a collective `times` times.
    void Call(int rank, size_t count, int times = 1)
    {
        for (int i = 0; i < times; i++) {
            rondo_task task = {};
            task.operation = RONDO_OP_BROADCAST;
            task.dtype = ncclUint8;
            task.count = count;
            task.number = ++comms_[rank]->number;
            rondo_record_write(comms_[rank], &task);
        }
    }

    void CallOnAll(size_t count, int times = 1)
    {
        for (int r = 0; r < kRanks; r++)
            Call(r, count, times);
    }

    // What the rank says at a look, "" for nothing.
    std::string Look(int rank)
    {
        bool differs = rondo_agreement_look(comms_[rank], &comms_[rank]->look.agreed);
        EXPECT_EQ(differs, comms_[rank]->error == ncclInvalidUsage);
        return comms_[rank]->error_text;
    }
};

TEST_F(Agreement, GoesAsFarAsAllRanksHaveCalled)
{
    EXPECT_EQ(Look(0), "");
    CallOnAll(8, 1000);
    EXPECT_EQ(Look(0), "");
    EXPECT_EQ(comms_[0]->look.agreed, 1000u);
    Call(1, 8, 10);
    Call(2, 8, 5);
    EXPECT_EQ(Look(2), "");
    EXPECT_EQ(comms_[2]->look.agreed, 1000u);
    Call(0, 8, 7);
    EXPECT_EQ(Look(2), "");
    EXPECT_EQ(comms_[2]->look.agreed, 1005u);
}

TEST_F(Agreement, TheFirstDifferenceIsTold)
{
    CallOnAll(8, 70);
    EXPECT_EQ(Look(0), "");
    Call(0, 8);
    Call(1, 9);
    Call(2, 8);
    CallOnAll(0, 3);
    for (int r = 0; r < kRanks; r++) {
        std::string text = Look(r);
        EXPECT_NE(text.find("operation 71: rank 1 called Broadcast(count 9"), std::string::npos) << text;
        EXPECT_NE(text.find("ranks 0, 2 called Broadcast(count 8"), std::string::npos) << text;
    }
    for (int r = 0; r < kRanks; r++)
        EXPECT_NE(pages_[r].stop.value, 0u);
}

TEST_F(Agreement, ADifferenceIsNotForgottenWithItsRecords)
{
    for (int later : {RONDO_RECORDS - 1, RONDO_RECORDS, 100 * RONDO_RECORDS}) {
        TearDown();
        SetUp();
        CallOnAll(8, 5);
        for (int r = 0; r < kRanks; r++)
            Call(r, r == 2 ? 0 : 8);
        CallOnAll(8, later);
        std::string text = Look(0);
        if (later < RONDO_RECORDS)
            EXPECT_NE(text.find("operation 6: rank 2 called Broadcast(count 0"), std::string::npos) << text;
        else
            EXPECT_NE(text.find("rank 2 called others than ranks 0, 1"), std::string::npos) << text;
    }
}

TEST_F(Agreement, WaitsForARankThatIsFarAhead)
{
    CallOnAll(8, 5);
    Call(0, 9);
    Call(0, 8, RONDO_RECORDS);
    Call(1, 8);
    Call(2, 8);
    EXPECT_EQ(Look(0), "");
    EXPECT_EQ(Look(1), "");
    Call(1, 8, RONDO_RECORDS);
    Call(2, 8, RONDO_RECORDS);
    EXPECT_NE(Look(1).find("rank 0 called others than ranks 1, 2"), std::string::npos) << Look(1);
}

TEST_F(Agreement, CollectivesOfNothingAgree)
{
    for (int r = 0; r < kRanks; r++) {
        rondo_task task = {};
        task.operation = r == 0 ? RONDO_OP_BROADCAST : RONDO_OP_SCATTER;
        task.dtype = ncclUint8;
        task.root = r;
        task.number = ++comms_[r]->number;
        rondo_record_write(comms_[r], &task);
    }
    CallOnAll(8);
    EXPECT_EQ(Look(1), "");
    EXPECT_EQ(comms_[1]->look.agreed, 2u);
}

} // namespace
