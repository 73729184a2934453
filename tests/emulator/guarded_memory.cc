#include "guarded_memory.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace emulator
{

namespace
{

[[noreturn]] void Die(const char *what)
{
    std::perror(what);
    std::abort();
}

void *Map(size_t bytes, int protection, int fd)
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *at = mmap(nullptr, bytes, protection, flags | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED)
        Die("map the emulator's memory");
    return at;
}

} // namespace

Memory::Memory() : owners_(kArena / kLine)
{
    int fd = memfd_create("emulator", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(kArena)) != 0)
        Die("make the emulator's memory");
    void *kernels = Map(kArena, PROT_NONE, fd), *host = Map(kArena, PROT_READ | PROT_WRITE, fd);
    close(fd);
    base_ = reinterpret_cast<uintptr_t>(kernels);
    host_distance_ = reinterpret_cast<uintptr_t>(host) - base_;
    if (mprotect(static_cast<char *>(kernels) + kArena - kReadable, kReadable, PROT_READ) != 0)
        Die("protect the emulator's memory");
    cells_ = static_cast<Cell *>(Map(kArena / 4 * sizeof(Cell), PROT_READ | PROT_WRITE, -1));
    words_ = static_cast<uint32_t *>(Map(kArena * sizeof(uint32_t), PROT_READ | PROT_WRITE, -1));
    sites_.push_back({"?", 0, 0});
    Clear();
}

Memory::~Memory()
{
    munmap(reinterpret_cast<void *>(base_), kArena);
    munmap(reinterpret_cast<void *>(base_ + host_distance_), kArena);
    munmap(cells_, kArena / 4 * sizeof(Cell));
    munmap(words_, kArena * sizeof(uint32_t));
}

void *Memory::Allocate(const std::string &name, size_t bytes, bool is_readable, size_t offset)
{
    size_t begin = next_[is_readable] + kGuard + offset;
    size_t end = begin + bytes, limit = is_readable ? kArena : kArena - kReadable;

    if (end + kGuard > limit) {
        std::fprintf(stderr, "the emulator has no memory left for %zu bytes of %s\n", bytes, name.c_str());
        std::abort();
    }
    next_[is_readable] = (end + kLine - 1) / kLine * kLine;
    allocations_.push_back({name, begin, bytes});
    for (size_t line = begin / kLine; line < next_[is_readable] / kLine; line++)
        owners_[line] = static_cast<uint32_t>(allocations_.size());
    std::memset(reinterpret_cast<void *>(base_ + host_distance_ + begin), 0, bytes);
    return reinterpret_cast<void *>(base_ + begin);
}

void Memory::Clear()
{
    ClearAccesses();
    std::fill(owners_.begin(), owners_.end(), 0u);
    allocations_.clear();
    next_[0] = 0;
    next_[1] = kArena - kReadable;
}

// Cells and words of zero bits are those of memory that nobody has touched.
void Memory::ClearAccesses()
{
    for (const Allocation &a : allocations_) {
        std::memset(static_cast<void *>(cells_ + a.begin / 4), 0, (a.bytes / 4 + 2) * sizeof(Cell));
        std::memset(words_ + a.begin, 0, a.bytes * sizeof(uint32_t));
    }
    read_sets_.clear();
    split_.clear();
}

const Allocation *Memory::Find(const void *p, size_t bytes) const
{
    size_t offset = OffsetOf(p);

    if (offset >= kArena || owners_[offset / kLine] == 0)
        return nullptr;
    const Allocation &a = allocations_[owners_[offset / kLine] - 1];
    return offset >= a.begin && offset + bytes <= a.begin + a.bytes ? &a : nullptr;
}

std::string Memory::Describe(const void *p) const
{
    size_t offset = OffsetOf(p);
    const Allocation *nearest = nullptr;
    size_t least = SIZE_MAX;

    if (p == nullptr)
        return "NULL";
    if (offset >= kArena)
        return "an address outside the emulator's memory";
    for (const Allocation &a : allocations_) {
        size_t end = a.begin + a.bytes;
        size_t distance = offset < a.begin ? a.begin - offset : offset < end ? 0 : offset - end + 1;
        if (distance < least) {
            least = distance;
            nearest = &a;
        }
    }
    if (!nearest)
        return "memory without any allocation";
    long at = static_cast<long>(offset) - static_cast<long>(nearest->begin);
    return "'" + nearest->name + "'" + (at < 0 ? " - " : " + ") + std::to_string(std::labs(at)) + " (of " +
           std::to_string(nearest->bytes) + " bytes)";
}

