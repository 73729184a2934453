/*
 * check.c - fill the buffers, and compare every element of the results.
 *
 * Expected values are made block by block while comparing, so that they need no buffer of their own. Memory
 * that the host can touch is filled and read in place; other memory goes through a block of host memory.
 */
#include "bench.h"
#include "data.h"
#include "verify.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)

static struct perf_round make_round(const struct perf_worker *worker, const struct perf_case *bench_case,
                                    int device, uint32_t number)
{
    return (struct perf_round){
        .type = bench_case->type,
        .op = bench_case->op,
        .root = bench_case->root,
        .rank = worker->devices[device].rank,
        .ranks = worker->run->ranks,
        .number = number,
        .in_place = bench_case->in_place,
        .shape = perf_case_shape(worker, bench_case, device),
    };
}

static enum perf_status fill_send(struct perf_worker *worker, const struct perf_round *round, char *send,
                                  bool is_host_accessible)
{
    const struct perf_collective *collective = worker->run->collective;
    size_t bytes = round->type->bytes, step = BLOCK_BYTES / bytes;
    char *block;
    cudaError_t error = cudaSuccess;

    if (is_host_accessible) {
        collective->fill(round, 0, round->shape.send_count, send);
        return PERF_OK;
    }
    block = malloc(BLOCK_BYTES);
    if (!block)
        return perf_fail(PERF_INTERNAL, "no memory for a block of data");
    for (size_t first = 0; first < round->shape.send_count && error == cudaSuccess; first += step) {
        size_t count = round->shape.send_count - first < step ? round->shape.send_count - first : step;

        collective->fill(round, first, count, block);
        error = cudaMemcpy(send + first * bytes, block, count * bytes, cudaMemcpyHostToDevice);
    }
    free(block);
    return error == cudaSuccess ? PERF_OK : perf_fail_cuda("cudaMemcpy of data to send", error);
}

enum perf_status perf_check_fill(struct perf_worker *worker, const struct perf_case *bench_case,
                                 uint32_t number)
{
    for (int d = 0; d < worker->run->options.gpus; d++) {
        const struct perf_device *device = &worker->devices[d];
        struct perf_round round = make_round(worker, bench_case, d, number);
        struct perf_place place = perf_bench_place(worker, bench_case, d, 0);
        char *start = device->recv + (size_t)worker->run->options.unalign * round.type->bytes;
        enum perf_status status;
        cudaError_t error;

        cudaSetDevice(device->device);
        error = cudaMemset(start, 0, perf_case_bytes(worker, bench_case));
        if (error == cudaSuccess)
            error = cudaDeviceSynchronize();
        if (error != cudaSuccess)
            return perf_fail_cuda("cudaMemset of the receive buffer", error);
        status = fill_send(worker, &round, place.send, device->is_host_accessible);
        if (status != PERF_OK)
            return status;
    }
    return PERF_OK;
}

/* RONDO_PERF_INJECT: one byte of this rank's result becomes another before anybody looks. */
static enum perf_status inject(struct perf_run *run, const struct perf_round *round, char *recv)
{
    uint64_t offset = run->options.inject_offset;
    unsigned char byte;
    cudaError_t error;

    if (run->options.inject_rank != (int)round->rank ||
        offset >= round->shape.recv_count * round->type->bytes)
        return PERF_OK;
    error = cudaMemcpy(&byte, recv + offset, 1, cudaMemcpyDeviceToHost);
    byte ^= 0x40; /* further off than any tolerance */
    if (error == cudaSuccess)
        error = cudaMemcpy(recv + offset, &byte, 1, cudaMemcpyHostToDevice);
    run->is_injected = true;
    return error == cudaSuccess ? PERF_OK : perf_fail_cuda("cudaMemcpy of the byte to damage", error);
}

static enum perf_status compare(struct perf_worker *worker, const struct perf_round *round, const char *recv,
                                bool is_host_accessible, uint64_t *wrong)
{
    const struct perf_collective *collective = worker->run->collective;
    struct perf_source source = {.type = round->type, .op = round->op};
    unsigned tolerance = collective->op_text ? 0 : perf_data_tolerance(&source);
    size_t bytes = round->type->bytes, step = BLOCK_BYTES / bytes;
    char *wanted = malloc(2 * BLOCK_BYTES), *copy = wanted + BLOCK_BYTES;
    cudaError_t error = cudaSuccess;

    if (!wanted)
        return perf_fail(PERF_INTERNAL, "no memory for a block of expected data");
    for (size_t first = 0; first < round->shape.recv_count && error == cudaSuccess; first += step) {
        size_t count = round->shape.recv_count - first < step ? round->shape.recv_count - first : step;
        const char *got = recv + first * bytes;

        collective->expect(round, first, count, wanted);
        if (!is_host_accessible) {
            error = cudaMemcpy(copy, got, count * bytes, cudaMemcpyDeviceToHost);
            got = copy;
        }
        if (error == cudaSuccess)
            *wrong += perf_verify_count(got, wanted, count, (unsigned)bytes, tolerance);
    }
    free(wanted);
    return error == cudaSuccess ? PERF_OK : perf_fail_cuda("cudaMemcpy of results", error);
}

enum perf_status perf_check_round(struct perf_worker *worker, const struct perf_case *bench_case,
                                  uint32_t number, double *wrong_out)
{
    uint64_t wrong = 0;
    enum perf_status status = perf_check_fill(worker, bench_case, number);

    if (status == PERF_OK) /* nobody sends into a buffer that is still being filled */
        status = perf_team_barrier(&worker->run->team, worker->index);
    if (status == PERF_OK)
        status = perf_bench_enqueue(worker, bench_case, 0);
    if (status == PERF_OK)
        status = perf_bench_wait(worker);
    for (int d = 0; d < worker->run->options.gpus && status == PERF_OK; d++) {
        struct perf_round round = make_round(worker, bench_case, d, number);
        char *recv = perf_bench_place(worker, bench_case, d, 0).recv;

        cudaSetDevice(worker->devices[d].device);
        status = inject(worker->run, &round, recv);
        if (status == PERF_OK)
            status = compare(worker, &round, recv, worker->devices[d].is_host_accessible, &wrong);
    }
    *wrong_out = (double)wrong;
    return status;
}
