// seeded_random.h - the one source of chance: the same seed gives the same run.
#ifndef RONDO_TESTS_EMULATOR_SEEDED_RANDOM_H
#define RONDO_TESTS_EMULATOR_SEEDED_RANDOM_H

#include <cstdint>

namespace emulator
{

// splitmix64: small, and good enough to pick lanes with.
class Random
{
  public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 0x1234567)
    {
    }

    uint64_t Next()
    {
        uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return z ^ z >> 31;
    }

    // 0 .. n - 1; n > 0.
    uint32_t Below(uint32_t n)
    {
        return static_cast<uint32_t>((Next() >> 32) * n >> 32);
    }

    bool OneIn(uint32_t n)
    {
        return Below(n) == 0;
    }

  private:
    uint64_t state_;
};

} // namespace emulator

#endif
