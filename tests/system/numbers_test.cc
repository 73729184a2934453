/* numbers_test.cc - what comes out: averages, edges of buffers, 8-bit sums, determinism, overlap. */
#include "exact_values.h"
#include "forked_job.h"
#include "guarded.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

static const Layout kThreads = {1, false}, kOneThread = {1, true}, kProcesses = {2, false};

static uint64_t hash_bytes(const void *data, size_t bytes, uint64_t hash = 14695981039346656037ull)
{
    const unsigned char *byte = static_cast<const unsigned char *>(data);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * 1099511628211ull;
    return hash;
}

/* Every element of an out-of-place average is written, the last as well as the first, for every small count.
 */
TEST(Numbers, AverageWritesEveryElement)
{
    for (int ranks = 1; ranks <= 2; ranks++) {
        std::string verdict = run_job(ranks, kThreads, [](Context &context) {
            LocalRank &me = context.local[0];
            for (ncclDataType_t type : {ncclBfloat16, ncclFloat16, ncclFloat32}) {
                size_t bytes = type_bytes(type), most = 4099;
                std::vector<unsigned char> send(most * bytes), recv(most * bytes);
                for (size_t i = 0; i < most; i++)
                    store_input(&send[i * bytes], type, ncclAvg, 5, me.rank, i);
                for (size_t count = 1; count <= most; count++) {
                    memset(recv.data(), 0x7b, count * bytes);
                    if (!context.ok(
                            ncclAllReduce(send.data(), recv.data(), count, type, ncclAvg, me.comm, me.stream),
                            "ncclAllReduce"))
                        return;
                    context.synchronize();
                    for (size_t i = 0; i < count; i++)
                        if (!matches_reduction(&recv[i * bytes], type, ncclAvg, 5, context.ranks, i))
                            return context.fail("%s count %zu: element %zu", type_name(type), count, i);
                }
            }
        });
        EXPECT_EQ(verdict, "") << ranks << " ranks";
    }
}

/* Buffers that begin right behind or end right before a no-access page, at every offset, count and type. */
TEST(Numbers, NothingIsReadOrWrittenOutsideTheBuffers)
{
    std::string verdict = run_job(2, kThreads, [](Context &context) {
        LocalRank &me = context.local[0];
        size_t room = 4096;
        Guarded send(room, Guarded::END, 0), recv(room, Guarded::END, 0);
        for (int type = 0; type < ncclNumTypes; type++)
            for (size_t offset = 0; offset < 16; offset++)
                for (size_t count = 1; count <= 257; count++) {
                    size_t bytes = count * type_bytes((ncclDataType_t)type);
                    bool at_end = (count + offset) % 2 != 0; /* alternates; offset 0 ends or begins flush */
                    size_t start = at_end ? room - bytes - offset : offset;
                    unsigned char *in = send.data() + start, *out = recv.data() + start;
                    recv.fill();
                    for (size_t i = 0; i < count; i++)
                        store_input(in + i * type_bytes((ncclDataType_t)type), (ncclDataType_t)type, ncclSum,
                                    9, me.rank, i);
                    if (!context.ok(
                            ncclAllReduce(in, out, count, (ncclDataType_t)type, ncclSum, me.comm, me.stream),
                            "all-reduce"))
                        return;
                    context.synchronize();
                    for (size_t i = 0; i < count; i++)
                        if (!matches_reduction(out + i * type_bytes((ncclDataType_t)type),
                                               (ncclDataType_t)type, ncclSum, 9, 2, i))
                            return context.fail("%s count %zu offset %zu: element %zu",
                                                type_name((ncclDataType_t)type), count, offset, i);
                    for (size_t i = 0; i < room; i++)
                        if ((i < start || i >= start + bytes) && recv.data()[i] != 0xC5)
                            return context.fail("%s count %zu offset %zu: byte %zu outside was written",
                                                type_name((ncclDataType_t)type), count, offset, i);
                }
    });
    EXPECT_EQ(verdict, "");
}

/* The value of the type nearest to an exact sum, ties to even, saturating to the largest finite one. */
static double round_fp8(ncclDataType_t type, double exact)
{
    double most = type == ncclFloat8e4m3 ? 448 : 57344, spacing = float_spacing(type, exact);
    double rounded = std::nearbyint(exact / spacing) * spacing;
    return std::fmax(-most, std::fmin(most, rounded));
}

/* Inputs around `exponent`: mantissa bits random, so that sums of 8 carry, round, go subnormal or saturate.
 */
