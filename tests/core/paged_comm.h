// paged_comm.h - the communicator of each rank, whose ranks' pages the test fills in; they have no device and
// no peers.
#ifndef RONDO_TESTS_CORE_PAGED_COMM_H
#define RONDO_TESTS_CORE_PAGED_COMM_H

#include <gtest/gtest.h>

#include <memory>

extern "C" {
#include "comm.h"
}

template <int RANKS> class PagedComm : public testing::Test
{
  protected:
    void SetUp() override
    {
        rondo_config config = {};

        pages_ = std::make_unique<rondo_rank_page[]>(RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            ASSERT_EQ(rondo_comm_create(rank, RANKS, 0, &config, nullptr, &comms_[rank]), ncclSuccess);
            comms_[rank]->page = &pages_[rank];
            for (int r = 0; r < RANKS; r++)
                comms_[rank]->members[r].page = &pages_[r];
        }
    }

    void TearDown() override
    {
        for (ncclComm *comm : comms_) {
            comm->page = nullptr;
            rondo_comm_put(comm);
        }
    }

    std::unique_ptr<rondo_rank_page[]> pages_;
    ncclComm *comms_[RANKS] = {};
};

#endif
