// span_bench.cc - speed of the loops over elements next to memcpy of as many bytes, for every instruction set
// of this CPU.
//
// Counted are bytes of the result, so a sum of f32 at 0.5 of memcpy moves 3/4 of the memory traffic. A slot
// is 128 KiB: such spans lie in the second-level cache, as they do when a slot is folded that a peer on the
// host has just filled.
#include "reference.h"
#include "runnable_isas.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <string>

namespace
{

constexpr size_t kBytes = 128 << 10;

struct Memory {
    std::vector<unsigned char> out, in, x;

    Memory() : out(8 * kBytes), in(8 * kBytes), x(8 * kBytes)
    {
        for (size_t i = 0; i < in.size(); i++) {
            in[i] = static_cast<unsigned char>(0x30 | (i & 7)); /* ordinary numbers in every type */
            x[i] = static_cast<unsigned char>(0x38 | (i & 3));
        }
    }
};

Memory &Shared()
{
    static Memory memory;
    return memory;
}

// The fastest of many copies, measured once.
double CopySeconds()
{
    static const double best = [] {
        double seconds = 1;
        for (int i = 0; i < 2000; i++) {
            auto begin = std::chrono::steady_clock::now();
            std::memcpy(Shared().out.data(), Shared().in.data(), kBytes);
            benchmark::ClobberMemory();
            std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
            seconds = took.count() < seconds ? took.count() : seconds;
        }
        return seconds;
    }();
    return best;
}

void RunFold(benchmark::State &state, const rondo_spans &spans, unsigned out_bytes)
{
    Memory &memory = Shared();
    double copy = CopySeconds();

    for (auto _ : state) {
        spans.fold(memory.out.data(), memory.in.data(), memory.x.data(), kBytes / out_bytes, 0);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBytes));
    state.counters["of_memcpy"] =
        benchmark::Counter(copy * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

} // namespace

int main(int argc, char **argv)
{
    for (const Isa &isa : Isas())
        for (const reference::Type &type : reference::Types())
            for (int redop : {RONDO_REDOP_SUM, RONDO_REDOP_MAX})
                for (int wide = 0; wide <= reference::IsNarrow(type.id); wide++) {
                    std::string name = std::string(isa.name) + '/' + type.name + '/' +
                                       reference::OpName(redop) + (wide ? "/wide" : "");
                    const rondo_spans &spans = (*isa.spans[type.id])[redop][wide];
                    unsigned bytes = wide ? type.wide_bytes : type.bytes;
                    benchmark::RegisterBenchmark(name.c_str(), [&spans, bytes](benchmark::State &state) {
                        RunFold(state, spans, bytes);
                    });
                }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
