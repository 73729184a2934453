// The agreement on sizes and settings: the smallest wish wins, and what must be equal is named when it is
// not.
#include "base/error.h"
#include "transport/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace
{

std::vector<rondo_peer> Peers(int ranks)
{
    std::vector<rondo_peer> peers(ranks);
    for (int i = 0; i < ranks; i++) {
        peers[i] = {};
        peers[i].rank = i;
        peers[i].version = 7;
        snprintf(peers[i].hostname, sizeof(peers[i].hostname), "host%d", i);
    }
    return peers;
}

void ExpectRefused(const std::vector<rondo_peer> &peers, std::initializer_list<const char *> words)
{
    rondo_layout layout = {1, 2, 3, 4};
    EXPECT_EQ(rondo_layout_agree(peers.data(), (int)peers.size(), &layout), ncclInvalidUsage);
    EXPECT_EQ(layout.pair_slot_bytes, 4u) << "written on failure";
    std::string text = rondo_error_last();
    for (const char *word : words)
        EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is not in: " << text;
}

TEST(Layout, DefaultsWithoutWishes)
{
    auto peers = Peers(5);
    rondo_layout layout;
    ASSERT_EQ(rondo_layout_agree(peers.data(), 5, &layout), ncclSuccess);
    EXPECT_EQ(layout.ranks, 5u);
    EXPECT_EQ(layout.channels, RONDO_CHANNELS);
    EXPECT_EQ(layout.ring_slot_bytes, RONDO_RING_SLOT_BYTES);
    EXPECT_EQ(layout.pair_slot_bytes, RONDO_PAIR_SLOT_BYTES);
}

TEST(Layout, SmallestWishOfAnyRankWins)
{
    for (int who = 0; who < 4; who++) {
        auto peers = Peers(4);
        peers[(who + 1) % 4].slot_bytes = 1 << 20;
        peers[who].slot_bytes = 4096 + 77;
        peers[who].channels = 3;
        peers[(who + 2) % 4].channels = 5;
        rondo_layout layout;
        ASSERT_EQ(rondo_layout_agree(peers.data(), 4, &layout), ncclSuccess);
        EXPECT_EQ(layout.ring_slot_bytes, 4096u) << "whole lines";
        EXPECT_EQ(layout.pair_slot_bytes, 4096u);
        EXPECT_EQ(layout.channels, 3u);
    }
}

TEST(Layout, WishesAreKeptInBounds)
{
    auto peers = Peers(2);
    rondo_layout layout;
    peers[0].slot_bytes = 1;
    peers[0].channels = UINT64_MAX;
    ASSERT_EQ(rondo_layout_agree(peers.data(), 2, &layout), ncclSuccess);
    EXPECT_EQ(layout.ring_slot_bytes, RONDO_SLOT_BYTES_MIN);
    EXPECT_EQ(layout.channels, RONDO_CHANNELS_MAX);
    peers[0].slot_bytes = UINT64_MAX;
    ASSERT_EQ(rondo_layout_agree(peers.data(), 2, &layout), ncclSuccess);
    EXPECT_EQ(layout.ring_slot_bytes, RONDO_SLOT_BYTES_MAX);
    EXPECT_EQ(layout.pair_slot_bytes, RONDO_PAIR_SLOT_BYTES) << "there is one for every peer";
}

TEST(Layout, DifferingSettingsNameRanksAndValues)
{
    auto peers = Peers(4);
    peers[2].settings = RONDO_SETTING_PRECISE;
    ExpectRefused(peers, {"RONDO_PRECISE is 0 on ranks 0, 1, 3 but 1 on rank 2 (host2)"});
    peers = Peers(2);
    peers[0].settings = RONDO_SETTING_DETERMINISTIC | RONDO_SETTING_PRECISE;
    peers[1].settings = RONDO_SETTING_PRECISE;
    ExpectRefused(peers, {"RONDO_DETERMINISTIC is 1 on rank 0 (host0) but 0 on rank 1 (host1)"});
    peers = Peers(3);
    peers[1].version = 8;
    peers[1].settings = 99;
    ExpectRefused(peers, {"wire format is 7 on ranks 0, 2 but 8 on rank 1 (host1)", "version"});
}

// They are told apart by what they allow, and shown in the user's words.
TEST(Layout, DifferingChoicesAreShownInWords)
{
    auto peers = Peers(3);
    peers[1].protocols = peers[2].protocols = 5;
    strcpy(peers[1].protocols_text, "LL");
    strcpy(peers[2].protocols_text, "ll");
    ExpectRefused(peers, {"NCCL_PROTO is unset on rank 0 (host0) but LL on ranks 1, 2", "alike"});
    peers[0].protocols = 5;
    rondo_layout layout;
    EXPECT_EQ(rondo_layout_agree(peers.data(), 3, &layout), ncclSuccess);
    peers[2].algorithms = 1;
    memset(peers[2].algorithms_text, 'r', sizeof(peers[2].algorithms_text)); // as a stranger might
    ExpectRefused(peers, {"NCCL_ALGO is unset on ranks 0, 1 but rrrrrr", "on rank 2 (host2)"});
}

// An entry by a function's name binds it also where it says what holds for all.
TEST(Layout, EntriesByNameMustAgreeToo)
{
    auto peers = Peers(2);
    strcpy(peers[0].algorithms_text, "tree");
    strcpy(peers[1].algorithms_text, "alltoall:tree;tree");
    peers[1].named = 1 << 6;
    ExpectRefused(peers,
                  {"NCCL_ALGO is tree on rank 0 (host0) but alltoall:tree;tree on rank 1 (host1)", "alike"});
}

TEST(Layout, LongListsAreCounted)
{
    auto peers = Peers(1000);
    for (int i = 300; i < 1000; i++)
        peers[i].settings = RONDO_SETTING_PRECISE;
    ExpectRefused(peers, {"0 on ranks 0, 1, 2, 3, 4, 5, 6, 7 and 292 more", "1 on ranks 300, 301, 302",
                          "and 692 more"});
    memset(peers[0].hostname, 'x', sizeof(peers[0].hostname));
    for (int i = 1; i < 1000; i++)
        peers[i].settings = RONDO_SETTING_PRECISE;
    ExpectRefused(peers, {"rank 0 (xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx)"});
}

} // namespace
