/*
 * span_loops.cc - speed of the CPU device's loops over elements, next to a memcpy that moves as many bytes in
 * the same run.
 *
 *   bench_spans [rounds [instruction set]]      prints one JSON object on stdout
 *
 * share: how fast the loop moves bytes, read and written, as a part of how fast memcpy does. 1 would mean
 * that the computation costs nothing. Loop and copy are measured in turn and the medians are compared,
 * because machines are shared. All of it lies in the second-level cache, as slots do that a peer on the host
 * has just filled.
 *
 *   fold      out = in + x               partial sums in the user's type
 *   widen     out = x as an accumulator  the first step of the precise mode
 *   fold wide, finish wide               its later steps and the last
 *   combine   out = x0 + x1 + x2 + x3    direct works
 */
#include "reference.h"
#include "runnable_isas.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

namespace
{

constexpr size_t kTraffic = 192 << 10; // bytes that one call reads and writes
constexpr unsigned kSources = 4;

struct Memory {
    std::vector<unsigned char> out, in, x[kSources];

    Memory() : out(kTraffic), in(kTraffic)
    {
        for (auto &input : x)
            input.resize(kTraffic);
        for (size_t i = 0; i < kTraffic; i++) {
            in[i] = static_cast<unsigned char>(0x30 | (i & 7)); // ordinary numbers in every type
            for (auto &input : x)
                input[i] = static_cast<unsigned char>(0x38 | (i & 3));
        }
    }
};

double Seconds(const std::function<void()> &call)
{
    auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> &samples)
{
    std::nth_element(samples.begin(), samples.begin() + static_cast<long>(samples.size() / 2), samples.end());
    return samples[samples.size() / 2];
}

// The copy's median time over the loop's. bytes: what the loop moves.
double Share(Memory &memory, const std::function<void()> &loop, size_t bytes, unsigned rounds)
{
    std::vector<double> loops, copies;

    for (unsigned round = 0; round < rounds + 2; round++) { // two to warm up
        double took = Seconds(loop);
        double copy = Seconds([&] {
            std::memcpy(memory.out.data(), memory.in.data(), bytes / 2);
            __asm__ volatile("" ::: "memory"); // the copies are not dead
        });
        if (round < 2)
            continue;
        loops.push_back(took);
        copies.push_back(copy);
    }
    return Median(copies) / Median(loops);
}

struct Loop {
    const char *name;
    bool is_wide;
    size_t element_bytes; // read and written for an element of the result
    std::function<void(const rondo_spans &, uint64_t n)> run;
};

std::vector<Loop> Loops(Memory &memory, const reference::Type &type, uint64_t scalar)
{
    size_t own = type.bytes, wide = type.wide_bytes;
    void *out = memory.out.data(), *in = memory.in.data(), *x = memory.x[0].data();
    std::vector<Loop> loops = {
        {"fold", false, 3 * own, [=](auto &spans, uint64_t n) { spans.fold(out, in, x, n, scalar); }},
        {"combine", false, (kSources + 1) * own, [=, &memory](auto &spans, uint64_t n) {
             rondo_source sources[kSources];
             for (unsigned s = 0; s < kSources; s++)
                 sources[s] = {memory.x[s].data(), scalar};
             spans.combine(out, nullptr, sources, kSources, n);
         }}};

    if (wide == own)
        return loops;
    loops.push_back(
        {"widen", true, wide + own, [=](auto &spans, uint64_t n) { spans.enter(out, x, n, scalar); }});
    loops.push_back({"fold wide", true, 2 * wide + own,
                     [=](auto &spans, uint64_t n) { spans.fold(out, in, x, n, scalar); }});
    loops.push_back({"finish wide", true, wide + 2 * own,
                     [=](auto &spans, uint64_t n) { spans.finish(out, nullptr, in, x, n, scalar); }});
    return loops;
}

void MeasureType(Memory &memory, const Isa &isa, const reference::Type &type, unsigned rounds, bool &is_first)
{
    for (int redop = 0; redop < RONDO_REDOP_NUM; redop++) {
        uint64_t scalar = redop == RONDO_REDOP_PREMULSUM ? reference::Scalar(type, 0.5)
                          : redop == RONDO_REDOP_SUMDIV  ? 2
                                                         : 0;
        if (redop == RONDO_REDOP_SUMDIV && type.is_float)
            continue; // averages of floating types are PREMULSUM
        std::printf("%s\n  {\"isa\": \"%s\", \"type\": \"%s\", \"op\": \"%s\"", is_first ? "" : ",", isa.name,
                    type.name, reference::OpName(redop));
        is_first = false;
        for (const Loop &loop : Loops(memory, type, scalar)) {
            const rondo_spans &spans = (*isa.spans[type.id])[redop][loop.is_wide];
            uint64_t n = kTraffic / loop.element_bytes;
            double share = Share(
                memory, [&] { loop.run(spans, n); }, n * loop.element_bytes, rounds);
            std::printf(", \"%s\": %.3f", loop.name, share);
        }
        std::printf("}");
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 101;
    std::string only = argc > 2 ? argv[2] : "";
    bool is_first = true, is_known = only.empty();

    for (const Isa &isa : Isas())
        is_known = is_known || only == isa.name;
    if (rounds < 1 || !is_known) {
        std::fprintf(
            stderr,
            "usage: bench_spans [rounds, 1 or more [instruction set of this CPU, one of isas.def]]\n");
        return 2;
    }
    Memory memory;
    std::printf(
        "{\"schema\": 1, \"benchmark\": \"spans\", \"rounds\": %d, \"bytes_moved\": %zu, \"shares\": [",
        rounds, kTraffic);
    for (const Isa &isa : Isas())
        for (const reference::Type &type : reference::Types())
            if (only.empty() || only == isa.name)
                MeasureType(memory, isa, type, static_cast<unsigned>(rounds), is_first);
    std::printf("]}\n");
    return 0;
}
