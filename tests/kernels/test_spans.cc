// The loops over elements alone: every type, operation, wire, count 0..257 and offset 0..15, in every
// instruction set this CPU has, between pages that fault, against the reference.
#include "reference.h"
#include "runnable_isas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace reference;

namespace
{

constexpr unsigned kMostElements = 257;
constexpr unsigned char kCanary = 0xA5;

// One page between two that fault.
class Guarded
{
  public:
    Guarded() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE)))
    {
        void *base = mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(base, MAP_FAILED);
        start_ = static_cast<unsigned char *>(base) + page_;
        EXPECT_EQ(mprotect(start_, page_, PROT_READ | PROT_WRITE), 0);
    }

    ~Guarded()
    {
        munmap(start_ - page_, 3 * page_);
    }

    // bytes that end, or begin, `offset` bytes from a page that faults.
    unsigned char *Place(size_t bytes, unsigned offset, bool at_end)
    {
        return at_end ? start_ + page_ - offset - bytes : start_ + offset;
    }

    // Canaries around (and over) what will be written there, as far as the page goes.
    void Arm(unsigned char *at, size_t bytes)
    {
        unsigned char *low = std::max(start_, at - 64), *high = std::min(start_ + page_, at + bytes + 64);
        std::memset(low, kCanary, static_cast<size_t>(high - low));
    }

    bool IsUntouchedAround(const unsigned char *at, size_t bytes) const
    {
        const unsigned char *low = std::max<const unsigned char *>(start_, at - 64);
        const unsigned char *high = std::min<const unsigned char *>(start_ + page_, at + bytes + 64);
        static const std::vector<unsigned char> canaries(64, kCanary);
        return std::memcmp(low, canaries.data(), static_cast<size_t>(at - low)) == 0 &&
               std::memcmp(at + bytes, canaries.data(), static_cast<size_t>(high - at) - bytes) == 0;
    }

  private:
    size_t page_;
    unsigned char *start_;
};

// Raw elements that visit all corners: any bits at all, and for wide floats mostly numbers of like size,
// whose sums round.
std::vector<uint64_t> RandomRaw(const Type &type, bool wide, unsigned seed)
{
    std::mt19937_64 random(seed * 64 + type.id * 2 + wide);
    unsigned bytes = wide ? type.wide_bytes : type.bytes;
    std::vector<uint64_t> raw(kMostElements);

    for (uint64_t &element : raw) {
        element = random();
        if (type.is_float && bytes >= 4 && random() % 4 != 0) {
            Value value;
            value.number = std::ldexp(static_cast<double>(static_cast<int64_t>(random()) >> 10),
                                      static_cast<int>(random() % 12) - 58);
            element = StoreWide(type, value);
        }
        if (bytes < 8)
            element &= (1ull << (8 * bytes)) - 1;
    }
    return raw;
}

std::vector<unsigned char> Packed(const std::vector<uint64_t> &raw, unsigned bytes)
{
    std::vector<unsigned char> packed(raw.size() * bytes);

    for (size_t i = 0; i < raw.size(); i++)
        PutRaw(&packed[i * bytes], bytes, raw[i]);
    return packed;
}

// Ranks may have different ones.
uint64_t ScalarFor(const Type &type, int op, unsigned rank = 0)
{
    if (op == RONDO_REDOP_SUMDIV)
        return 200; /* more than an int8_t holds */
    return type.is_float ? Scalar(type, 1.0 / (3 + rank)) : 0xfedcba9876543211ull + rank;
}

enum Kind {
    ENTER,
    FOLD,
    FINISH,
    FINISH_TWICE,
    FINISH_IN_PLACE,
    NARROW_KINDS, // from here on there is no wire
    ALONE = NARROW_KINDS,
    ALONE_IN_PLACE,
    COMBINE_2,
    COMBINE_2_TWICE,
    COMBINE_2_IN_PLACE,
    COMBINE_3,
    COMBINE_5_TWICE_IN_PLACE,
    KINDS
};

// The inputs of the kinds that combine, in order.
enum Source { IN, X, Y };

std::vector<Source> SourcesOf(Kind kind)
{
    switch (kind) {
    case COMBINE_2:
    case COMBINE_2_TWICE:
    case COMBINE_2_IN_PLACE:
        return {IN, X};
    case COMBINE_3:
        return {IN, X, Y};
    case COMBINE_5_TWICE_IN_PLACE:
        return {Y, IN, X, Y, X};
    default:
        return {};
    }
}

