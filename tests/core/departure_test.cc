// A rank that leaves while another waits: rank 0's view of pages that the test fills in.
#include "paged_comm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

extern "C" {
#include "departure.h"
#include "record.h"
}

namespace
{

constexpr uint64_t kStart = 5000000000, kSecond = 1000000000;

class Departure : public PagedComm<3>
{
  protected:
    static rondo_wait WaitFor(int peer, rondo_operation operation)
    {
        rondo_wait wait = {};
        wait.peer = peer;
        wait.number = 1;
        wait.kind = RONDO_WAIT_RECV;
        wait.operation = operation;
        return wait;
    }

    void Call(int rank, rondo_operation operation, int root)
    {
        rondo_task task = {};
        task.operation = operation;
        task.root = root;
        task.number = 1;
        task.count = 1;
        rondo_record_write(comms_[rank], &task);
    }

    void Leave(int rank, rondo_goodbye how)
    {
        pages_[rank].goodbye = how;
    }

    // Looks until long after; whether one of them ended the communicator, and not before its time.
    bool Ends(const rondo_wait &wait)
    {
        EXPECT_FALSE(rondo_departure_look(comms_[0], &wait, kStart)) << "at first sight";
        EXPECT_FALSE(rondo_departure_look(comms_[0], &wait, kStart + kSecond / 2));
        EXPECT_EQ(pages_[0].stop.value, 0u);
        return rondo_departure_look(comms_[0], &wait, kStart + 60 * kSecond) && pages_[0].stop.value != 0;
    }
};

TEST_F(Departure, NobodyHasLeft)
{
    EXPECT_FALSE(Ends(WaitFor(1, RONDO_OP_RECV)));
}

class AnyDeparture : public Departure, public testing::WithParamInterface<rondo_goodbye>
{
};

INSTANTIATE_TEST_SUITE_P(Ways, AnyDeparture,
                         testing::Values(RONDO_GOODBYE_CLOSED, RONDO_GOODBYE_ABORTED, RONDO_GOODBYE_EXITED));

TEST_P(AnyDeparture, OfASenderThatNeverSent)
{
    Leave(1, GetParam());
    EXPECT_TRUE(Ends(WaitFor(1, RONDO_OP_RECV)));
}

// However long this rank's threads do not run, what it waits for has come.
TEST_F(Departure, OfASenderThatSentIsNoEnd)
{
    Call(1, RONDO_OP_SEND, 0);
    Leave(1, RONDO_GOODBYE_CLOSED);
    EXPECT_FALSE(Ends(WaitFor(1, RONDO_OP_RECV)));
}

TEST_F(Departure, OfASenderThatAbortedItsSend)
{
    Call(1, RONDO_OP_SEND, 0);
    Leave(1, RONDO_GOODBYE_ABORTED);
    EXPECT_TRUE(Ends(WaitFor(1, RONDO_OP_RECV)));
}

TEST_F(Departure, OfSomebodyElseIsNoEndOfAMessage)
{
    Leave(2, RONDO_GOODBYE_CLOSED);
    EXPECT_FALSE(Ends(WaitFor(1, RONDO_OP_RECV)));
}

TEST_F(Departure, OfAnyThatHasNotCalledEndsACollective)
{
    Call(1, RONDO_OP_ALL_REDUCE, 0);
    Leave(2, RONDO_GOODBYE_CLOSED);
    EXPECT_TRUE(Ends(WaitFor(1, RONDO_OP_ALL_REDUCE)));
}

// Others leave because of the first.
TEST_F(Departure, OfSeveralTheFirstIsNamed)
{
    rondo_wait wait = WaitFor(1, RONDO_OP_ALL_REDUCE);
    Leave(2, RONDO_GOODBYE_ABORTED);
    EXPECT_FALSE(rondo_departure_look(comms_[0], &wait, kStart));
    Leave(1, RONDO_GOODBYE_ABORTED);
    EXPECT_FALSE(rondo_departure_look(comms_[0], &wait, kStart + kSecond / 2));
    EXPECT_TRUE(rondo_departure_look(comms_[0], &wait, kStart + 2 * kSecond));
    std::string text = comms_[0]->error_text;
    EXPECT_EQ(text.find("rank 2"), 0u) << text;
}

// The first may have been somebody whose part is here: for each its own second.
TEST_F(Departure, OfAnotherStartsASecondOfItsOwn)
{
    rondo_wait wait = WaitFor(1, RONDO_OP_ALL_REDUCE);
    Leave(2, RONDO_GOODBYE_CLOSED);
    EXPECT_FALSE(rondo_departure_look(comms_[0], &wait, kStart));
    Call(2, RONDO_OP_ALL_REDUCE, 0);
    Leave(1, RONDO_GOODBYE_CLOSED);
    EXPECT_FALSE(rondo_departure_look(comms_[0], &wait, kStart + 2 * kSecond));
    EXPECT_TRUE(rondo_departure_look(comms_[0], &wait, kStart + 4 * kSecond));
}

TEST_F(Departure, OfOneThatWasEndedIsNotBlamed)
{
    rondo_wait wait = WaitFor(1, RONDO_OP_ALL_REDUCE);
    Leave(1, RONDO_GOODBYE_ABORTED);
    EXPECT_FALSE(rondo_departure_look(comms_[0], &wait, kStart));
    strcpy(pages_[0].verdict, "rank 2 is to blame");
    pages_[0].stop.value = RONDO_STOP_VALUE((uint32_t)ncclSystemError | RONDO_STOP_TEXT, 2);
    EXPECT_TRUE(rondo_departure_look(comms_[0], &wait, kStart + 2 * kSecond));
    EXPECT_STREQ(comms_[0]->error_text, "rank 2 is to blame");
    EXPECT_EQ(comms_[0]->error, ncclSystemError);
}

TEST_F(Departure, OfAllThatHaveCalledEndsNoCollective)
{
    for (int rank : {1, 2}) {
        Call(rank, RONDO_OP_ALL_REDUCE, 0);
        Leave(rank, RONDO_GOODBYE_CLOSED);
    }
    EXPECT_FALSE(Ends(WaitFor(1, RONDO_OP_ALL_REDUCE)));
}

} // namespace
