/*
 * port.h - the only header that knows which machine the kernels are compiled for.
 *
 * A block of lanes runs one list of works. On a GPU a block is a thread block and a lane is a thread; on the
 * CPU device a block has one lane, its barriers are nothing, and its inner loops are vector code; in the lane
 * emulator of the tests a lane is a fiber, and every function below that touches memory or waits for other
 * lanes is seen by a scheduler and a race detector. Everything else in this folder is written for any number
 * of lanes, in terms of what a port gives it:
 *
 *   RONDO_KERNELS              the namespace of this build of the kernels
 *   RONDO_INLINE, RONDO_MEMBER qualifiers of a small function, free or member
 *   RONDO_OUTLINE, RONDO_OUTLINED_MEMBER, RONDO_SPAN
 *                              of one that is worth a function of its own: free, member, static member
 *   RONDO_INDEPENDENT          before a loop whose iterations depend on each other in no way but exact
 *                              aliasing
 *
 * Memory. What lanes, blocks or ranks share is touched by functions of the port alone. Launch arguments,
 * works, blocks, orders and all of a connection's end but its step never change during a launch and are read
 * as they are. Plain accesses order nothing and may tear into bytes: no other lane may touch the bytes
 * meanwhile, which is what the detector checks.
 *
 *   load_plain(p), store_plain(p, v)
 *                              one object of its type's alignment
 *   load_bytes<P>(at), store_bytes(at, v)
 *                              sizeof(P) bytes at any address
 *   load_pack<P>(at), store_pack(at, v)
 *                              the same; where PACK_BYTES is not 0, at a multiple of sizeof(P), in one access
 *   copy_bytes(to, also, from, bytes)
 *                              memory to memory, all lanes of the block together; also may be NULL
 *   PACK_BYTES                 what one lane moves in one access; 0 leaves it to the compiler's vectoriser
 *   VECTOR_LANES               floats in a vector, when the port has vectors of its own: neighbours that one lane
 *                              takes at once (vector_cpu.h); 0 when it has none
 *   CONVERTS_HALVES, widened_halves, narrowed_halves
 *                              the machine's own f16 conversion of a vector, when it has one
 *   stay_scalar()              in a loop over single elements that is not worth vector code
 *
 * Order. T is an integer of 4 or 8 bytes (store_relaxed and store_last: also 1 byte). S is who takes part:
 * scope::BLOCK the lanes of this block, scope::DEVICE all of this GPU's, scope::SYSTEM peers and host too. A
 * release and an acquire synchronise only if each one's scope includes the other's lane. A release covers all
 * earlier accesses of its lane, and of lanes that this one has synchronised with (a barrier before it covers
 * the block). Accesses with an order are single-copy atomic.
 *
 *   load_relaxed<S>(p), store_relaxed<S>(p, v)
 *                              no order but that of the word itself; S is SYSTEM where it is not given
 *   fence<S>()                 release and acquire: of earlier loads and later stores, so that relaxed
 *                              accesses on either side order like acquires and releases
 *   store_last(p, v)           release of system scope: tells a watcher that the words before it are there
 *   claim(p)                   from 0 to 1 by compare-and-swap; true for who did it; orders nothing
 *
 * Lanes of a block. All lanes that an operation names take part in it, or none may go on.
 *
 *   lane_index(), lane_count() which lane this is, of how many
 *   barrier()                  all lanes arrive before one goes on, and see what the others wrote before it
 *   agree(verdict)             the verdict of lane 0 for every lane; a barrier as well
 *   agree_all(verdict)         whether every lane's verdict is true, for every lane; a barrier as well
 *
 * Warps: WARP_LANES neighbours, 32 where a block has lanes in plural (it then has whole warps), else 1. All
 * lanes of the warp take part in each operation of this paragraph, in the same order.
 *
 *   warp_lane(), warp_index()  which lane of its warp this is, and which warp of the block
 *   shuffle(value, from)       the value of that lane of the warp; T has 4 or 8 bytes; orders nothing
 *   vote_all(b)                whether all lanes of the warp say so; orders nothing
 *
 * Words that carry their own flag. All are relaxed and of system scope: what a word or a line holds is there
 * when its flag is, and nothing else is. Whoever overwrites one must have synchronised with its reader.
 *
 *   struct ll_word             4 bytes of data and 4 of flag, 8-byte aligned; stored and loaded whole
 *   struct ll_pair             two of them, 16-byte aligned
 *   load_ll_pair(p), store_ll_pair(p, w)
 *                              one access; the two words arrive each for itself, in any order
 *   LINE_LANES                 lanes that hold a 128-byte line together; a divisor of WARP_LANES
 *   struct line_part           what one of them holds: LINE_WORDS 8-byte words. Lane k of a group holds words
 *                              k * LINE_WORDS and on; the last word of the last lane is the line's flag
 *   load_line(line), store_line(line, part)
 *                              all lanes of the warp together. The lanes of a group name the same line,
 *                              128-byte aligned, or NULL: nothing is touched. A load that finds a store's
 *                              flag finds that store's other words; what it finds beside another flag is
 *                              anything that was stored there
 *
 * Waiting.
 *
 *   struct machine             where this lane runs: what waiting and waking need
 *   stop_raised(m)             whether somebody has ended this communicator's work; relaxed
 *   has_reached(line, target)  line_read against target, with acquire of system scope
 *   wait_until(m, line, target)
 *                              wait for that; false: stop was raised meanwhile. Only after has_reached said
 *                              no
 *   wait_flag(m, line, flag, value, polls)
 *                              between two looks of a loop that polls words which carry flags: one that it
 *                              still misses is the word of 4 bytes at flag, which will be value. Who stores
 *                              it calls announce for that line, so a lane may sleep. May return too early.
 *                              polls counts the looks and begins at 0. Lets others run; false: stop was
 *                              raised, give up
 *   announce(m, line, board)   after words with flags were stored by lanes that this one has synchronised
 *                              with: wake who waits for them in wait_flag
 *   publish(m, line, value, board)
 *                              line_publish: release of system scope
 *   raise_stop(m, page, value, board)
 *                              stop's value from 0, published; nothing when it was raised already
 *   breathe(m)                 let others run, in long works without waits
 *   enter_work(m, work, index) what this lane runs from here on, for reports of the emulator
 *
 * No inline function or variable with external linkage may be defined here or by what is included here:
 * several builds of the kernels for different instruction sets live in one library, and the linker would keep
 * only one copy.
 */
#ifndef RONDO_KERNELS_PORT_H
#define RONDO_KERNELS_PORT_H

#include "device/work.h"

#include <stddef.h>
#include <stdint.h>

namespace RONDO_KERNELS
{

enum class scope { BLOCK, DEVICE, SYSTEM };

struct alignas(8) ll_word {
    uint32_t data, flag;
};

struct alignas(16) ll_pair {
    struct ll_word word[2];
};

} // namespace RONDO_KERNELS

#if defined(RONDO_PORT) /* a test's own */
#include RONDO_PORT
#elif defined(__CUDACC__)
#include "kernels/port_gpu.h"
#else
#include "kernels/port_cpu.h"
#endif

#endif