// One kind of loop of one type, operation and wire, with all its inputs and expected outputs.
struct Case {
    const Type &type;
    int op;
    bool wide;
    Kind kind;
    uint64_t scalar = 0;
    std::vector<uint64_t> expected{};
    std::vector<unsigned char> in_bytes{}, x_bytes{}, y_bytes{}, expected_bytes{};

    void Prepare()
    {
        scalar = ScalarFor(type, op);
        std::vector<uint64_t> in = RandomRaw(type, wide, 1), x = RandomRaw(type, false, 2),
                              y = RandomRaw(type, false, 3);
        const std::vector<uint64_t> *inputs[] = {&in, &x, &y};
        expected.resize(kMostElements);
        for (unsigned i = 0; i < kMostElements; i++) {
            Value own = Enter(type, op, scalar, Load(type, x[i]));
            Value arrived = wide ? LoadWide(type, in[i]) : Load(type, in[i]);
            Value sum = HasIn() ? Apply(type, op, arrived, own) : own;
            std::vector<Source> sources = SourcesOf(kind);
            for (size_t s = 0; s < sources.size(); s++) {
                Value next = Enter(type, op, ScalarFor(type, op, static_cast<unsigned>(s)),
                                   Load(type, (*inputs[sources[s]])[i]));
                sum = s == 0 ? next : Apply(type, op, sum, next);
            }
            if (kind != ENTER && kind != FOLD)
                sum = Leave(type, op, scalar, sum);
            expected[i] = OutIsWide() ? StoreWide(type, sum) : Store(type, sum);
            if (kind == ENTER && !wide && op != RONDO_REDOP_PREMULSUM)
                expected[i] = x[i]; /* a copy keeps every bit */
        }
        in_bytes = Packed(in, InBytes());
        x_bytes = Packed(x, type.bytes);
        y_bytes = Packed(y, type.bytes);
        expected_bytes = Packed(expected, OutBytes());
    }

    bool HasIn() const
    {
        return kind != ENTER && kind != ALONE && kind != ALONE_IN_PLACE;
    }

    bool OutIsWide() const
    {
        return wide && (kind == ENTER || kind == FOLD);
    }

    bool InPlace() const
    {
        return kind == FINISH_IN_PLACE || kind == ALONE_IN_PLACE || kind == COMBINE_2_IN_PLACE ||
               kind == COMBINE_5_TWICE_IN_PLACE;
    }

    bool Twice() const
    {
        return kind == FINISH_TWICE || kind == COMBINE_2_TWICE || kind == COMBINE_5_TWICE_IN_PLACE;
    }

    unsigned InBytes() const
    {
        return wide ? type.wide_bytes : type.bytes;
    }

    unsigned OutBytes() const
    {
        return OutIsWide() ? type.wide_bytes : type.bytes;
    }
};

void Call(const Case &c, const rondo_spans &spans, void *out, void *second, const void *in, const void *x,
          const void *y, unsigned n)
{
    const void *inputs[] = {in, x, y};
    rondo_source combined[5];
    std::vector<Source> sources = SourcesOf(c.kind);

    if (!sources.empty()) {
        for (size_t s = 0; s < sources.size(); s++)
            combined[s] = {inputs[sources[s]], ScalarFor(c.type, c.op, static_cast<unsigned>(s))};
        return spans.combine(out, c.Twice() ? second : nullptr, combined,
                             static_cast<uint32_t>(sources.size()), n);
    }
    switch (c.kind) {
    case ENTER:
        return spans.enter(out, x, n, c.scalar);
    case FOLD:
        return spans.fold(out, in, x, n, c.scalar);
    case ALONE:
    case ALONE_IN_PLACE:
        return spans.alone(out, x, n, c.scalar);
    default:
        return spans.finish(out, c.Twice() ? second : nullptr, in, x, n, c.scalar);
    }
}

class SpanTest : public testing::Test
{
  protected:
    Guarded out_, second_, in_, x_, y_;

    // A wrong element's index, -1 for a write outside, or n when all is well.
    int Check(const Case &c, Guarded &page, const unsigned char *at, unsigned n)
    {
        unsigned bytes = c.OutBytes();
        if (!page.IsUntouchedAround(at, static_cast<size_t>(n) * bytes))
            return -1;
        if (std::memcmp(at, c.expected_bytes.data(), static_cast<size_t>(n) * bytes) == 0)
            return static_cast<int>(n);
        for (unsigned i = 0; i < n; i++)
            if (!Same(c.type, c.OutIsWide(), GetRaw(at + i * bytes, bytes), c.expected[i]))
                return static_cast<int>(i);
        return static_cast<int>(n);
    }

