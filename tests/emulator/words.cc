#include "words.h"

#include <algorithm>
#include <cstring>

namespace emulator
{

Word *Words::Get(const void *p, uint32_t bytes)
{
    const unsigned char *at = static_cast<const unsigned char *>(p);
    uint32_t index = memory_.WordAt(p);

    if (index != 0) {
        Word &word = words_[index - 1];
        return word.address == p && word.bytes == bytes ? &word : nullptr;
    }
    for (uint32_t i = 0; i < bytes; i++)
        if (memory_.WordAt(at + i) != 0)
            return nullptr;
    words_.emplace_back();
    Word &word = words_.back();
    word.address = p;
    word.bytes = bytes;
    word.stores.emplace_back();
    std::memcpy(word.stores.back().value.data(), memory_.Host(p), bytes);
    for (uint32_t i = 0; i < bytes; i++)
        memory_.WordAt(at + i) = static_cast<uint32_t>(words_.size());
    memory_.NoteWord(p, bytes);
    return &word;
}

const Word *Words::Around(const void *p)
{
    uint32_t index = memory_.WordAt(p);

    return index == 0 ? nullptr : &words_[index - 1];
}

uint64_t Words::Oldest(const Word &word, const Clock &clock) const
{
    uint64_t oldest = word.first;

    for (size_t i = 0; i < word.stores.size(); i++)
        if (clock.Knows(word.stores[i].writer.epoch))
            oldest = word.first + i;
    for (const Word::Reader &reader : word.readers)
        if (reader.store > oldest && clock.Knows(reader.mark.epoch))
            oldest = reader.store;
    return oldest;
}

uint64_t Words::Choose(Word &word, const Clock &clock, Random &random, bool newest)
{
    uint64_t oldest = Oldest(word, clock), last = word.Newest();

    if (oldest == last)
        return last;
    auto reader = std::find_if(word.readers.begin(), word.readers.end(),
                               [&](const Word::Reader &r) { return r.mark.epoch.lane == clock.Now().lane; });
    if (newest || random.OneIn(2) || (reader != word.readers.end() && reader->stale >= kStale))
        return last;
    return oldest + random.Below(static_cast<uint32_t>(last - oldest + 1));
}

void Words::NoteRead(Word &word, Mark mark, Scope scope, uint64_t number)
{
    bool is_stale = number != word.Newest();

    for (Word::Reader &reader : word.readers)
        if (reader.mark.epoch.lane == mark.epoch.lane) {
            reader.mark = mark;
            reader.scope = scope;
            reader.store = std::max(reader.store, number);
            reader.stale = is_stale ? reader.stale + 1 : 0;
            return;
        }
    if (word.readers.size() == kReaders)
        word.readers.erase(word.readers.begin());
    word.readers.push_back({mark, scope, number, is_stale});
}

void Words::Append(Word &word, Stored store)
{
    std::memcpy(memory_.Host(const_cast<void *>(word.address)), store.value.data(), word.bytes);
    word.stores.push_back(std::move(store));
    if (word.stores.size() > kHistory) {
        word.stores.pop_front();
        word.first++;
    }
}

bool Words::PlainConflicts(const Clock &clock, const void *p, size_t bytes, bool writes, Mark *other_out)
{
    const unsigned char *at = static_cast<const unsigned char *>(p);

    for (size_t i = 0; i < bytes; i++) {
        uint32_t index = memory_.WordAt(at + i);
        if (index == 0)
            continue;
        Word &word = words_[index - 1];
        for (const Stored &store : word.stores)
            if (!clock.Knows(store.writer.epoch)) {
                *other_out = store.writer;
                return true;
            }
        for (const Word::Reader &reader : word.readers)
            if (writes && !clock.Knows(reader.mark.epoch)) {
                *other_out = reader.mark;
                return true;
            }
        if (writes && word.waiters.empty())
            for (uint32_t k = 0; k < word.bytes; k++)
                memory_.WordAt(static_cast<const unsigned char *>(word.address) + k) = 0;
    }
    return false;
}

void Words::Clear()
{
    words_.clear();
}

} // namespace emulator
