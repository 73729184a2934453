// Unique ids as bytes, and the small pure functions of the root.
#include "loopback_ranks.h"

namespace
{

rondo_id Sample()
{
    rondo_id id{};
    id.root.in4.sin_family = AF_INET;
    id.root.in4.sin_addr.s_addr = htonl(0x0a010203);
    id.root.in4.sin_port = htons(777);
    std::memset(&id.secret, 0x5a, sizeof(id.secret));
    return id;
}

TEST(Id, RoundTrips)
{
    rondo_id id = Sample(), seen{};
    ncclUniqueId bytes;
    std::memset(&id.root.in4.sin_zero, 0x33, sizeof(id.root.in4.sin_zero)); // must not travel
    rondo_id_write(&id, &bytes);
    ASSERT_EQ(rondo_id_read(&bytes, &seen), ncclSuccess) << rondo_error_last();
    EXPECT_FALSE(seen.is_fixed);
    EXPECT_EQ(seen.root.in4.sin_addr.s_addr, id.root.in4.sin_addr.s_addr);
    EXPECT_EQ(seen.root.in4.sin_port, id.root.in4.sin_port);
    EXPECT_EQ(std::memcmp(&seen.secret, &id.secret, sizeof(id.secret)), 0);
    ncclUniqueId again;
    id = Sample();
    rondo_id_write(&id, &again);
    EXPECT_EQ(std::memcmp(&bytes, &again, sizeof(bytes)), 0) << "equal ids are equal bytes";
    for (size_t at = 60; at < sizeof(bytes); at++)
        EXPECT_EQ(reinterpret_cast<char *>(&bytes)[at], 0);
}

TEST(Id, EveryChangeOutsideAddressAndSecretIsNoticed)
{
    rondo_id id = Sample(), seen{};
    ncclUniqueId bytes;
    rondo_id_write(&id, &bytes);
    for (size_t at = 0; at < sizeof(bytes); at++) {
        if (at >= 16 && at < 64)
            continue;
        for (int bit = 0; bit < 8; bit++) {
            ncclUniqueId changed = bytes;
            reinterpret_cast<unsigned char *>(&changed)[at] ^= static_cast<unsigned char>(1 << bit);
            bool is_fixed_magic = rondo_id_read(&changed, &seen) == ncclSuccess && seen.is_fixed;
            EXPECT_TRUE(is_fixed_magic || rondo_id_read(&changed, &seen) == ncclInvalidArgument)
                << at << "." << bit;
        }
    }
}

TEST(Id, NonsenseIsRefused)
{
    ncclUniqueId bytes{};
    rondo_bootstrap *bootstrap = nullptr;
    EXPECT_EQ(rondo_bootstrap_join(&bytes, 0, 1, UINT64_MAX, nullptr, &bootstrap), ncclInvalidArgument)
        << "zeros";
    for (int i = 0; i < 1000; i++) {
        ASSERT_EQ(rondo_random_bytes(&bytes, sizeof(bytes)), ncclSuccess);
        ASSERT_EQ(rondo_bootstrap_join(&bytes, 0, 1, UINT64_MAX, nullptr, &bootstrap), ncclInvalidArgument);
    }
    EXPECT_EQ(bootstrap, nullptr);
}

TEST(Id, EachHasItsOwnSecret)
{
    Environment environment;
    environment.Set("RONDO_INIT_TIMEOUT", "1"); // nobody will use them: the root ends by itself
    ncclUniqueId one{}, other{};
    rondo_id first{}, second{};
    ASSERT_EQ(rondo_bootstrap_create_id(&one), ncclSuccess);
    ASSERT_EQ(rondo_bootstrap_create_id(&other), ncclSuccess);
    ASSERT_EQ(rondo_id_read(&one, &first), ncclSuccess);
    ASSERT_EQ(rondo_id_read(&other, &second), ncclSuccess);
    EXPECT_NE(std::memcmp(&first.secret, &second.secret, sizeof(first.secret)), 0);
    EXPECT_NE(first.root.in4.sin_port, second.root.in4.sin_port);
}

TEST(Id, AnUnusedOneEndsByItself)
{
    Environment environment;
    environment.Set("RONDO_INIT_TIMEOUT", "1");
    int descriptors = CountDescriptors(), threads = CountThreads();
    ncclUniqueId id{};
    ASSERT_EQ(rondo_bootstrap_create_id(&id), ncclSuccess);
    EXPECT_GT(CountDescriptors(), descriptors);
    ExpectResources(descriptors, threads);
}

TEST(RootArithmetic, MissingRanksAreFewWords)
{
    char out[64];
    std::vector<unsigned char> there(10, 1);
    EXPECT_EQ(rondo_ranks_missing(there.data(), 10, out, sizeof(out)), 0);
    EXPECT_STREQ(out, "none");
    there[3] = 0;
    EXPECT_EQ(rondo_ranks_missing(there.data(), 10, out, sizeof(out)), 1);
    EXPECT_STREQ(out, "3");
    there[0] = there[4] = there[9] = 0;
    EXPECT_EQ(rondo_ranks_missing(there.data(), 10, out, sizeof(out)), 4);
    EXPECT_STREQ(out, "0,3-4,9");
    std::vector<unsigned char> every_other(100000, 0);
    for (size_t i = 0; i < every_other.size(); i += 2)
        every_other[i] = 1;
    EXPECT_EQ(rondo_ranks_missing(every_other.data(), 100000, out, sizeof(out)), 50000);
    EXPECT_LT(std::strlen(out), sizeof(out));
    EXPECT_TRUE(Contains(out, ",...")) << out;
}

TEST(RootArithmetic, Rounds)
{
    for (int ranks = 1; ranks < 5000; ranks++) {
        int rounds = rondo_rounds(ranks);
        EXPECT_GE(1 << rounds, ranks);
        EXPECT_TRUE(rounds == 0 || 1 << (rounds - 1) < ranks);
    }
    EXPECT_EQ(rondo_rounds(RONDO_RANKS_MOST), RONDO_ROUNDS_MOST);
}

} // namespace