    bool RunOnce(const Isa &isa, const Case &c, unsigned n, unsigned offset)
    {
        const rondo_spans &spans = (*isa.spans[c.type.id])[c.op][c.wide];
        unsigned mixed = n * 31 + offset * 7 + c.op; /* other offsets that vary with everything */
        bool at_end = mixed % 3 != 0;
        unsigned char *x = x_.Place(static_cast<size_t>(n) * c.type.bytes, offset, true);
        unsigned char *in = in_.Place(static_cast<size_t>(n) * c.InBytes(), mixed % 16, at_end);
        unsigned char *out =
            out_.Place(static_cast<size_t>(n) * c.OutBytes(), (offset + mixed % 4) % 16, !at_end);
        unsigned char *second = second_.Place(static_cast<size_t>(n) * c.OutBytes(), mixed / 16 % 16, at_end);
        unsigned char *y = y_.Place(static_cast<size_t>(n) * c.type.bytes, mixed / 256 % 16, !at_end);
        Guarded &target = c.InPlace() ? x_ : out_;

        if (c.InPlace())
            out = x;
        target.Arm(out, static_cast<size_t>(n) * c.OutBytes());
        second_.Arm(second, static_cast<size_t>(n) * c.OutBytes());
        std::memcpy(x, c.x_bytes.data(), static_cast<size_t>(n) * c.type.bytes);
        std::memcpy(in, c.in_bytes.data(), static_cast<size_t>(n) * c.InBytes());
        if (!SourcesOf(c.kind).empty())
            std::memcpy(y, c.y_bytes.data(), static_cast<size_t>(n) * c.type.bytes);
        Call(c, spans, out, second, in, x, y, n);
        int wrong = Check(c, target, out, n);
        if (wrong == static_cast<int>(n) && c.Twice())
            wrong = Check(c, second_, second, n);
        EXPECT_EQ(wrong, static_cast<int>(n))
            << isa.name << ' ' << c.type.name << ' ' << OpName(c.op) << (c.wide ? " wide" : " narrow")
            << " kind " << c.kind << ", " << n << " elements, offset " << offset;
        return wrong == static_cast<int>(n);
    }

    void RunAll(const Type &type)
    {
        for (int op = 0; op < RONDO_REDOP_NUM; op++)
            for (int wide = 0; wide <= IsNarrow(type.id); wide++)
                for (int kind = 0; kind < (wide ? NARROW_KINDS : KINDS); kind++) {
                    Case c{type, op, wide != 0, static_cast<Kind>(kind)};
                    c.Prepare();
                    for (const Isa &isa : Isas())
                        for (unsigned n = 0; n <= kMostElements; n++)
                            for (unsigned offset = 0; offset < 16; offset++)
                                if (!RunOnce(isa, c, n, offset))
                                    return;
                }
    }
};

#define RONDO_DTYPE(id, suffix, bytes, kind, storage, accumulator, ...) \
    TEST_F(SpanTest, suffix)                                            \
    {                                                                   \
        RunAll(TypeOf(id));                                             \
    }
#include "device/dtypes.def"
#undef RONDO_DTYPE

