// guarded_memory.h - the memory that kernels see: allocations with guard zones, and who touched each byte
// last.
//
// Kernels get addresses that cannot be touched natively: a kernel that goes around the port crashes at once.
// Ends of connections, which are constant but for their step, can be read natively and not written. The host
// (the tests) sees the same bytes at another address, Host().
//
// The race detector keeps, for every 4 bytes, the last write and the reads since (FastTrack); for single
// bytes, once an access was smaller or across.
#ifndef RONDO_TESTS_EMULATOR_GUARDED_MEMORY_H
#define RONDO_TESTS_EMULATOR_GUARDED_MEMORY_H

#include "clocks.h"
#include "lane_failure.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace emulator
{

struct Allocation {
    std::string name;
    size_t begin, bytes; // offset in the arena
};

// An access and where it was made.
struct Mark {
    Epoch epoch;
    uint16_t site = 0;
};

class Memory
{
  public:
    Memory();
    ~Memory();
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;

    // Zeroed; at least kGuard bytes from any other. The address is the kernels'; offset is added to
    // alignment.
    void *Allocate(const std::string &name, size_t bytes, bool is_readable = false, size_t offset = 0);

    // Forget all allocations, and all accesses.
    void Clear();

    // Forget all accesses.
    void ClearAccesses();

    // Where the host finds what kernels find at p.
    template <class T> T *Host(T *p) const
    {
        return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(p) + host_distance_);
    }

    // The allocation that [p, p + bytes) lies in, or NULL.
    const Allocation *Find(const void *p, size_t bytes) const;

    // Whether p lies in the arena, be it in an allocation, a guard zone or what is free.
    bool Covers(const void *p) const
    {
        return OffsetOf(p) < kArena;
    }

    // "slots 0->1 + 24", or what is near.
    std::string Describe(const void *p) const;

    // Offset in the arena. p must lie in it.
    size_t OffsetOf(const void *p) const
    {
        return reinterpret_cast<uintptr_t>(p) - base_;
    }

    uint16_t Intern(const Site &site);
    const Site &SiteOf(uint16_t index) const
    {
        return sites_[index];
    }

    // The plain access of a lane to bytes that Find has found. If it races, the other access and true.
    bool Read(const Clock &clock, const void *p, size_t bytes, uint16_t site, Mark *other_out);
    bool Write(const Clock &clock, const void *p, size_t bytes, uint16_t site, Mark *other_out);

    // Whether a protocol access races with plain ones before it.
    bool Conflicts(const Clock &clock, const void *p, size_t bytes, bool writes, Mark *other_out) const;

    // Words of protocol accesses (words.h) by their bytes; 0: none.
    uint32_t &WordAt(const void *p)
    {
        return words_[OffsetOf(p)];
    }

    // Whether any of the bytes belongs to a word.
    bool HasWord(const void *p, size_t bytes) const;
    void NoteWord(const void *p, size_t bytes);

    static constexpr size_t kGuard = 256;

  private:
    static constexpr size_t kArena = size_t{32} << 20, kReadable = size_t{4} << 20; // the end can be read
    static constexpr size_t kLine = 128;

    // Last write, and reads since: one, or a set of several.
    struct Cell {
        Mark write, read;
        uint32_t reads = 0; // index + 1 in read_sets_
        uint32_t bytes = 0; // index + 1 in split_: every byte has a cell of its own
        bool has_word = false;
    };

    template <class Each> bool ForCells(const void *p, size_t bytes, const Each &each);
    bool ReadCell(const Clock &clock, Cell &cell, Mark mark, Mark *other_out);
    bool WriteCell(const Clock &clock, Cell &cell, Mark mark, Mark *other_out);
    bool CellConflicts(const Clock &clock, const Cell &cell, bool writes, Mark *other_out) const;
    void Split(Cell &cell);

    uintptr_t base_ = 0, host_distance_ = 0;
    size_t next_[2] = {0, 0};
    std::vector<Allocation> allocations_;
    std::vector<uint32_t> owners_; // by line: allocation + 1
    Cell *cells_ = nullptr;        // by 4 bytes
    uint32_t *words_ = nullptr;    // by byte
    std::vector<std::vector<Mark>> read_sets_;
    struct Bytes {
        Cell byte[4];
    };
    std::vector<Bytes> split_;
    std::vector<Site> sites_;
    std::unordered_map<uint64_t, uint16_t> site_index_;
};

} // namespace emulator

#endif
