// What the data generator promises: results that do not depend on the order of combining, values computed
// alike everywhere; and a verifier that misses nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include <nccl.h> // has C++ overloads, so it cannot come first inside the braces below

extern "C" {
#include "data.h"
#include "number.h"
#include "verify.h"
}

namespace
{

constexpr size_t kCount = 600;

uint64_t Element(const perf_type &type, const std::vector<char> &data, size_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, data.data() + i * type.bytes, type.bytes);
    return bits;
}

// The value as a number that the type's arithmetic can be done with: double holds every real type; integers
// wrap in 64 bits.
int64_t Integer(const perf_type &type, uint64_t bits)
{
    unsigned shift = 64 - 8 * type.bytes;
    return type.kind == PERF_SIGNED ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
}

struct Inputs {
    Inputs(const perf_type &t, perf_op op, unsigned ranks, uint64_t first = 0, size_t count = kCount)
        : type(t), source{&t, op, 7, ranks}, result(count * t.bytes)
    {
        for (unsigned r = 0; r < ranks; r++) {
            parts.emplace_back(count * t.bytes);
            perf_data_contribution(&source, r, first, count, parts.back().data());
        }
        perf_data_reduction(&source, first, count, result.data());
    }
    double Part(unsigned rank, size_t i) const
    {
        double scalar = source.op == PERF_MULSUM ? perf_mulsum_scalar(rank) : 1;
        return perf_number_decode(&type, Element(type, parts[rank], i)) * scalar;
    }
    const perf_type &type;
    perf_source source;
    std::vector<std::vector<char>> parts;
    std::vector<char> result;
};

std::vector<const perf_type *> RealTypes()
{
    std::vector<const perf_type *> types;
    for (const perf_type &type : perf_types)
        if (type.kind == PERF_REAL)
            types.push_back(&type);
    return types;
}

// Every partial sum or product, in several random orders, is a number of the type; so any order gives these
// bits.
void ExpectOrderDoesNotMatter(const perf_type &type, perf_op op, unsigned ranks)
{
    Inputs in(type, op, ranks);
    std::mt19937 random(ranks);
    std::vector<unsigned> order(ranks);
    for (unsigned r = 0; r < ranks; r++)
        order[r] = r;
    for (size_t i = 0; i < kCount; i++) {
        std::shuffle(order.begin(), order.end(), random);
        double partial = in.Part(order[0], i);
        for (unsigned k = 1; k < ranks; k++) {
            partial = op == PERF_PROD ? partial * in.Part(order[k], i) : partial + in.Part(order[k], i);
            uint64_t bits = perf_number_encode(&type, partial);
            ASSERT_EQ(perf_number_decode(&type, bits), partial)
                << type.name << " " << perf_op_names[op] << " of " << ranks << ": inexact partial result at "
                << i;
        }
        ASSERT_EQ(perf_number_encode(&type, partial), Element(type, in.result, i))
            << type.name << " " << perf_op_names[op] << " of " << ranks << " at " << i;
    }
}

} // namespace

TEST(PerfData, RealSumsAreExactInAnyOrder)
{
    for (const perf_type *type : RealTypes())
        for (unsigned ranks = 1; ranks <= 16; ranks++)
            for (perf_op op : {PERF_SUM, PERF_MULSUM})
                ASSERT_NO_FATAL_FAILURE(ExpectOrderDoesNotMatter(*type, op, ranks));
    for (unsigned ranks : {64u, 1000u})
        for (const perf_type *type : RealTypes())
            ASSERT_NO_FATAL_FAILURE(ExpectOrderDoesNotMatter(*type, PERF_SUM, ranks));
}

TEST(PerfData, RealProductsAreExactInAnyOrder)
{
    for (const perf_type *type : RealTypes())
        for (unsigned ranks : {1u, 2u, 3u, 5u, 8u, 16u, 40u})
            ASSERT_NO_FATAL_FAILURE(ExpectOrderDoesNotMatter(*type, PERF_PROD, ranks));
}

TEST(PerfData, SumsUseSignsAndAllRanks)
{
    for (const perf_type *type : RealTypes()) {
        Inputs in(*type, PERF_SUM, 4);
        for (unsigned r = 0; r < 4; r++) {
            unsigned positive = 0, negative = 0;
            for (size_t i = 0; i < kCount; i++) {
                positive += in.Part(r, i) > 0;
                negative += in.Part(r, i) < 0;
            }
            EXPECT_GT(positive, kCount / 8) << type->name << " rank " << r;
            EXPECT_GT(negative, kCount / 8) << type->name << " rank " << r;
        }
    }
}

TEST(PerfData, AveragesMayDivideBeforeOrAfter)
{
    for (const perf_type *type : RealTypes()) {
        for (unsigned ranks = 1; ranks <= 16; ranks++) {
            Inputs in(*type, PERF_AVG, ranks);
            ASSERT_EQ(perf_data_tolerance(&in.source), 2u);
            for (size_t i = 0; i < kCount; i++) {
                double sum = 0, scaled = 0;
                for (unsigned r = 0; r < ranks; r++) {
                    sum += in.Part(r, i);
                    scaled += perf_number_decode(type, perf_number_encode(type, in.Part(r, i) / ranks));
                }
                int64_t wanted = (int64_t)Element(*type, in.result, i);
                ASSERT_LE(std::llabs((int64_t)perf_number_encode(type, sum / ranks) - wanted), 2)
                    << type->name << i;
                ASSERT_LE(std::llabs((int64_t)perf_number_encode(type, scaled) - wanted), 2)
                    << type->name << i;
            }
        }
    }
}