// Counts beyond what the accumulators' block holds, and more ranks: the same as all at once.
TEST_F(SpanTest, CombineInBlocks)
{
    const unsigned counts[] = {1023, 1024, 1025, 2047, 2048, 2049, 5000};
    const unsigned most = 8;
    unsigned turn = 0;

    for (const Type &type : Types())
        for (int op = 0; op < RONDO_REDOP_NUM; op++)
            for (unsigned n : counts)
                for (const Isa &isa : Isas()) {
                    unsigned ranks = 3 + turn % (most - 2);
                    bool in_place = turn % 2, twice = turn / 2 % 2;
                    std::vector<std::vector<unsigned char>> inputs;
                    for (unsigned r = 0; r < ranks; r++) {
                        std::vector<uint64_t> raw = RandomRaw(type, false, r);
                        inputs.emplace_back(n * type.bytes);
                        for (unsigned i = 0; i < n; i++)
                            PutRaw(&inputs[r][i * type.bytes], type.bytes,
                                   raw[(i * 7 + i / 1000) % raw.size()]);
                    }
                    std::vector<uint64_t> expected(n);
                    for (unsigned i = 0; i < n; i++) {
                        Value sum;
                        for (unsigned r = 0; r < ranks; r++) {
                            Value own = Enter(type, op, ScalarFor(type, op, r),
                                              Load(type, GetRaw(&inputs[r][i * type.bytes], type.bytes)));
                            sum = r == 0 ? own : Apply(type, op, sum, own);
                        }
                        expected[i] = Store(type, Leave(type, op, ScalarFor(type, op), sum));
                    }
                    std::vector<unsigned char> out(n * type.bytes), second(n * type.bytes);
                    std::vector<rondo_source> sources;
                    for (unsigned r = 0; r < ranks; r++)
                        sources.push_back({inputs[r].data(), ScalarFor(type, op, r)});
                    std::vector<unsigned char> &target = in_place ? inputs[turn % ranks] : out;
                    (*isa.spans[type.id])[op][turn % 2].combine(
                        target.data(), twice ? second.data() : nullptr, sources.data(), ranks, n);
                    for (unsigned i = 0; i < n; i++)
                        ASSERT_TRUE(
                            Same(type, false, GetRaw(&target[i * type.bytes], type.bytes), expected[i]))
                            << isa.name << ' ' << type.name << ' ' << OpName(op) << ", element " << i
                            << " of " << n << ", " << ranks << " ranks" << (in_place ? " in place" : "");
                    if (twice) {
                        ASSERT_EQ(target, second) << isa.name << ' ' << type.name << ' ' << OpName(op);
                    }
                    turn++;
                }
}

// What two or three children sent, of either wire, and the own input: folded in their order and rounded once,
// from any alignment, also where the result replaces the input.
TEST_F(SpanTest, JoinsRoundOnce)
{
    unsigned turn = 0;

    for (const Type &type : Types())
        for (int op = 0; op < RONDO_REDOP_NUM; op++)
            for (const Isa &isa : Isas())
                for (unsigned way = 0; way < 8; way++) {
                    bool wide = way & 1, finishes = way & 2;
                    uint32_t children = 2 + (way >> 2);
                    unsigned n = turn % 2 ? 1 + turn % 37 : 700 + turn % 64, shift = turn % 16;
                    unsigned wire = wide ? type.wide_bytes : type.bytes;
                    unsigned result = finishes ? type.bytes : wire;
                    bool in_place = finishes && turn % 3 == 0;
                    std::vector<uint64_t> raw = RandomRaw(type, false, turn % 5);
                    std::vector<unsigned char> own(shift + n * type.bytes), out(shift * 3 + n * result),
                        in[3];
                    const void *sent[3] = {};
                    std::vector<uint64_t> expected(n);
                    for (unsigned c = 0; c < children; c++) {
                        in[c].resize(shift + c + n * wire);
                        sent[c] = in[c].data() + shift + c;
                    }
                    auto wired = [&](const Value &v) { return wide ? StoreWide(type, v) : Store(type, v); };
                    auto unwired = [&](uint64_t r) { return wide ? LoadWide(type, r) : Load(type, r); };
                    for (unsigned i = 0; i < n; i++) {
                        uint64_t mine = raw[(i * 5 + i / 700) % raw.size()];
                        Value sum;
                        PutRaw(&own[shift + i * type.bytes], type.bytes, mine);
                        for (unsigned c = 0; c < children; c++) {
                            uint64_t theirs = wired(Load(type, raw[(i * (7 + 4 * c) + c) % raw.size()]));
                            PutRaw(&in[c][shift + c + i * wire], wire, theirs);
                            sum = c == 0 ? Apply(type, op, unwired(theirs),
                                                 Enter(type, op, ScalarFor(type, op), Load(type, mine)))
                                         : Apply(type, op, sum, unwired(theirs));
                        }
                        expected[i] =
                            finishes ? Store(type, Leave(type, op, ScalarFor(type, op), sum)) : wired(sum);
                    }
                    unsigned char *target = in_place ? &own[shift] : &out[shift * 3];
                    const rondo_spans &spans = (*isa.spans[type.id])[op][wide];
                    (finishes ? spans.join_finish : spans.join)(target, sent, children, &own[shift], n,
                                                                ScalarFor(type, op));
                    for (unsigned i = 0; i < n; i++)
                        ASSERT_TRUE(
                            Same(type, wide && !finishes, GetRaw(target + i * result, result), expected[i]))
                            << isa.name << ' ' << type.name << ' ' << OpName(op) << ", element " << i
                            << " of " << n << ", " << children << " children, way " << way;
                    turn++;
                }
}

