/*
 * copy_lanes.cuh - copy_bytes for ports whose lanes move packs: all lanes of the block share the copy.
 */
#ifndef RONDO_KERNELS_COPY_LANES_CUH
#define RONDO_KERNELS_COPY_LANES_CUH

namespace RONDO_KERNELS
{

struct alignas(16) copy_pack {
    uint64_t half[2];
};

RONDO_INLINE void copy_singly(unsigned char *to, unsigned char *also, const unsigned char *from,
                              uint64_t first, uint64_t bytes)
{
    for (uint64_t i = first + lane_index(); i < bytes; i += lane_count()) {
        unsigned char byte = load_plain(from + i);

        store_plain(to + i, byte);
        if (also)
            store_plain(also + i, byte);
    }
}

/* 16-byte accesses, four in flight a lane, when all sides are aligned to them; byte by byte otherwise. */
RONDO_INLINE void copy_bytes(void *to, void *also, const void *from, uint64_t bytes)
{
    constexpr unsigned inflight = 4;
    uint64_t packs = (((uintptr_t)to | (uintptr_t)also | (uintptr_t)from) & 15) == 0 ? bytes / 16 : 0;

    for (uint64_t base = 0; base < packs; base += (uint64_t)inflight * lane_count()) {
        copy_pack held[inflight];

        RONDO_UNROLL
        for (unsigned k = 0; k < inflight; k++) {
            uint64_t at = base + (uint64_t)k * lane_count() + lane_index();

            if (at < packs)
                held[k] = load_pack<copy_pack>((const copy_pack *)from + at);
        }
        RONDO_UNROLL
        for (unsigned k = 0; k < inflight; k++) {
            uint64_t at = base + (uint64_t)k * lane_count() + lane_index();

            if (at < packs) {
                store_pack((copy_pack *)to + at, held[k]);
                if (also)
                    store_pack((copy_pack *)also + at, held[k]);
            }
        }
    }
    copy_singly((unsigned char *)to, (unsigned char *)also, (const unsigned char *)from, packs * 16, bytes);
}

} // namespace RONDO_KERNELS

#endif
