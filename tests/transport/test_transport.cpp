// The list of transports, the scores of every kind of pair, and the local transport.
#include "fake_device.h"

#include "base/error.h"
#include "base/host.h"
#include "mailbox_blocks.h"
#include "transport/mailbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

extern "C" {
#include "reach.h"
}

namespace
{

const rondo_transport_ops *Find(const char *name)
{
    int count = 0;
    const rondo_transport_ops *const *list = rondo_transport_list(&count);
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i]->name, name) == 0)
            return list[i];
    }
    return nullptr;
}

TEST(Transports, EverySlotOfEveryTransportIsFilled)
{
    int count = 0;
    const rondo_transport_ops *const *list = rondo_transport_list(&count);
    ASSERT_EQ(count, 2);
    for (int i = 0; i < count; i++) {
        EXPECT_NE(list[i]->name, nullptr);
        EXPECT_NE(list[i]->score, nullptr);
        EXPECT_NE(list[i]->attach, nullptr);
        EXPECT_NE(list[i]->connect, nullptr);
        EXPECT_NE(list[i]->page, nullptr);
        EXPECT_NE(list[i]->board, nullptr);
        EXPECT_NE(list[i]->death, nullptr);
        EXPECT_NE(list[i]->life, nullptr);
        EXPECT_NE(list[i]->release, nullptr);
        list[i]->release(nullptr);
    }
}

TEST(Transports, ScoresAreSymmetricAndOnePerPair)
{
    struct Case {
        uint64_t host, process;
        uint32_t service;
        unsigned local, shm;
    };
    rondo_peer self = {};
    self.host = 1;
    self.process = 10;
    self.service = 5;
    for (const Case &c : {Case{1, 10, 5, 100, 0}, Case{1, 11, 6, 0, 50}, Case{1, 11, 0, 0, 0},
                          Case{2, 11, 6, 0, 0}, Case{2, 10, 5, 0, 0}}) {
        rondo_peer peer = {};
        peer.host = c.host;
        peer.process = c.process;
        peer.service = c.service;
        EXPECT_EQ(Find("local")->score(&self, &peer), c.local);
        EXPECT_EQ(Find("local")->score(&peer, &self), c.local);
        EXPECT_EQ(Find("shm")->score(&self, &peer), c.shm);
        EXPECT_EQ(Find("shm")->score(&peer, &self), c.shm);
    }
}

TEST(Local, TwoRanksOfOneProcessExchangeASlot)
{
    rondo_layout layout = {2, 1, 1024, 1024};
    std::vector<rondo_peer> peers(2);
    void *boxes[2];
    for (int rank = 0; rank < 2; rank++) {
        boxes[rank] = aligned_alloc(4096, (rondo_mailbox_bytes(&layout) + 4095) / 4096 * 4096);
        memset(boxes[rank], 0, rondo_mailbox_bytes(&layout));
        peers[rank] = {};
        peers[rank].rank = rank;
        peers[rank].process = rondo_process_nonce();
        peers[rank].local_mailbox = (uint64_t)(uintptr_t)boxes[rank];
    }
    const rondo_transport_ops *local = Find("local");
    rondo_reach *reaches[2] = {};
    for (int rank = 0; rank < 2; rank++)
        ASSERT_EQ(local->attach(&peers[rank], &peers[1 - rank], 0, &reaches[rank]), ncclSuccess)
            << rondo_error_last();
    EXPECT_EQ(local->death(reaches[0]), -1);
    EXPECT_EQ(local->life(reaches[0]), -1);
    EXPECT_EQ((void *)local->page(reaches[0], &peers[1]), boxes[1]);
    EXPECT_NE(local->board(reaches[0]), nullptr);
    for (rondo_connection_kind kind : {RONDO_CONNECTION_PAIR, RONDO_CONNECTION_RING}) {
        rondo_connection connection = {kind, RONDO_PROTOCOL_SIMPLE, 0, 0, 0};
        rondo_end to = {}, from = {};
        ASSERT_EQ(local->connect(reaches[0], &layout, &peers[0], &peers[1], RONDO_SEND, &connection, &to),
                  ncclSuccess);
        ASSERT_EQ(local->connect(reaches[1], &layout, &peers[1], &peers[0], RONDO_RECV, &connection, &from),
                  ncclSuccess);
        to.slots[5] = (unsigned char)(77 + kind);
        to.heads[0].bytes = 6;
        __atomic_store_n(&to.posted->value, 1, __ATOMIC_RELEASE);
        EXPECT_EQ(rondo_line_read(from.posted), 1u);
        EXPECT_EQ(from.heads[0].bytes, 6u);
        EXPECT_EQ(from.slots[5], 77 + (int)kind);
    }
    for (int rank = 0; rank < 2; rank++) {
        local->release(reaches[rank]);
        free(boxes[rank]);
    }
}

TEST(Local, AnotherProcessIsRefused)
{
    rondo_peer self = {}, peer = {};
    self.process = rondo_process_nonce();
    peer.process = self.process + 1;
    rondo_reach *reach = nullptr;
    EXPECT_NE(Find("local")->attach(&self, &peer, 0, &reach), ncclSuccess);
    EXPECT_EQ(reach, nullptr);
    self.process = peer.process; // both of a process that is not this one, as in a forked child
    EXPECT_NE(Find("local")->attach(&self, &peer, 0, &reach), ncclSuccess);
    EXPECT_EQ(reach, nullptr);
}

} // namespace