// Every code of every narrow type, widened exactly.
TEST_F(SpanTest, WideningIsExactForEveryCode)
{
    for (const Type &type : Types()) {
        if (!IsNarrow(type.id))
            continue;
        uint32_t codes = 1u << (8 * type.bytes);
        std::vector<unsigned char> narrow(codes * type.bytes), wide(codes * 4);
        for (uint32_t code = 0; code < codes; code++)
            PutRaw(&narrow[code * type.bytes], type.bytes, code);
        for (const Isa &isa : Isas()) {
            (*isa.spans[type.id])[RONDO_REDOP_SUM][1].enter(wide.data(), narrow.data(), codes, 0);
            for (uint32_t code = 0; code < codes; code++) {
                double got = LoadWide(type, GetRaw(&wide[code * 4], 4)).number,
                       expected = Decode(type.id, code);
                ASSERT_TRUE(std::isnan(expected)
                                ? std::isnan(got)
                                : got == expected && std::signbit(got) == std::signbit(expected))
                    << isa.name << ' ' << type.name << " code " << code << ": " << got << ", not "
                    << expected;
            }
        }
    }
}

// Around every value and every midpoint between neighbours, beyond the largest, and a sweep of all float
// exponents.
std::vector<float> RoundingInputs(const Type &type)
{
    std::vector<float> inputs = {0.0f,    -0.0f,    INFINITY, -INFINITY, NAN,     -NAN,
                                 3.4e38f, -3.4e38f, 1e-45f,   65519.99f, 65520.0f};
    uint32_t magnitudes = 1u << (8 * type.bytes - 1);

    for (uint32_t code = 0; code + 1 < magnitudes; code++) {
        double low = Decode(type.id, code), high = Decode(type.id, code + 1);
        if (std::isnan(low) || std::isinf(low) || std::isnan(high))
            high = low;
        if (std::isinf(high)) /* where the next step would be */
            high = low + (low - Decode(type.id, code - 1));
        for (double at : {low, (low + high) / 2}) {
            float single = static_cast<float>(at);
            for (float near :
                 {single, std::nextafterf(single, INFINITY), std::nextafterf(single, -INFINITY)}) {
                inputs.push_back(near);
                inputs.push_back(-near);
            }
        }
    }
    for (uint64_t bits = 0; bits < 1ull << 32; bits += 65521) {
        uint32_t word = static_cast<uint32_t>(bits);
        float value;
        std::memcpy(&value, &word, sizeof(value));
        inputs.push_back(value);
    }
    return inputs;
}

TEST_F(SpanTest, NarrowingRoundsToNearestEven)
{
    for (const Type &type : Types()) {
        if (!IsNarrow(type.id))
            continue;
        std::vector<float> inputs = RoundingInputs(type);
        std::vector<unsigned char> zero(inputs.size() * type.bytes), out(inputs.size() * type.bytes);
        uint32_t minus_zero =
            1u << (8 * type.bytes - 1); /* the neutral element: 0 + -0 is 0, -0 + -0 is -0 */
        for (size_t i = 0; i < inputs.size(); i++)
            PutRaw(&zero[i * type.bytes], type.bytes, minus_zero);
        for (const Isa &isa : Isas()) {
            (*isa.spans[type.id])[RONDO_REDOP_SUM][1].finish(out.data(), nullptr, inputs.data(), zero.data(),
                                                             inputs.size(), 0);
            for (size_t i = 0; i < inputs.size(); i++) {
                uint64_t got = GetRaw(&out[i * type.bytes], type.bytes),
                         expected = Encode(type.id, inputs[i]);
                ASSERT_TRUE(got == expected || (std::isnan(inputs[i]) &&
                                                std::isnan(Decode(type.id, static_cast<uint32_t>(got)))))
                    << isa.name << ' ' << type.name << ": " << inputs[i] << " gave " << got << ", not "
                    << expected;
            }
        }
    }
}