uint16_t Memory::Intern(const Site &site)
{
    uint64_t key = reinterpret_cast<uintptr_t>(site.function) * 0x9e3779b97f4a7c15ull + site.line;
    auto found = site_index_.find(key);

    if (found != site_index_.end())
        return found->second;
    sites_.push_back(site);
    return site_index_[key] = static_cast<uint16_t>(sites_.size() - 1);
}

bool Memory::HasWord(const void *p, size_t bytes) const
{
    size_t first = OffsetOf(p) / 4, last = (OffsetOf(p) + bytes - 1) / 4;

    for (size_t i = first; i <= last; i++)
        if (cells_[i].has_word)
            return true;
    return false;
}

void Memory::NoteWord(const void *p, size_t bytes)
{
    for (size_t i = OffsetOf(p) / 4; i <= (OffsetOf(p) + bytes - 1) / 4; i++)
        cells_[i].has_word = true;
}

void Memory::Split(Cell &cell)
{
    Cell whole = cell;

    whole.bytes = 0;
    whole.has_word = false;
    Bytes bytes;
    for (Cell &byte : bytes.byte) {
        byte = whole;
        if (whole.reads != 0) {
            std::vector<Mark> copy = read_sets_[whole.reads - 1];
            read_sets_.push_back(std::move(copy));
            byte.reads = static_cast<uint32_t>(read_sets_.size());
        }
    }
    split_.push_back(bytes);
    cell.bytes = static_cast<uint32_t>(split_.size());
}

template <class Each> bool Memory::ForCells(const void *p, size_t bytes, const Each &each)
{
    size_t at = OffsetOf(p), end = at + bytes;

    while (at < end) {
        Cell &cell = cells_[at / 4];
        size_t next = std::min(end, at / 4 * 4 + 4);
        if (cell.bytes == 0 && next - at < 4)
            Split(cell);
        if (cell.bytes == 0) {
            if (each(cell))
                return true;
        } else {
            for (size_t i = at; i < next; i++)
                if (each(split_[cell.bytes - 1].byte[i % 4]))
                    return true;
        }
        at = next;
    }
    return false;
}

bool Memory::ReadCell(const Clock &clock, Cell &cell, Mark mark, Mark *other_out)
{
    if (!clock.Knows(cell.write.epoch)) {
        *other_out = cell.write;
        return true;
    }
    if (cell.reads == 0) {
        if (clock.Knows(cell.read.epoch)) {
            cell.read = mark;
            return false;
        }
        read_sets_.push_back({cell.read});
        cell.reads = static_cast<uint32_t>(read_sets_.size());
    }
    std::vector<Mark> &reads = read_sets_[cell.reads - 1];
    for (Mark &read : reads)
        if (clock.Knows(read.epoch)) {
            read = mark;
            return false;
        }
    reads.push_back(mark);
    return false;
}

bool Memory::CellConflicts(const Clock &clock, const Cell &cell, bool writes, Mark *other_out) const
{
    if (!clock.Knows(cell.write.epoch)) {
        *other_out = cell.write;
        return true;
    }
    if (!writes)
        return false;
    if (cell.reads == 0) {
        *other_out = cell.read;
        return !clock.Knows(cell.read.epoch);
    }
    for (const Mark &read : read_sets_[cell.reads - 1])
        if (!clock.Knows(read.epoch)) {
            *other_out = read;
            return true;
        }
    return false;
}

bool Memory::WriteCell(const Clock &clock, Cell &cell, Mark mark, Mark *other_out)
{
    if (CellConflicts(clock, cell, true, other_out))
        return true;
    cell.write = mark;
    cell.read = Mark{};
    if (cell.reads != 0)
        read_sets_[cell.reads - 1].clear();
    return false;
}

bool Memory::Read(const Clock &clock, const void *p, size_t bytes, uint16_t site, Mark *other_out)
{
    Mark mark{clock.Now(), site};

    return ForCells(p, bytes, [&](Cell &cell) { return ReadCell(clock, cell, mark, other_out); });
}

bool Memory::Write(const Clock &clock, const void *p, size_t bytes, uint16_t site, Mark *other_out)
{
    Mark mark{clock.Now(), site};

    return ForCells(p, bytes, [&](Cell &cell) { return WriteCell(clock, cell, mark, other_out); });
}

bool Memory::Conflicts(const Clock &clock, const void *p, size_t bytes, bool writes, Mark *other_out) const
{
    return const_cast<Memory *>(this)->ForCells(
        p, bytes, [&](Cell &cell) { return CellConflicts(clock, cell, writes, other_out); });
}

} // namespace emulator
