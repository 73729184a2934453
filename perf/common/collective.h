/*
 * collective.h - what a perf program says of the operation it measures.
 *
 * The common code owns buffers, streams, time and tables; a program fills in this table and calls
 * perf_main(). Amounts are elements, and "rank" is that in the communicator.
 */
#ifndef PERF_COLLECTIVE_H
#define PERF_COLLECTIVE_H

#include "elements.h"

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a requested size turns into buffers, for one rank. */
struct perf_shape {
    size_t send_count;
    size_t recv_count;
    size_t param_count;         /* what the call is given, and the table shows */
    size_t in_place_send_start; /* where, in place, the rank's send and receive data lie in the one buffer */
    size_t in_place_recv_start;
};

/* One call on one rank. */
struct perf_call {
    const void *send;
    void *recv;
    size_t count;
    const struct perf_type *type;
    ncclRedOp_t op;
    int root;
    unsigned rank;
    unsigned ranks;
    ncclComm_t comm;
    cudaStream_t stream;
};

/* One verification, as one rank sees it. */
struct perf_round {
    const struct perf_type *type;
    enum perf_op op;
    int root;
    unsigned rank;
    unsigned ranks;
    uint32_t number; /* seeds the data */
    bool in_place;
    struct perf_shape shape;
};

struct perf_collective {
    const char *program; /* "all_reduce_perf" */
    const char *
        op_text; /* of the table's redop column; NULL: the name of the operation, which is then looped over */
    bool is_rooted;
    bool verifies_in_place; /* false: in place is timed, but what must come out is not defined */
    int max_p2p_peers;      /* ncclConfig_t.maxP2pPeers; 0: leave it */

    /* Pure. elements: how many of the type the requested size has. */
    struct perf_shape (*shape)(size_t elements, unsigned element_bytes, unsigned rank, unsigned ranks);

    /* Bytes that the algorithm bandwidth counts for a call, and what the bus bandwidth multiplies it by. */
    double (*algorithm_bytes)(const struct perf_shape *shape, unsigned element_bytes, unsigned ranks);
    double (*bus_factor)(unsigned ranks);

    /* Enqueue step number step (from 0) of steps(ranks) for one rank. Steps of all ranks of a thread are
     * grouped, one group a step, in order. NULL: one step. *what_out names the function that failed. */
    ncclResult_t (*enqueue)(const struct perf_call *call, unsigned step, const char **what_out);
    unsigned (*steps)(unsigned ranks);

    /* Elements [first, first + count) of what the rank's send buffer holds before the call, and of what its
     * receive buffer must hold after it. In place, a receive buffer starts as zeros with the send data laid
     * over. */
    void (*fill)(const struct perf_round *round, size_t first, size_t count, void *out);
    void (*expect)(const struct perf_round *round, size_t first, size_t count, void *out);

    /* NULL: runs with any number. Else a text that says why these ranks cannot run; NULL from it: they can.
     */
    const char *(*refuse)(unsigned ranks);
};

/* The main function of every program. Returns the exit status. */
int perf_main(int argc, char **argv, const struct perf_collective *collective);

/* Shapes, bandwidths and data that several programs share. */
struct perf_shape perf_shape_whole(size_t elements, unsigned element_bytes, unsigned rank, unsigned ranks);
struct perf_shape perf_shape_gathering(size_t elements, unsigned element_bytes, unsigned rank,
                                       unsigned ranks);
struct perf_shape perf_shape_scattering(size_t elements, unsigned element_bytes, unsigned rank,
                                        unsigned ranks);
double perf_bytes_of_count(const struct perf_shape *shape, unsigned element_bytes, unsigned ranks);
double perf_bytes_of_all(const struct perf_shape *shape, unsigned element_bytes, unsigned ranks);
double perf_factor_one(unsigned ranks);
double perf_factor_others(unsigned ranks); /* (n-1)/n */

/* The receive buffer of a rank that must get nothing: zeros, and in place its own send data. */
void perf_expect_untouched(const struct perf_collective *collective, const struct perf_round *round,
                           size_t first, size_t count, void *out);

/* A receive buffer made of ranks blocks of block elements; part(round, j, ...) gives elements of block j. */
void perf_expect_blocks(const struct perf_round *round, size_t block, size_t first, size_t count, void *out,
                        void (*part)(const struct perf_round *round, unsigned j, size_t first, size_t count,
                                     void *out));

#endif
