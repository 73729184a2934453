/*
 * guarded.h - a buffer with a no-access page right before or right behind it, and a pattern around it.
 *
 * START: the buffer begins `offset` bytes behind a no-access page. END: it ends at one, so that one byte read
 * too many faults. Bytes of the mapping outside the buffer hold a pattern that check() looks at.
 */
#ifndef RONDO_TESTS_GUARDED_H
#define RONDO_TESTS_GUARDED_H

#include <cstddef>
#include <cstdint>

class Guarded
{
  public:
    enum Side { START, END };

    /* In device memory (ncclMemAlloc) there are no such pages, only the pattern. */
    Guarded(size_t bytes, Side side, size_t offset, bool in_device_memory = false);
    ~Guarded();
    Guarded(const Guarded &) = delete;

    unsigned char *data() const
    {
        return data_;
    }

    /* Whether the pattern around the buffer is whole. */
    bool check() const;

    /* Fill the buffer with the pattern too, to see later whether it was left alone. */
    void fill();
    bool is_untouched() const;

  private:
    unsigned char *mapping_, *data_;
    bool in_device_memory_;
    size_t inner_, bytes_; /* bytes of the mapping between the guards; of the buffer */
};

#endif
