// Tags fit one secret, one label and one text.
#include "base/auth.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace
{

class Auth : public testing::Test
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(rondo_random_bytes(secret_.bytes, sizeof(secret_.bytes)), ncclSuccess);
        rondo_auth_tag(&secret_, "label", "data", 4, tag_);
    }

    rondo_secret secret_{};
    unsigned char tag_[RONDO_TAG_BYTES];
};

TEST_F(Auth, AcceptsTheRightTag)
{
    EXPECT_TRUE(rondo_auth_check(&secret_, "label", "data", 4, tag_));
    unsigned char empty[RONDO_TAG_BYTES];
    rondo_auth_tag(&secret_, "label", nullptr, 0, empty);
    EXPECT_TRUE(rondo_auth_check(&secret_, "label", nullptr, 0, empty));
}

TEST_F(Auth, RefusesAnyDifference)
{
    EXPECT_FALSE(rondo_auth_check(&secret_, "Label", "data", 4, tag_));
    EXPECT_FALSE(rondo_auth_check(&secret_, "label", "date", 4, tag_));
    EXPECT_FALSE(rondo_auth_check(&secret_, "label", "data", 3, tag_));
    for (int bit = 0; bit < RONDO_SECRET_BYTES * 8; bit++) {
        rondo_secret other = secret_;
        other.bytes[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        EXPECT_FALSE(rondo_auth_check(&other, "label", "data", 4, tag_)) << "bit " << bit;
    }
    for (int bit = 0; bit < RONDO_TAG_BYTES * 8; bit++) {
        unsigned char other[RONDO_TAG_BYTES];
        std::memcpy(other, tag_, sizeof(other));
        other[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
        EXPECT_FALSE(rondo_auth_check(&secret_, "label", "data", 4, other)) << "bit " << bit;
    }
}

TEST_F(Auth, LabelAndDataDoNotRunTogether)
{
    unsigned char moved[RONDO_TAG_BYTES];
    rondo_auth_tag(&secret_, "labelda", "ta", 2, moved);
    EXPECT_NE(std::memcmp(tag_, moved, sizeof(moved)), 0);
}

TEST(AuthDerive, DependsOnEveryByte)
{
    std::vector<unsigned char> phrase(1000, 'x');
    rondo_secret first, again, changed, shorter;
    rondo_auth_derive(phrase.data(), phrase.size(), &first);
    rondo_auth_derive(phrase.data(), phrase.size(), &again);
    rondo_auth_derive(phrase.data(), phrase.size() - 1, &shorter);
    phrase[999] = 'y';
    rondo_auth_derive(phrase.data(), phrase.size(), &changed);
    EXPECT_EQ(std::memcmp(&first, &again, sizeof(first)), 0);
    EXPECT_NE(std::memcmp(&first, &changed, sizeof(first)), 0);
    EXPECT_NE(std::memcmp(&first, &shorter, sizeof(first)), 0);
    rondo_auth_wipe(&first, sizeof(first));
    rondo_secret zero{};
    EXPECT_EQ(std::memcmp(&first, &zero, sizeof(zero)), 0);
}

TEST(AuthRandom, FillsEveryByte)
{
    std::vector<unsigned char> bytes(5000, 0);
    ASSERT_EQ(rondo_random_bytes(bytes.data(), bytes.size()), ncclSuccess);
    int zeros = 0;
    for (unsigned char byte : bytes)
        zeros += byte == 0;
    EXPECT_LT(zeros, 200) << "about 20 expected";
}

} // namespace