TEST(PerfData, IntegersReduceInWrappingArithmetic)
{
    for (const perf_type &type : perf_types) {
        if (type.kind == PERF_REAL)
            continue;
        uint64_t mask = type.bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * type.bytes) - 1;
        for (perf_op op : {PERF_SUM, PERF_PROD, PERF_AVG, PERF_MULSUM}) {
            for (unsigned ranks : {1u, 2u, 3u, 7u, 16u}) {
                Inputs in(type, op, ranks);
                for (size_t i = 0; i < kCount; i++) {
                    uint64_t total = op == PERF_PROD;
                    for (unsigned r = 0; r < ranks; r++) {
                        uint64_t part = (uint64_t)Integer(type, Element(type, in.parts[r], i));
                        total = op == PERF_PROD     ? total * part
                                : op == PERF_MULSUM ? total + part * perf_mulsum_scalar(r)
                                                    : total + part;
                    }
                    if (op == PERF_PROD) {
                        ASSERT_NE(total & mask, 0u);
                    }
                    if (op == PERF_AVG) // the sum fits the type, so this is its quotient towards zero
                        total = type.kind == PERF_SIGNED ? (uint64_t)((int64_t)total / (int64_t)ranks)
                                                         : total / ranks;
                    ASSERT_EQ(total & mask, Element(type, in.result, i))
                        << type.name << " " << perf_op_names[op] << " of " << ranks << " at " << i;
                }
            }
        }
    }
}

TEST(PerfData, ExtremesAreThoseOfTheContributions)
{
    for (const perf_type &type : perf_types) {
        for (perf_op op : {PERF_MIN, PERF_MAX}) {
            Inputs in(type, op, 5);
            for (size_t i = 0; i < kCount; i++) {
                unsigned best = 0;
                auto less = [&](unsigned a, unsigned b) {
                    if (type.kind == PERF_REAL)
                        return in.Part(a, i) < in.Part(b, i);
                    int64_t x = Integer(type, Element(type, in.parts[a], i));
                    int64_t y = Integer(type, Element(type, in.parts[b], i));
                    return type.kind == PERF_SIGNED ? x < y : (uint64_t)x < (uint64_t)y;
                };
                for (unsigned r = 1; r < 5; r++)
                    if (op == PERF_MIN ? less(r, best) : less(best, r))
                        best = r;
                ASSERT_EQ(Element(type, in.parts[best], i), Element(type, in.result, i))
                    << type.name << " at " << i;
            }
        }
    }
}

TEST(PerfData, CopiesAreFiniteAndNormal)
{
    for (const perf_type *type : RealTypes()) {
        std::vector<char> data(kCount * type->bytes);
        perf_data_copy(type, 3, 0, kCount, data.data());
        for (size_t i = 0; i < kCount; i++)
            ASSERT_TRUE(std::isnormal(perf_number_decode(type, Element(*type, data, i))))
                << type->name << " at " << i;
    }
}

// A value depends on its index alone, not on how the stream is cut; also around 2^32, and at odd addresses.
TEST(PerfData, StreamsDoNotDependOnTheirCuts)
{
    for (uint64_t first : {UINT64_C(0), UINT64_C(2047), (UINT64_C(1) << 32) - 1500}) {
        for (const perf_type &type : perf_types) {
            const size_t count = 5000;
            for (int op = -1; op < PERF_OPS; op++) {
                perf_source source = {&type, op < 0 ? PERF_SUM : (perf_op)op, 11, 3};
                auto make = [&](uint64_t from, size_t n, char *out) {
                    if (op < 0)
                        perf_data_copy(&type, 11, from, n, out);
                    else
                        perf_data_contribution(&source, 1, from, n, out);
                };
                std::vector<char> whole(count * type.bytes), cut(count * type.bytes + 1);
                make(first, count, whole.data());
                for (size_t at = 0, n = 1; at < count; at += n, n = n * 2 + 1)
                    make(first + at, std::min(n, count - at), cut.data() + 1 + at * type.bytes);
                ASSERT_EQ(memcmp(whole.data(), cut.data() + 1, whole.size()), 0)
                    << type.name << " op " << op << " from " << first;
            }
        }
    }
}

TEST(PerfData, SeedsAndRanksGiveDifferentValues)
{
    for (const perf_type &type : perf_types) {
        std::vector<char> a(kCount * type.bytes), b(a.size());
        perf_data_copy(&type, 1, 0, kCount, a.data());
        perf_data_copy(&type, 2, 0, kCount, b.data());
        EXPECT_GT(perf_verify_count(a.data(), b.data(), kCount, type.bytes, 0), kCount / 2) << type.name;
    }
}

TEST(PerfVerify, FindsEverySingleFlippedBit)
{
    for (const perf_type &type : perf_types) {
        std::vector<char> wanted(97 * type.bytes);
        perf_data_copy(&type, 5, 0, 97, wanted.data());
        std::vector<char> got = wanted;
        ASSERT_EQ(perf_verify_count(got.data(), wanted.data(), 97, type.bytes, 0), 0u);
        for (size_t bit = 0; bit < wanted.size() * 8; bit++) {
            got[bit / 8] = (char)(got[bit / 8] ^ (1 << bit % 8));
            ASSERT_EQ(perf_verify_count(got.data(), wanted.data(), 97, type.bytes, 0), 1u)
                << type.name << " bit " << bit;
            got[bit / 8] = wanted[bit / 8];
        }
    }
}

TEST(PerfVerify, ToleratesAsManyUnitsAsAllowed)
{
    uint32_t wanted[3] = {100, 0x80000000u, 7}, got[3] = {102, 0x7ffffffeu, 10};
    EXPECT_EQ(perf_verify_count(got, wanted, 3, 4, 2), 1u);
    EXPECT_EQ(perf_verify_count(got, wanted, 3, 4, 3), 0u);
    EXPECT_EQ(perf_verify_count(got, wanted, 3, 4, 0), 3u);
}
