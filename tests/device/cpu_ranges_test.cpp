// cpu_ranges_test.cpp - the allocator's arithmetic against a byte map.
#include "cpu/ranges.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace
{

constexpr uint64_t kLimit = 1 << 14;

class Ranges : public ::testing::Test
{
  protected:
    ~Ranges() override
    {
        rondo_ranges_clear(&ranges_);
    }
    bool Insert(uint64_t start, uint64_t bytes)
    {
        const rondo_range range = {start, bytes, false};
        return rondo_ranges_insert(&ranges_, &range);
    }

    rondo_ranges ranges_ = {};
};

// The lowest place that fits, found the slow way.
int64_t LowestFit(const std::vector<bool> &used, uint64_t bytes, uint64_t align)
{
    for (uint64_t start = 0; start + bytes <= used.size(); start += align) {
        bool free = true;
        for (uint64_t i = start; i < start + bytes && free; i++)
            free = !used[i];
        if (free)
            return (int64_t)start;
    }
    return -1;
}

TEST_F(Ranges, RandomUseAgreesWithAByteMap)
{
    std::mt19937 random(7);
    std::vector<bool> used(kLimit);
    std::map<uint64_t, uint64_t> model; // start -> bytes
    uint64_t sum = 0;

    for (int i = 0; i < 3000; i++) {
        if (random() % 5 < 3) {
            uint64_t bytes = random() % 700 + 1, align = uint64_t{1} << random() % 11, start = 0;
            int64_t expected = LowestFit(used, bytes, align);
            ASSERT_EQ(rondo_ranges_fit(&ranges_, kLimit, bytes, align, &start), expected >= 0);
            if (expected < 0)
                continue;
            ASSERT_EQ(start, (uint64_t)expected);
            ASSERT_TRUE(Insert(start, bytes));
            model[start] = bytes;
            sum += bytes;
            std::fill(used.begin() + start, used.begin() + start + bytes, true);
        } else if (!model.empty()) {
            auto victim = std::next(model.begin(), random() % model.size());
            const rondo_range *range = rondo_ranges_find(&ranges_, victim->first + random() % victim->second);
            ASSERT_NE(range, nullptr);
            ASSERT_EQ(range->start, victim->first);
            ASSERT_EQ(range->bytes, victim->second);
            rondo_ranges_remove(&ranges_, range);
            sum -= victim->second;
            std::fill(used.begin() + victim->first, used.begin() + victim->first + victim->second, false);
            model.erase(victim);
        }
        ASSERT_EQ(ranges_.bytes, sum);
        ASSERT_EQ(ranges_.count, model.size());
        uint64_t probe = random() % kLimit;
        ASSERT_EQ(rondo_ranges_find(&ranges_, probe) != nullptr, used[probe]);
    }
}

TEST_F(Ranges, HugeRequestsDoNotWrap)
{
    uint64_t start;
    ASSERT_TRUE(Insert(512, 100));
    EXPECT_FALSE(rondo_ranges_fit(&ranges_, kLimit, UINT64_MAX, 512, &start));
    EXPECT_FALSE(rondo_ranges_fit(&ranges_, kLimit, UINT64_MAX - 511, 4096, &start));
    EXPECT_TRUE(rondo_ranges_fit(&ranges_, kLimit, kLimit - 1024, 512, &start));
    EXPECT_EQ(start, 1024u);
    EXPECT_FALSE(rondo_ranges_fit(&ranges_, kLimit, kLimit - 1023, 512, &start));
}

TEST_F(Ranges, FindsInsideButNotBeside)
{
    ASSERT_TRUE(Insert(1000, 10));
    EXPECT_EQ(rondo_ranges_find(&ranges_, 999), nullptr);
    EXPECT_NE(rondo_ranges_find(&ranges_, 1000), nullptr);
    EXPECT_NE(rondo_ranges_find(&ranges_, 1009), nullptr);
    EXPECT_EQ(rondo_ranges_find(&ranges_, 1010), nullptr);
}

} // namespace
