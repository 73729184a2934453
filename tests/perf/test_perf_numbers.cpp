// Encoding and decoding of the real types, and numbers as the table prints them.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

#include <nccl.h> // has C++ overloads, so it cannot come first inside the braces below

extern "C" {
#include "number.h"
#include "report.h"
}

namespace
{

const perf_type &Type(const char *name)
{
    return perf_types[perf_type_find(name)];
}

// Every pair of neighbours of a narrow format, and what lies between: rounding is to the nearest, ties to
// even.
void ExpectRoundsToNearest(const perf_type &type, uint64_t largest)
{
    for (uint64_t bits = 0; bits < largest; bits++) {
        double low = perf_number_decode(&type, bits), high = perf_number_decode(&type, bits + 1);
        double middle = low + (high - low) / 2;
        ASSERT_LT(low, high);
        ASSERT_EQ(perf_number_encode(&type, low), bits);
        ASSERT_EQ(perf_number_encode(&type, std::nextafter(middle, low)), bits);
        ASSERT_EQ(perf_number_encode(&type, std::nextafter(middle, high)), bits + 1);
        ASSERT_EQ(perf_number_encode(&type, middle), bits + (bits & 1));
        uint64_t sign = UINT64_C(1) << (8 * type.bytes - 1);
        ASSERT_EQ(perf_number_encode(&type, -low), bits | sign);
    }
}

} // namespace

TEST(PerfNumber, NarrowFormatsRoundToNearestEvenEverywhere)
{
    ASSERT_NO_FATAL_FAILURE(ExpectRoundsToNearest(Type("half"), 0x7bff));
    ASSERT_NO_FATAL_FAILURE(ExpectRoundsToNearest(Type("bfloat16"), 0x7f7f));
    ASSERT_NO_FATAL_FAILURE(ExpectRoundsToNearest(Type("f8e4m3"), 0x7e));
    ASSERT_NO_FATAL_FAILURE(ExpectRoundsToNearest(Type("f8e5m2"), 0x7b));
}

TEST(PerfNumber, KnownValues)
{
    EXPECT_EQ(perf_number_encode(&Type("half"), 65504), 0x7bffu);
    EXPECT_EQ(perf_number_encode(&Type("half"), 65520), 0x7c00u); // infinity
    EXPECT_EQ(perf_number_encode(&Type("half"), 0x1p-24), 0x0001u);
    EXPECT_EQ(perf_number_encode(&Type("bfloat16"), 1.0), 0x3f80u);
    EXPECT_EQ(perf_number_encode(&Type("f8e4m3"), 448), 0x7eu);
    EXPECT_EQ(perf_number_encode(&Type("f8e4m3"), 1e9), 0x7eu);
    EXPECT_EQ(perf_number_encode(&Type("f8e5m2"), 57344), 0x7bu);
    EXPECT_EQ(perf_number_encode(&Type("f8e5m2"), -1e9), 0xfbu);
    EXPECT_TRUE(std::isnan(perf_number_decode(&Type("f8e4m3"), 0x7f)));
    EXPECT_TRUE(std::isinf(perf_number_decode(&Type("f8e5m2"), 0x7c)));
    for (const perf_type &type : perf_types) {
        if (type.kind != PERF_REAL)
            continue;
        EXPECT_TRUE(std::isnan(perf_number_decode(&type, perf_number_encode(&type, NAN)))) << type.name;
        EXPECT_EQ(perf_number_encode(&type, -0.0), UINT64_C(1) << (8 * type.bytes - 1)) << type.name;
    }
}

TEST(PerfNumber, FloatAndDoubleAreTheMachines)
{
    std::mt19937_64 random(1);
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = random();
        double wide;
        memcpy(&wide, &bits, 8);
        float narrow = (float)wide;
        uint32_t narrow_bits;
        memcpy(&narrow_bits, &narrow, 4);
        if (std::isnan(wide))
            continue;
        ASSERT_EQ(perf_number_encode(&Type("double"), wide), bits);
        ASSERT_EQ(perf_number_encode(&Type("float"), wide), narrow_bits) << wide;
        ASSERT_EQ(perf_number_decode(&Type("float"), narrow_bits), (double)narrow);
    }
}

TEST(PerfNumber, TheFastWayAgreesOnNormalNumbers)
{
    for (const char *name : {"half", "bfloat16", "f8e4m3", "f8e5m2"}) {
        const perf_type &type = Type(name);
        for (uint64_t bits = 0; bits < UINT64_C(1) << (8 * type.bytes); bits++) {
            float value = (float)perf_number_decode(&type, bits);
            uint32_t float_bits;
            if (!std::isnormal(value) && bits != 0)
                continue;
            if (std::fabs(value) < std::ldexp(1.0, 2 - (1 << (type.exponent_bits - 1))) && bits != 0)
                continue; // normal as a float, but not in the type
            memcpy(&float_bits, &value, 4);
            ASSERT_EQ(perf_number_narrow(float_bits, type.exponent_bits, type.mantissa_bits), bits) << name;
        }
    }
}

TEST(PerfReport, NumbersFitTheirColumns)
{
    struct {
        double value;
        int width;
        const char *text;
    } rows[] = {
        {0, 7, "0.00"},
        {1.234, 6, "1.23"},
        {999.994, 6, "999.99"},
        {9999.9, 7, "9999.90"},
        {99999.9, 7, "99999.9"},
        {999999.4, 7, "999999"},
        {9999999.4, 7, "9999999"},
        {99999999.0, 7, "1.0e+08"},
        {99999.9, 6, "100000"},
        {999999.9, 6, "1e+06"},
        {12345.678, 6, "12346"},
        {0.004, 6, "0.00"},
    };
    for (auto &row : rows) {
        char text[64];
        perf_number_format(text, sizeof(text), row.value, row.width);
        EXPECT_STREQ(text, row.text) << row.value << " in " << row.width;
        EXPECT_LE((int)strlen(text), row.width);
    }
}

TEST(PerfIterations, FiguresAreThoseOfTheSamples)
{
    double times[] = {1000, 5, 1, 4, 2, 3};
    perf_iterations it = {};
    it.count = 6;
    it.skipped = 1;
    it.times_us = times;
    perf_iterations_summarize(&it);
    EXPECT_DOUBLE_EQ(it.min, 1);
    EXPECT_DOUBLE_EQ(it.max, 5);
    EXPECT_DOUBLE_EQ(it.average, 3);
    EXPECT_DOUBLE_EQ(it.p50, 3);
    EXPECT_DOUBLE_EQ(it.p99, 5);
    EXPECT_DOUBLE_EQ(it.deviation, std::sqrt(2.0));
}
