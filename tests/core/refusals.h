// refusals.h - every entry point that communicates, and what to expect of a call that is refused.
#ifndef RONDO_TESTS_REFUSALS_H
#define RONDO_TESTS_REFUSALS_H

#include "ranks.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

std::string LastError();

// The result is expected and the text contains what it is about.
void ExpectRefusal(ncclResult_t result, ncclResult_t expected, const std::string &needle);

// One entry point that communicates, with arguments to spoil.
struct Spoilable {
    const char *name;
    std::function<ncclResult_t(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, int root, ncclComm_t comm)>
        call;
    bool reads = true, writes = true, reduces = false, rooted = false; // on rank 0, with root 0
};

std::vector<Spoilable> Operations();

// A communicator of two ranks in this thread.
class Arguments : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(ncclCommInitAll(comm_, 2, nullptr), ncclSuccess) << LastError();
    }

    void TearDown() override
    {
        for (ncclComm_t comm : comm_)
            EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess) << LastError();
    }

    ncclComm_t comm_[2] = {};
    float data_[64] = {};
};

#endif
