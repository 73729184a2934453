/* chunking.c - the formulas of chunking.h. */
#include "chunking.h"

#define CUT_BYTES 16u    /* chunks are whole vectors */
#define RANGE_BYTES 128u /* ranges are whole lines, so that no two channels write one */

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return divide_up(value, to) * to;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint32_t rondo_chunking_channels(uint64_t bytes, uint32_t channels)
{
    uint64_t wanted = bytes / RONDO_CHANNEL_BYTES;

    return wanted < 1 ? 1 : (uint32_t)smaller(wanted, channels);
}

struct rondo_part rondo_chunking_range(uint64_t count, uint64_t element_bytes, uint32_t parts, uint32_t index)
{
    uint64_t part = round_up(divide_up(count, parts), RANGE_BYTES / element_bytes);
    uint64_t first = smaller(count, part * index);

    return (struct rondo_part){.first = first, .count = smaller(part, count - first)};
}

/* As few chunks of at most `most` as there must be, all about equal. */
static uint64_t even(uint64_t count, uint64_t most, uint64_t cut)
{
    if (count == 0)
        return cut;
    return smaller(round_up(divide_up(count, divide_up(count, most)), cut), most);
}

uint64_t rondo_chunking_even(uint64_t count, uint64_t element_bytes, uint64_t wire_bytes, uint64_t slot_bytes)
{
    uint64_t cut = CUT_BYTES / element_bytes;

    return even(count, slot_bytes / wire_bytes / cut * cut, cut);
}

uint64_t rondo_chunking_pipeline(uint64_t total, uint64_t count, uint64_t ranks, uint64_t element_bytes,
                                 uint64_t wire_bytes, uint64_t slot_bytes)
{
    uint64_t cut = CUT_BYTES / element_bytes;
    uint64_t most = slot_bytes / wire_bytes / cut * cut;
    uint64_t least = smaller(most, RONDO_PIPELINE_BYTES / wire_bytes / cut * cut);
    uint64_t wanted = round_up(divide_up(total, 2 * ranks), cut);

    return even(count, wanted < least ? least : smaller(wanted, most), cut);
}

uint64_t rondo_chunking_message(uint64_t bytes, uint64_t slot_bytes)
{
    return rondo_chunking_pipeline(bytes, bytes, 2, 1, 1, slot_bytes);
}