static void fill_fp8(std::vector<unsigned char> &bytes, ncclDataType_t type, int rank, unsigned window)
{
    std::mt19937 random(77u + (unsigned)rank);
    int mantissa = type == ncclFloat8e4m3 ? 3 : 2, top = type == ncclFloat8e4m3 ? 15 : 30;
    for (unsigned char &byte : bytes) {
        unsigned exponent = window == 0 ? random() % 3 : (unsigned)top - random() % 3;
        unsigned bits = exponent << mantissa | (random() & ((1u << mantissa) - 1));
        if (type == ncclFloat8e4m3 && (bits & 0x7f) == 0x7f)
            bits = 0x7e; /* not the NaN */
        byte = (unsigned char)(bits | (random() & 1 ? 0x80u : 0));
    }
}

static void check_fp8(Context &context, ncclDataType_t type, unsigned window, bool is_precise)
{
    LocalRank &me = context.local[0];
    size_t count = 5000;
    std::vector<std::vector<unsigned char>> inputs;
    for (int rank = 0; rank < context.ranks; rank++) {
        inputs.emplace_back(count);
        fill_fp8(inputs.back(), type, rank, window);
    }
    std::vector<unsigned char> out(count);
    context.ok(
        ncclAllReduce(inputs[(size_t)me.rank].data(), out.data(), count, type, ncclSum, me.comm, me.stream),
        "sum");
    context.synchronize();
    double most = type == ncclFloat8e4m3 ? 448 : 57344;
    for (size_t i = 0; i < count; i++) {
        double exact = 0, size = 0;
        for (auto &input : inputs) {
            exact += decode_float(&input[i], type);
            size += std::fabs(decode_float(&input[i], type));
        }
        double found = decode_float(&out[i], type);
        /* One rounding a step, each of a partial sum no larger than the sum of the sizes; saturation is a
         * separate matter. */
        double bound = (context.ranks - 1) * float_spacing(type, size) / 2;
        bool is_right = is_precise     ? found == round_fp8(type, exact)
                        : size >= most ? std::fabs(found) <= most
                                       : std::fabs(found - exact) <= bound;
        if (!is_right)
            return context.fail("%s element %zu: found %g, exact %g, bound %g", type_name(type), i, found,
                                exact, bound);
    }
}

/* In precise mode an 8-bit sum is the float sum rounded once; in the default mode each step rounds. Both
 * saturate. */
TEST(Numbers, EightBitSums)
{
    for (int precise = 0; precise <= 1; precise++) {
        JobOptions options;
        options.environment = {"RONDO_PRECISE=" + std::to_string(precise)};
        std::string verdict = run_job(
            8, kThreads,
            [&](Context &context) {
                for (ncclDataType_t type : {ncclFloat8e4m3, ncclFloat8e5m2})
                    for (unsigned window = 0; window < 2; window++)
                        check_fp8(context, type, window, precise != 0);
            },
            options);
        EXPECT_EQ(verdict, "") << "RONDO_PRECISE=" << precise;
    }
}

/* NaN stays NaN, in every floating type, whatever the others contribute. */
TEST(Numbers, NanStaysNan)
{
    std::string verdict = run_job(3, kThreads, [](Context &context) {
        LocalRank &me = context.local[0];
        for (int type = ncclFloat16; type < ncclNumTypes; type++) {
            size_t bytes = type_bytes((ncclDataType_t)type);
            std::vector<unsigned char> in(33 * bytes), out(33 * bytes);
            for (size_t i = 0; i < 33; i++) {
                if (me.rank == 1 && i % 2)
                    memset(&in[i * bytes], 0xff, bytes); /* a NaN in every type */
                else
                    encode_float(&in[i * bytes], (ncclDataType_t)type, 1);
            }
            context.ok(
                ncclAllReduce(in.data(), out.data(), 33, (ncclDataType_t)type, ncclSum, me.comm, me.stream),
                "sum");
            context.synchronize();
            for (size_t i = 0; i < 33; i++)
                if (std::isnan(decode_float(&out[i * bytes], (ncclDataType_t)type)) != (i % 2 == 1))
                    return context.fail("%s element %zu", type_name((ncclDataType_t)type), i);
        }
    });
    EXPECT_EQ(verdict, "");
}

/* Random floats whose sums depend on the order they are added in. */
static std::vector<float> rough_floats(size_t count, int rank)
{
    std::mt19937 random(1000u + (unsigned)rank);
    std::vector<float> values(count);
    for (float &value : values)
        value = std::ldexp((float)random() / 4294967296.0f - 0.5f, (int)(random() % 24));
    return values;
}

