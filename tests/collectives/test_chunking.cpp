// Ranges cover exactly; chunks fit a slot, are whole vectors and are as few as can be.
#include "chunking.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace
{

const uint64_t kCounts[] = {1,
                            2,
                            3,
                            4,
                            15,
                            16,
                            17,
                            127,
                            128,
                            129,
                            1000,
                            1023,
                            1024,
                            1025,
                            4095,
                            4096,
                            4097,
                            65535,
                            65536,
                            65537,
                            1u << 20,
                            (1u << 20) + 1,
                            (1ull << 32) - 1,
                            1ull << 32,
                            (1ull << 33) + 5};

TEST(Chunking, RangesCoverExactlyAndStartAtLines)
{
    for (uint64_t element : {1, 2, 4, 8}) {
        for (uint64_t count : kCounts) {
            for (uint32_t parts = 1; parts <= 8; parts++) {
                uint64_t next = 0;
                for (uint32_t i = 0; i < parts; i++) {
                    rondo_part range = rondo_chunking_range(count, element, parts, i);
                    ASSERT_EQ(range.first, next);
                    if (range.count > 0) {
                        ASSERT_EQ(range.first * element % 128, 0u);
                    }
                    next += range.count;
                }
                ASSERT_EQ(next, count);
            }
        }
    }
}

TEST(Chunking, ChunksFitAndAreWholeVectors)
{
    for (uint64_t slot : {1024, 1152, 65536, 131072, 1 << 27}) {
        for (uint64_t element : {1, 2, 4, 8}) {
            for (uint64_t wire : {element, std::max<uint64_t>(element, 4)}) {
                for (uint64_t count : kCounts) {
                    uint64_t most = slot / wire;
                    uint64_t chunk = rondo_chunking_even(count, element, wire, slot);
                    ASSERT_GE(chunk, 1u);
                    ASSERT_LE(chunk, most);
                    ASSERT_EQ(chunk * element % 16, 0u);
                    uint64_t fewest = (count + most / 16 * 16 - 1) / (most / 16 * 16);
                    ASSERT_LE((count + chunk - 1) / chunk, std::max<uint64_t>(fewest, 1))
                        << count << " by " << chunk;
                    for (uint64_t ranks : {2, 3, 8, 100}) {
                        chunk = rondo_chunking_pipeline(count, count, ranks, element, wire, slot);
                        ASSERT_GE(chunk, 1u);
                        ASSERT_LE(chunk, most);
                        ASSERT_EQ(chunk * element % 16, 0u);
                    }
                }
            }
        }
    }
}

TEST(Chunking, SmallMessagesAreOneSlot)
{
    for (uint64_t bytes : {0, 1, 15, 16, 1000, 16384})
        EXPECT_GE(rondo_chunking_message(bytes, 65536), std::max<uint64_t>(bytes, 1));
    for (uint64_t bytes : {16385, 65536, 65537, 1 << 20, 1 << 30}) {
        uint64_t chunk = rondo_chunking_message(bytes, 65536);
        EXPECT_GE(chunk, RONDO_PIPELINE_BYTES / 2);
        EXPECT_LE(chunk, 65536u);
    }
    EXPECT_EQ(rondo_chunking_message(1 << 20, 1024), 1024u);
}

TEST(Chunking, ChannelsGrowWithBytes)
{
    EXPECT_EQ(rondo_chunking_channels(0, 4), 1u);
    EXPECT_EQ(rondo_chunking_channels(RONDO_CHANNEL_BYTES - 1, 4), 1u);
    EXPECT_EQ(rondo_chunking_channels(3 * RONDO_CHANNEL_BYTES, 4), 3u);
    EXPECT_EQ(rondo_chunking_channels(UINT64_MAX, 4), 4u);
}

} // namespace