// What a NaN becomes, bit by bit: quiet, with its sign and, in the 16-bit types, the upper part of its
// payload.
uint64_t NarrowedNan(const Type &type, uint32_t bits)
{
    uint32_t sign = bits >> 31 << (8 * type.bytes - 1);
    switch (type.id) {
    case ncclFloat16:
        return sign | 0x7e00 | (bits >> 13 & 0x3ff);
    case ncclBfloat16:
        return sign | 0x7fc0 | (bits >> 16 & 0x7f);
    default:
        return sign | 0x7f;
    }
}

TEST_F(SpanTest, NansKeepWhatTheyCan)
{
    for (const Type &type : Types()) {
        if (!IsNarrow(type.id))
            continue;
        std::vector<uint32_t> nans;
        for (uint32_t payload = 1; payload < 1u << 23; payload = payload * 5 / 4 + 1)
            for (uint32_t sign : {0u, 0x80000000u})
                nans.push_back(sign | 0x7f800000 | payload);
        std::vector<unsigned char> zero(nans.size() * type.bytes), out(nans.size() * type.bytes);
        for (const Isa &isa : Isas()) {
            (*isa.spans[type.id])[RONDO_REDOP_SUM][1].finish(out.data(), nullptr, nans.data(), zero.data(),
                                                             nans.size(), 0);
            for (size_t i = 0; i < nans.size(); i++)
                ASSERT_EQ(GetRaw(&out[i * type.bytes], type.bytes), NarrowedNan(type, nans[i]))
                    << isa.name << ' ' << type.name << ", NaN " << std::hex << nans[i];
        }
    }
}

// Packs and single elements are converted by different code: every code and every rounding input, both ways.
TEST_F(SpanTest, SingleElementsAreLikeMany)
{
    for (const Type &type : Types()) {
        if (!IsNarrow(type.id))
            continue;
        std::vector<float> inputs = RoundingInputs(type);
        uint32_t codes = 1u << (8 * type.bytes);
        std::vector<unsigned char> zero(inputs.size() * type.bytes), many(zero), single(zero),
            narrow(codes * type.bytes);
        std::vector<float> wide(codes), wide_single(codes);
        for (uint32_t code = 0; code < codes; code++)
            PutRaw(&narrow[code * type.bytes], type.bytes, code);
        for (const Isa &isa : Isas()) {
            const rondo_spans &spans = (*isa.spans[type.id])[RONDO_REDOP_SUM][1];
            spans.finish(many.data(), nullptr, inputs.data(), zero.data(), inputs.size(), 0);
            for (size_t i = 0; i < inputs.size(); i++)
                spans.finish(&single[i * type.bytes], nullptr, &inputs[i], zero.data(), 1, 0);
            EXPECT_EQ(many, single) << isa.name << ' ' << type.name;
            spans.enter(wide.data(), narrow.data(), codes, 0);
            for (uint32_t code = 0; code < codes; code++)
                spans.enter(&wide_single[code], &narrow[code * type.bytes], 1, 0);
            EXPECT_EQ(std::memcmp(wide.data(), wide_single.data(), codes * sizeof(float)), 0)
                << isa.name << ' ' << type.name;
        }
    }
}

// What makes a deterministic result independent of the host: all instruction sets give the same bits, NaNs of
// f16 too.
TEST_F(SpanTest, InstructionSetsAgreeBitByBit)
{
    const Isa &base = Isas().front();
    for (const Type &type : Types()) {
        if (!IsNarrow(type.id))
            continue;
        uint32_t codes = 1u << (8 * type.bytes);
        std::vector<unsigned char> narrow(codes * type.bytes), wide(codes * 4), other(codes * 4),
            back(narrow), again(narrow);
        for (uint32_t code = 0; code < codes; code++)
            PutRaw(&narrow[code * type.bytes], type.bytes, code);
        for (const Isa &isa : Isas()) {
            const rondo_spans &ours = (*isa.spans[type.id])[RONDO_REDOP_MAX][1];
            const rondo_spans &theirs = (*base.spans[type.id])[RONDO_REDOP_MAX][1];
            ours.enter(wide.data(), narrow.data(), codes, 0);
            theirs.enter(other.data(), narrow.data(), codes, 0);
            EXPECT_EQ(wide, other) << isa.name << ' ' << type.name;
            ours.finish(back.data(), nullptr, wide.data(), narrow.data(), codes, 0);
            theirs.finish(again.data(), nullptr, wide.data(), narrow.data(), codes, 0);
            EXPECT_EQ(back, again) << isa.name << ' ' << type.name;
        }
    }
}

} // namespace
