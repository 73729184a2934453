/* guarded.cc - see guarded.h. */
#include "guarded.h"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

static const size_t kPage = 4096;
static const unsigned char kPattern = 0xC5;

Guarded::Guarded(size_t bytes, Side side, size_t offset, bool in_device_memory)
    : in_device_memory_(in_device_memory), bytes_(bytes)
{
    inner_ = (bytes + offset + kPage - 1) / kPage * kPage;
    if (inner_ == 0)
        inner_ = kPage;
    void *mapping = nullptr;
    if (in_device_memory && ncclMemAlloc(&mapping, inner_ + 2 * kPage) != ncclSuccess)
        abort();
    if (!in_device_memory)
        mapping =
            mmap(nullptr, inner_ + 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        abort();
    mapping_ = static_cast<unsigned char *>(mapping);
    if (!in_device_memory) {
        mprotect(mapping_, kPage, PROT_NONE);
        mprotect(mapping_ + kPage + inner_, kPage, PROT_NONE);
    }
    data_ = side == START ? mapping_ + kPage + offset : mapping_ + kPage + inner_ - bytes;
    memset(mapping_ + kPage, kPattern, inner_);
}

Guarded::~Guarded()
{
    if (in_device_memory_)
        ncclMemFree(mapping_);
    else
        munmap(mapping_, inner_ + 2 * kPage);
}

void Guarded::fill()
{
    memset(data_, kPattern, bytes_);
}

static bool all_pattern(const unsigned char *from, const unsigned char *to)
{
    for (; from < to; from++)
        if (*from != kPattern)
            return false;
    return true;
}

bool Guarded::is_untouched() const
{
    return all_pattern(data_, data_ + bytes_);
}

bool Guarded::check() const
{
    return all_pattern(mapping_ + kPage, data_) && all_pattern(data_ + bytes_, mapping_ + kPage + inner_);
}
