/*
 * lane.h - what code running as a fiber of the CPU device knows about where it runs.
 *
 * The kernel port is written on top of this. Kernels of several instruction sets share no symbol, so
 * everything they call comes through the table here.
 */
#ifndef RONDO_DEVICE_LANE_H
#define RONDO_DEVICE_LANE_H

#include "device/line.h"

#include <stdbool.h>
#include <stdint.h>

struct rondo_lane;
struct rondo_kernel_args;

struct rondo_lane_ops {
    /* Let other fibers run until line->value has reached target (unsigned distance below 2^63) or lane->stop
     * is raised. true: reached, with acquire; false: stopped. Call it only after a first look failed. */
    bool (*wait)(struct rondo_lane *lane, struct rondo_line *line, uint64_t target);

    /* The same for a word of 4 bytes that is waited for until it equals value; its writer then looks for
     * sleepers at line, whose own value means nothing. false: stopped, also if the word has come: who polls
     * may miss more than this word. Call it only after a first look failed. */
    bool (*wait_flag)(struct rondo_lane *lane, struct rondo_line *line, const uint32_t *flag, uint32_t value);

    /* rondo_doorbell_ring. */
    void (*ring)(struct rondo_switchboard *board, uint32_t waiter);

    /* Let other fibers of the thread run once; for long works, so that they stay live. */
    void (*yield)(struct rondo_lane *lane);
};

struct rondo_lane {
    const struct rondo_lane_ops *ops;
    struct rondo_line *stop; /* raised: give up */
    uint32_t block;
    uint32_t role; /* which of the block's two lists */
};

/* A kernel on the CPU device: runs the list (block, role) of args to its end or until it is stopped. */
typedef void (*rondo_cpu_kernel)(struct rondo_lane *lane, const struct rondo_kernel_args *args);

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels compiled for one instruction set: the entry that runs any work. Chosen once, by RONDO_CPU_ISA
 * or by what the CPU has. Never NULL. */
rondo_cpu_kernel rondo_cpu_kernel_select(const char **isa_out);

#ifdef __cplusplus
}
#endif

#endif
