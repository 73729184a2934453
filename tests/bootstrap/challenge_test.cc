// The four messages: what is accepted, and that nothing fits another place or time.
#include "loopback_ranks.h"

namespace
{

class Challenge : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(rondo_random_bytes(&secret_, sizeof(secret_)), ncclSuccess);
        ASSERT_EQ(rondo_hello_make(&hello_), ncclSuccess);
        ASSERT_EQ(rondo_proof_make(&secret_, &hello_, &proof_), ncclSuccess);
        entry_.purpose = RONDO_PURPOSE_PEER;
        entry_.from = 3;
        entry_.to = 4;
        rondo_entry_seal(&secret_, &hello_, &proof_, &entry_);
        rondo_welcome_make(&secret_, &hello_, &proof_, &welcome_);
    }

    rondo_secret secret_{};
    rondo_hello hello_{};
    rondo_proof proof_{};
    rondo_entry entry_{};
    rondo_welcome welcome_{};
};

// Whether check answers GOOD for no single-bit change of object but those in spared.
template <typename T, typename Check>
void EveryBitCounts(T object, Check check, size_t spared_from = 0, size_t spared_to = 0)
{
    EXPECT_EQ(check(object), RONDO_VERDICT_GOOD);
    for (size_t at = 0; at < sizeof(T); at++) {
        if (at >= spared_from && at < spared_to)
            continue;
        for (int bit = 0; bit < 8; bit++) {
            T changed = object;
            reinterpret_cast<unsigned char *>(&changed)[at] ^= static_cast<unsigned char>(1 << bit);
            EXPECT_NE(check(changed), RONDO_VERDICT_GOOD) << "byte " << at << " bit " << bit;
        }
    }
}

TEST_F(Challenge, EveryBitOfEveryMessageCounts)
{
    EveryBitCounts(
        proof_, [&](const rondo_proof &p) { return rondo_proof_check(&secret_, &hello_, &p); },
        offsetof(rondo_proof, reserved), offsetof(rondo_proof, nonce));
    EveryBitCounts(entry_,
                   [&](const rondo_entry &e) { return rondo_entry_check(&secret_, &hello_, &proof_, &e); });
    EveryBitCounts(welcome_, [&](const rondo_welcome &w) {
        return rondo_welcome_check(&secret_, &hello_, &proof_, &w);
    });
    EveryBitCounts(secret_, [&](const rondo_secret &s) { return rondo_proof_check(&s, &hello_, &proof_); });
    EveryBitCounts(secret_,
                   [&](const rondo_secret &s) { return rondo_entry_check(&s, &hello_, &proof_, &entry_); });
}

TEST_F(Challenge, RecordedMessagesFitNoOtherConnection)
{
    rondo_hello hello;
    rondo_proof proof;
    ASSERT_EQ(rondo_hello_make(&hello), ncclSuccess);
    ASSERT_EQ(rondo_proof_make(&secret_, &hello, &proof), ncclSuccess);
    EXPECT_EQ(rondo_proof_check(&secret_, &hello, &proof_), RONDO_VERDICT_SECRET)
        << "an old proof for a new hello";
    EXPECT_EQ(rondo_entry_check(&secret_, &hello_, &proof, &entry_), RONDO_VERDICT_SECRET)
        << "a replayed hello and entry";
    EXPECT_EQ(rondo_welcome_check(&secret_, &hello, &proof, &welcome_), RONDO_VERDICT_SECRET);
}

TEST_F(Challenge, VersionsAndStrangersAreToldApart)
{
    rondo_hello hello = hello_;
    EXPECT_EQ(rondo_hello_check(&hello), RONDO_VERDICT_GOOD);
    hello.version++;
    EXPECT_EQ(rondo_hello_check(&hello), RONDO_VERDICT_VERSION);
    hello.magic++;
    EXPECT_EQ(rondo_hello_check(&hello), RONDO_VERDICT_STRANGER);
    rondo_proof proof = proof_;
    proof.version++;
    EXPECT_EQ(rondo_proof_check(&secret_, &hello_, &proof), RONDO_VERDICT_VERSION);
    proof.magic++;
    EXPECT_EQ(rondo_proof_check(&secret_, &hello_, &proof), RONDO_VERDICT_STRANGER);
}

} // namespace
