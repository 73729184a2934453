// paged_comm.h - a communicator of rank 0 whose ranks' pages the test fills in; it has no device and no peers.
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
        ASSERT_EQ(rondo_comm_create(0, RANKS, 0, &config, nullptr, &comm_), ncclSuccess);
        comm_->page = &pages_[0];
        for (int r = 0; r < RANKS; r++)
            comm_->members[r].page = &pages_[r];
    }

    void TearDown() override
    {
        comm_->page = nullptr;
        rondo_comm_put(comm_);
    }

    std::unique_ptr<rondo_rank_page[]> pages_ = std::make_unique<rondo_rank_page[]>(RANKS);
    ncclComm *comm_ = nullptr;
};

#endif
