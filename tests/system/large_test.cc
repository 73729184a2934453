/*
 * large_test.cc - operations beyond 2^31 elements and 2^32 bytes: right at both ends and around those marks.
 *
 * In place, 8-bit elements, two ranks as threads: two buffers of 4 GiB and a little. Skips aloud on a machine
 * without the memory.
 */
#include "forked_job.h"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>

static const size_t kBlock = (1ull << 31) + 17;

static unsigned char pattern(int rank, size_t index)
{
    return (unsigned char)(index * 131 + (index >> 16) * 7 + (index >> 31) * 29 + (size_t)rank * 101 + 1);
}

static void fill(unsigned char *block, int rank)
{
    for (size_t i = 0; i < kBlock; i++)
        block[i] = pattern(rank, i);
}

static void check(Context &context, const unsigned char *all)
{
    for (int rank = 0; rank < 2; rank++)
        for (size_t i = 0; i < kBlock; i++)
            if (all[(size_t)rank * kBlock + i] != pattern(rank, i))
                return context.fail("byte %zu of rank %d's block is wrong", i, rank);
}

static void gather(Context &context)
{
    LocalRank &me = context.local[0];
    void *memory =
        mmap(nullptr, 2 * kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return context.fail("mmap of %zu bytes", 2 * kBlock);
    unsigned char *all = static_cast<unsigned char *>(memory);
    fill(all + (size_t)me.rank * kBlock, me.rank);
    if (context.ok(ncclAllGather(all + (size_t)me.rank * kBlock, all, kBlock, ncclUint8, me.comm, me.stream),
                   "all-gather")) {
        context.synchronize();
        check(context, all);
    }
    munmap(memory, 2 * kBlock);
}

static unsigned long long available_bytes()
{
    unsigned long long kilobytes = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

int main()
{
    unsigned long long needed = 4 * kBlock + (1ull << 30), available = available_bytes();
    if (available < needed) {
        printf("SKIPPED: needs %llu bytes of memory, %llu are available\n", needed, available);
        return 77;
    }
    JobOptions options;
    options.limit_seconds = 300;
    std::string verdict = run_job(2, Layout{1, false}, gather, options);
    printf("all-gather of 2 x %zu elements: %s\n", kBlock, verdict.empty() ? "right" : verdict.c_str());
    return verdict.empty() ? 0 : 1;
}
