// words.h - protocol accesses: lines, words that carry flags, atomics. What a load may find.
//
// Each word keeps its last stores in the order in which they were made. A load may find any of them that is
// not older than a store or a load that happened before it; so what a kernel does not order it sees out of
// order. A store also keeps what its writer had done, for acquires: one stamp for each distance between
// writer and reader, as far as the scopes of the store and of the fence before it reach.
#ifndef RONDO_TESTS_EMULATOR_WORDS_H
#define RONDO_TESTS_EMULATOR_WORDS_H

#include "guarded_memory.h"
#include "seeded_random.h"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

namespace emulator
{

// Also how far apart two lanes are: same block, same device, or neither.
enum class Scope { BLOCK, DEVICE, SYSTEM };
constexpr int kScopes = 3;

enum class Order { RELAXED, ACQUIRE_RELEASE };

using Stamps = std::array<Stamp, kScopes>; // by distance; not set: no release reaches that far

struct Lane;

struct Stored {
    std::array<uint64_t, 16> value{}; // of words of 1 to 8 bytes only the first
    Mark writer;                      // time 0: what was there before
    Scope scope = Scope::SYSTEM;
    Stamps stamps;
};

struct Word {
    const void *address = nullptr;
    uint32_t bytes = 0;
    uint64_t first = 0; // number of stores[0], counted from the word's first
    std::deque<Stored> stores;
    struct Reader {
        Mark mark;
        Scope scope;
        uint64_t store; // the newest it found
        unsigned stale; // loads in a row that did not find the newest
    };
    std::vector<Reader> readers;
    std::vector<Lane *> waiters; // for a value; the machine's
    // Of a word that carries a flag: who found its newest store so far, each lane's first time. Only lanes of
    // the team that was first: others look for a store to come.
    std::vector<Mark> takers;
    uint64_t taken = 0; // number of the store

    uint64_t Newest() const
    {
        return first + stores.size() - 1;
    }
    Stored &At(uint64_t number)
    {
        return stores[number - first];
    }
    uint64_t Value()
    {
        return stores.back().value[0];
    }
};

class Words
{
  public:
    explicit Words(Memory &memory) : memory_(memory)
    {
    }

    // The word at an address that Find has found. NULL: its bytes are in use as words of other sizes.
    Word *Get(const void *p, uint32_t bytes);

    // The word that has the byte there, or NULL.
    const Word *Around(const void *p);

    // The stores that a load by this lane may find: from the number returned to the newest.
    uint64_t Oldest(const Word &word, const Clock &clock) const;

    // One of them, by chance; the newest more often than not, and after a few older ones in a row.
    uint64_t Choose(Word &word, const Clock &clock, Random &random, bool newest);

    // The load of that store.
    void NoteRead(Word &word, Mark reader, Scope scope, uint64_t number);

    // Append a store, in memory too.
    void Append(Word &word, Stored store);

    // A plain access to bytes of words: true and the other access if it races. A write that does not ends the
    // words: the next protocol access starts a new history.
    bool PlainConflicts(const Clock &clock, const void *p, size_t bytes, bool writes, Mark *other_out);

    void Clear();

  private:
    static constexpr size_t kHistory = 8, kReaders = 128;
    static constexpr unsigned kStale = 3;

    Memory &memory_;
    std::deque<Word> words_;
};

} // namespace emulator

#endif