static void reduce_in_pieces(Context &context, std::vector<float> &in, std::vector<float> &out,
                             const std::vector<size_t> &cuts)
{
    LocalRank &me = context.local[0];
    size_t start = 0;
    for (size_t cut : cuts) {
        context.ok(
            ncclAllReduce(&in[start], &out[start], cut - start, ncclFloat32, ncclSum, me.comm, me.stream),
            "piece");
        start = cut;
    }
    context.synchronize();
}

/* In deterministic mode a result is the same bits however the call is cut, over how many channels, in which
 * processes; and it is the sum in rank order. */
TEST(Numbers, DeterministicMode)
{
    const size_t count = 300007; /* a prime */
    std::vector<float> expected = rough_floats(count, 0);
    for (int rank = 1; rank < 4; rank++) {
        std::vector<float> next = rough_floats(count, rank);
        for (size_t i = 0; i < count; i++)
            expected[i] += next[i];
    }
    uint64_t hash = hash_bytes(expected.data(), count * sizeof(float));
    for (Layout layout : {kThreads, kProcesses, Layout{2, false, true}})
        for (int channels = 1; channels <= 3; channels++) {
            JobOptions options;
            options.environment = {"RONDO_DETERMINISTIC=1", "NCCL_MIN_CTAS=" + std::to_string(channels),
                                   "NCCL_MAX_CTAS=" + std::to_string(channels)};
            std::string verdict = run_job(
                4, layout,
                [&](Context &context) {
                    const std::vector<std::vector<size_t>> ways = {
                        {count}, {7919, count}, {1, 2, 3, 104729, count}, {64, 4096, 65537, 200003, count}};
                    std::vector<float> in = rough_floats(count, context.local[0].rank), out(count);
                    for (const std::vector<size_t> &cuts : ways) {
                        reduce_in_pieces(context, in, out, cuts);
                        if (hash_bytes(out.data(), count * sizeof(float)) != hash)
                            return context.fail("%zu pieces give other bits", cuts.size());
                    }
                },
                options);
            EXPECT_EQ(verdict, "") << layout.name() << ", " << channels << " channels";
        }
}

/* The default mode gives one result for one configuration, launch after launch. */
TEST(Numbers, FreshLaunchesAgree)
{
    const size_t count = 10007 * 3;
    uint64_t first[64] = {0};
    for (int launch = 0; launch < 100; launch++) {
        uint64_t words[64] = {0};
        JobOptions options;
        options.words_out = words;
        std::string verdict = run_job(
            3, launch % 2 ? kThreads : Layout{3, false},
            [&](Context &context) {
                LocalRank &me = context.local[0];
                std::vector<float> in = rough_floats(count, me.rank), out(count), part(count / 3);
                context.ok(
                    ncclAllReduce(in.data(), out.data(), count, ncclFloat32, ncclSum, me.comm, me.stream),
                    "all-reduce");
                context.ok(ncclReduceScatter(in.data(), part.data(), count / 3, ncclFloat32, ncclSum, me.comm,
                                             me.stream),
                           "reduce-scatter");
                context.synchronize();
                uint64_t hash = hash_bytes(out.data(), count * sizeof(float));
                context.shared[me.rank] = hash_bytes(part.data(), part.size() * sizeof(float), hash);
            },
            options);
        ASSERT_EQ(verdict, "") << "launch " << launch;
        if (launch == 0)
            memcpy(first, words, sizeof(first));
        ASSERT_EQ(memcmp(first, words, sizeof(first)), 0) << "launch " << launch << " gave other bits";
    }
}

/* Buffers that overlap in part, not at the documented in-place position, are refused rather than computed
 * wrongly. */
TEST(Numbers, PartialOverlapIsRefused)
{
    std::string verdict = run_job(2, kOneThread, [](Context &context) {
        LocalRank &me = context.local[0];
        std::vector<float> buffer(400);
        float *base = buffer.data();
        struct {
            const char *what;
            ncclResult_t result;
        } calls[] = {
            {"all-reduce", ncclAllReduce(base, base + 10, 100, ncclFloat32, ncclSum, me.comm, me.stream)},
            {"all-gather", ncclAllGather(base + 50, base, 100, ncclFloat32, me.comm, me.stream)},
            {"reduce-scatter",
             ncclReduceScatter(base, base + 50, 100, ncclFloat32, ncclSum, me.comm, me.stream)},
            {"all-to-all", ncclAlltoAll(base, base + 100, 100, ncclFloat32, me.comm, me.stream)},
        };
        for (auto &call : calls)
            if (call.result != ncclInvalidArgument || !strstr(ncclGetLastError(me.comm), "overlap"))
                context.fail("%s: %d, %s", call.what, call.result, ncclGetLastError(me.comm));
    });
    EXPECT_EQ(verdict, "");
}
