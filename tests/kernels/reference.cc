#include "reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace reference
{
namespace
{

// Stand-ins of the right sizes for the kernels' storage types.
using f16 = uint16_t;
using bf16 = uint16_t;
using f8e4m3 = uint8_t;
using f8e5m2 = uint8_t;

struct Format {
    int exponent_bits, mantissa_bits;
    bool has_infinity, saturates;

    int Bias() const
    {
        return (1 << (exponent_bits - 1)) - 1;
    }

    uint32_t Magnitudes() const
    {
        return 1u << (exponent_bits + mantissa_bits);
    }

    // The largest finite magnitude's code: below the infinity, or below the one NaN.
    uint32_t Largest() const
    {
        return has_infinity ? (((1u << exponent_bits) - 1) << mantissa_bits) - 1 : Magnitudes() - 2;
    }

    double Finite(uint32_t magnitude) const
    {
        int exponent = static_cast<int>(magnitude >> mantissa_bits);
        double fraction = magnitude & ((1u << mantissa_bits) - 1);
        double unit = std::ldexp(1.0, (exponent == 0 ? 1 : exponent) - Bias() - mantissa_bits);
        return (fraction + (exponent == 0 ? 0 : std::ldexp(1.0, mantissa_bits))) * unit;
    }
};

// Of the narrow types.
Format FormatOf(ncclDataType_t id)
{
    switch (id) {
    case ncclFloat16:
        return {5, 10, true, false};
    case ncclBfloat16:
        return {8, 7, true, false};
    case ncclFloat8e4m3:
        return {4, 3, false, true};
    case ncclFloat8e5m2:
        return {5, 2, true, true};
    case ncclInt8:
    case ncclUint8:
    case ncclInt32:
    case ncclUint32:
    case ncclInt64:
    case ncclUint64:
    case ncclFloat32:
    case ncclFloat64:
    case ncclNumTypes:
        break; // as wide as what they are computed in
    }
    std::abort();
}

// The magnitudes of a format in order, one more than are finite: where the next one would be.
const std::vector<double> &Ladder(ncclDataType_t id)
{
    static std::vector<double> ladders[RONDO_DTYPE_NUM];
    std::vector<double> &ladder = ladders[id];
    Format format = FormatOf(id);

    if (ladder.empty())
        for (uint32_t code = 0; code <= format.Largest() + 1; code++)
            ladder.push_back(format.Finite(code));
    return ladder;
}

double AsAccumulator(const Type &type, double value)
{
    return type.wide_bytes == 4 ? static_cast<double>(static_cast<float>(value)) : value;
}

Value Wrap(const Type &type, __int128 whole)
{
    unsigned __int128 modulus = static_cast<unsigned __int128>(1) << (8 * type.bytes);
    unsigned __int128 low = static_cast<unsigned __int128>(whole) & (modulus - 1);
    Value value;

    value.whole = static_cast<__int128>(low);
    if (type.is_signed && low >= modulus / 2)
        value.whole -= static_cast<__int128>(modulus);
    return value;
}

// The low bits of a product, whose high ones may exceed even an __int128.
__int128 Product(__int128 a, __int128 b)
{
    return static_cast<__int128>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}

Value Number(const Type &type, double number)
{
    Value value;

    value.number = AsAccumulator(type, number);
    return value;
}

} // namespace

const std::vector<Type> &Types()
{
    static const std::vector<Type> types = {
#define SIGNED false, true
#define UNSIGNED false, false
#define FLOAT true, true
#define RONDO_DTYPE(id, suffix, bytes, kind, storage, accumulator, ...) \
    {id, #suffix, bytes, sizeof(accumulator), kind},
#include "device/dtypes.def"
#undef RONDO_DTYPE
#undef SIGNED
#undef UNSIGNED
#undef FLOAT
    };
    return types;
}

const Type &TypeOf(ncclDataType_t id)
{
    return Types()[id];
}

const char *OpName(int op)
{
    static const char *const names[] = {
#define RONDO_REDOP(id, suffix, functor) #suffix,
#include "device/redops.def"
#undef RONDO_REDOP
    };
    return names[op];
}

bool IsNarrow(ncclDataType_t id)
{
    return TypeOf(id).bytes < TypeOf(id).wide_bytes;
}

double Decode(ncclDataType_t id, uint32_t code)
{
    Format format = FormatOf(id);
    uint32_t magnitude = code & (format.Magnitudes() - 1);
    double value = std::numeric_limits<double>::quiet_NaN();

    if (magnitude <= format.Largest())
        value = format.Finite(magnitude);
    else if (format.has_infinity && magnitude == format.Largest() + 1)
        value = std::numeric_limits<double>::infinity();
    return code & format.Magnitudes() ? -value : value;
}

uint32_t Encode(ncclDataType_t id, double value)
{
    Format format = FormatOf(id);
    uint32_t sign = std::signbit(value) ? format.Magnitudes() : 0;
    const std::vector<double> &ladder = Ladder(id);
    double magnitude = std::fabs(value);

    if (std::isnan(value))
        return sign | (format.Magnitudes() - 1);
    auto above = std::upper_bound(ladder.begin(), ladder.end(), magnitude); // the first that is larger
    uint32_t code = static_cast<uint32_t>(ladder.size()) - 1;
    if (above != ladder.end()) {
        uint32_t upper = static_cast<uint32_t>(above - ladder.begin()), lower = upper - 1;
        double up = ladder[upper] - magnitude, down = magnitude - ladder[lower];
        code = down < up || (down == up && lower % 2 == 0) ? lower : upper;
    }
    if (code > format.Largest() && format.saturates)
        code = format.Largest();
    return sign | code;
}

Value LoadWide(const Type &type, uint64_t raw)
{
    if (!type.is_float)
        return Wrap(type, static_cast<__int128>(raw));
    Value value;
    if (type.wide_bytes == 4) {
        float single;
        std::memcpy(&single, &raw, sizeof(single));
        value.number = single;
    } else {
        std::memcpy(&value.number, &raw, sizeof(value.number));
    }
    return value;
}

Value Load(const Type &type, uint64_t raw)
{
    return IsNarrow(type.id) ? Number(type, Decode(type.id, static_cast<uint32_t>(raw)))
                             : LoadWide(type, raw);
}

uint64_t StoreWide(const Type &type, const Value &value)
{
    uint64_t raw = 0;

    if (!type.is_float) {
        raw = static_cast<uint64_t>(value.whole);
        return type.bytes == 8 ? raw : raw & ((1ull << (8 * type.bytes)) - 1);
    }
    if (type.wide_bytes == 4) {
        float single = static_cast<float>(value.number);
        std::memcpy(&raw, &single, sizeof(single));
    } else {
        std::memcpy(&raw, &value.number, sizeof(value.number));
    }
    return raw;
}

uint64_t Store(const Type &type, const Value &value)
{
    return IsNarrow(type.id) ? Encode(type.id, value.number) : StoreWide(type, value);
}

Value Enter(const Type &type, int op, uint64_t scalar, Value x)
{
    if (op != RONDO_REDOP_PREMULSUM)
        return x;
    Value factor = LoadWide(type, scalar);
    return type.is_float ? Number(type, x.number * factor.number)
                         : Wrap(type, Product(x.whole, factor.whole));
}

Value Apply(const Type &type, int op, Value a, Value x)
{
    switch (static_cast<rondo_redop>(op)) {
    case RONDO_REDOP_PROD:
        return type.is_float ? Number(type, a.number * x.number) : Wrap(type, Product(a.whole, x.whole));
    case RONDO_REDOP_MAX:
        return type.is_float ? Number(type, std::fmax(a.number, x.number)) : a.whole < x.whole ? x : a;
    case RONDO_REDOP_MIN:
        return type.is_float ? Number(type, std::fmin(a.number, x.number)) : x.whole < a.whole ? x : a;
    case RONDO_REDOP_SUM:
    case RONDO_REDOP_PREMULSUM:
    case RONDO_REDOP_SUMDIV:
        return type.is_float ? Number(type, a.number + x.number) : Wrap(type, a.whole + x.whole);
    case RONDO_REDOP_NUM:
        break;
    }
    std::abort();
}

Value Leave(const Type &type, int op, uint64_t scalar, Value a)
{
    if (op != RONDO_REDOP_SUMDIV)
        return a;
    return type.is_float ? Number(type, a.number / static_cast<double>(scalar))
                         : Wrap(type, a.whole / static_cast<__int128>(scalar));
}

bool Same(const Type &type, bool wide, uint64_t raw, uint64_t expected)
{
    if (raw == expected)
        return true;
    if (!type.is_float)
        return false;
    double a = wide ? LoadWide(type, raw).number : Load(type, raw).number;
    double b = wide ? LoadWide(type, expected).number : Load(type, expected).number;
    return (std::isnan(a) && std::isnan(b)) || (a == 0 && b == 0);
}

uint64_t Scalar(const Type &type, double value)
{
    Value scalar;

    scalar.number = value;
    scalar.whole = static_cast<__int128>(value);
    return StoreWide(type, scalar);
}

uint64_t GetRaw(const void *at, unsigned bytes)
{
    uint64_t raw = 0;

    std::memcpy(&raw, at, bytes);
    return raw;
}

void PutRaw(void *at, unsigned bytes, uint64_t raw)
{
    std::memcpy(at, &raw, bytes);
}

} // namespace reference
