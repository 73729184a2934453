/* api_call.cc - see api_call.h. */
#include "api_call.h"

#include "exact_values.h"

const char *const operation_names[NUM_OPERATIONS] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                                     "Bcast",     "Reduce",    "AlltoAll",      "Gather",
                                                     "Scatter",   "SendRecv",  "SendPairs"};

bool operation_reduces(Operation operation)
{
    return operation == ALL_REDUCE || operation == REDUCE_SCATTER || operation == REDUCE;
}

bool operation_has_root(Operation operation)
{
    return operation == BROADCAST || operation == BCAST || operation == REDUCE || operation == GATHER ||
           operation == SCATTER;
}

bool operation_has_in_place(Operation operation)
{
    return operation != ALL_TO_ALL && operation != SEND_RECV && operation != SEND_PAIRS;
}

/* SEND_PAIRS: elements from one rank to another. */
static size_t pair_count(const Call &call, int from, int to)
{
    return call.count + (size_t)((from * 3 + to) % 5);
}

/* Where the data between `rank` and peer 0..peer-1 ends in a SEND_PAIRS buffer. */
static size_t pair_offset(const Call &call, int rank, int peer, bool sending)
{
    size_t elements = 0;
    for (int other = 0; other < peer; other++)
        elements += sending ? pair_count(call, rank, other) : pair_count(call, other, rank);
    return elements;
}

static size_t send_elements(const Call &call, int rank, int ranks)
{
    switch (call.operation) {
    case REDUCE_SCATTER:
    case ALL_TO_ALL:
        return call.count * (size_t)ranks;
    case SCATTER:
        return rank == call.root ? call.count * (size_t)ranks : 0;
    case BROADCAST:
        return rank == call.root ? call.count : 0;
    case BCAST:
        return 0;
    case SEND_PAIRS:
        return pair_offset(call, rank, ranks, true);
    default:
        return call.count;
    }
}

static size_t recv_elements(const Call &call, int rank, int ranks)
{
    switch (call.operation) {
    case ALL_GATHER:
    case ALL_TO_ALL:
        return call.count * (size_t)ranks;
    case GATHER:
        return rank == call.root ? call.count * (size_t)ranks : 0;
    case SEND_PAIRS:
        return pair_offset(call, rank, ranks, false);
    default:
        return call.count;
    }
}

static void fill_input(const Call &call, void *out, int rank, size_t elements)
{
    size_t bytes = type_bytes(call.type);
    for (size_t i = 0; i < elements; i++) {
        unsigned char *element = static_cast<unsigned char *>(out) + i * bytes;
        if (operation_reduces(call.operation))
            store_input(element, call.type, call.redop, call.seed, rank, i);
        else
            store_bits(element, call.type, call.seed, rank, i);
    }
}

static bool in_device_memory(const Call &call, int rank)
{
    return call.device_memory == 1 || (call.device_memory == 2 && rank % 2 == 1);
}

/* In place the input is written to its documented position in the one buffer, which must hold both sides. */
static Buffers make_in_place(const Call &call, int rank, int ranks)
{
    Buffers buffers;
    size_t bytes = type_bytes(call.type), block = call.count * bytes;
    size_t input = send_elements(call, rank, ranks), output = recv_elements(call, rank, ranks);
    size_t all = (input > output ? input : output) * bytes;
    buffers.recv.reset(new Guarded(all, call.side, call.side == Guarded::START ? call.offset : 0,
                                   in_device_memory(call, rank)));
    unsigned char *base = buffers.recv->data();
    buffers.send_argument = buffers.recv_argument = base;
    if (call.operation == ALL_GATHER)
        buffers.send_argument = base + (size_t)rank * block;
    if (call.operation == GATHER && rank == call.root)
        buffers.send_argument = base + (size_t)call.root * block;
    if (call.operation == REDUCE_SCATTER)
        buffers.recv_argument = base + (size_t)rank * block;
    if (call.operation == SCATTER && rank == call.root)
        buffers.recv_argument = base + (size_t)call.root * block;
    bool has_input = call.operation != BCAST || rank == call.root;
    size_t elements = call.operation == BCAST ? call.count : input;
    if (has_input)
        fill_input(call, const_cast<void *>(buffers.send_argument), rank, elements);
    return buffers;
}

Buffers make_buffers(const Call &call, int rank, int ranks)
{
    if (call.in_place || call.operation == BCAST)
        return make_in_place(call, rank, ranks);
    Buffers buffers;
    size_t bytes = type_bytes(call.type), offset = call.side == Guarded::START ? call.offset : 0;
    size_t elements = send_elements(call, rank, ranks);
    bool on_device = in_device_memory(call, rank);
    buffers.send.reset(new Guarded(elements * bytes, call.side, offset, on_device));
    buffers.recv.reset(
        new Guarded(recv_elements(call, rank, ranks) * bytes, call.side, (offset * 7 + 3) % 16, on_device));
    fill_input(call, buffers.send->data(), rank, elements);
    buffers.send_argument = buffers.send->data();
    buffers.recv_argument = buffers.recv->data();
    return buffers;
}

static ncclResult_t issue_pairs(const Call &call, const LocalRank &local, int ranks, const Buffers &buffers)
{
    const unsigned char *send = static_cast<const unsigned char *>(buffers.send_argument);
    unsigned char *recv = static_cast<unsigned char *>(buffers.recv_argument);
    size_t bytes = type_bytes(call.type);
    int right = (local.rank + 1) % ranks, left = (local.rank + ranks - 1) % ranks;
    ncclResult_t rc = ncclGroupStart();
    if (call.operation == SEND_RECV && rc == ncclSuccess) {
        rc = ncclSend(send, call.count, call.type, right, local.comm, local.stream);
        if (rc == ncclSuccess)
            rc = ncclRecv(recv, call.count, call.type, left, local.comm, local.stream);
    }
    for (int peer = 0; call.operation == SEND_PAIRS && peer < ranks && rc == ncclSuccess; peer++) {
        rc = ncclSend(send + pair_offset(call, local.rank, peer, true) * bytes,
                      pair_count(call, local.rank, peer), call.type, peer, local.comm, local.stream);
        if (rc == ncclSuccess)
            rc = ncclRecv(recv + pair_offset(call, local.rank, peer, false) * bytes,
                          pair_count(call, peer, local.rank), call.type, peer, local.comm, local.stream);
    }
    ncclResult_t end = ncclGroupEnd();
    return rc != ncclSuccess ? rc : end;
}

ncclResult_t issue(const Call &call, const LocalRank &local, int ranks, const Buffers &buffers)
{
    const void *send = buffers.send_argument;
    void *recv = buffers.recv_argument;
    switch (call.operation) {
    case ALL_REDUCE:
        return ncclAllReduce(send, recv, call.count, call.type, call.redop, local.comm, local.stream);
    case ALL_GATHER:
        return ncclAllGather(send, recv, call.count, call.type, local.comm, local.stream);
    case REDUCE_SCATTER:
        return ncclReduceScatter(send, recv, call.count, call.type, call.redop, local.comm, local.stream);
    case BROADCAST:
        return ncclBroadcast(send, recv, call.count, call.type, call.root, local.comm, local.stream);
    case BCAST:
        return ncclBcast(recv, call.count, call.type, call.root, local.comm, local.stream);
    case REDUCE:
        return ncclReduce(send, recv, call.count, call.type, call.redop, call.root, local.comm, local.stream);
    case ALL_TO_ALL:
        return ncclAlltoAll(send, recv, call.count, call.type, local.comm, local.stream);
    case GATHER:
        return ncclGather(send, recv, call.count, call.type, call.root, local.comm, local.stream);
    case SCATTER:
        return ncclScatter(send, recv, call.count, call.type, call.root, local.comm, local.stream);
    default:
        return issue_pairs(call, local, ranks, buffers);
    }
}

/* Which rank's input, at which index, element i of the receive buffer must be (operations that only move
 * data). */
static void source_of(const Call &call, int rank, int ranks, size_t i, int *source, size_t *index)
{
    *source = call.root;
    *index = i;
    switch (call.operation) {
    case ALL_GATHER:
    case GATHER:
        *source = (int)(i / call.count);
        *index = i % call.count;
        return;
    case ALL_TO_ALL:
        *source = (int)(i / call.count);
        *index = (size_t)rank * call.count + i % call.count;
        return;
    case SCATTER:
        *index = (size_t)rank * call.count + i;
        return;
    case SEND_RECV:
        *source = (rank + ranks - 1) % ranks;
        return;
    case SEND_PAIRS: {
        int peer = 0;
        while (i >= pair_offset(call, rank, peer + 1, false))
            peer++;
        *source = peer;
        *index = pair_offset(call, peer, rank, true) + i - pair_offset(call, rank, peer, false);
        return;
    }
    default:
        return;
    }
}

static std::string verify_elements(const Call &call, int rank, int ranks, const unsigned char *recv)
{
    size_t bytes = type_bytes(call.type), elements = recv_elements(call, rank, ranks);
    for (size_t i = 0; i < elements; i++) {
        bool is_right;
        if (operation_reduces(call.operation)) {
            size_t index = call.operation == REDUCE_SCATTER ? (size_t)rank * call.count + i : i;
            is_right = matches_reduction(recv + i * bytes, call.type, call.redop, call.seed, ranks, index);
        } else {
            int source;
            size_t index;
            source_of(call, rank, ranks, i, &source, &index);
            is_right = matches_bits(recv + i * bytes, call.type, call.seed, source, index);
        }
        if (!is_right)
            return "element " + std::to_string(i) + " of " + std::to_string(elements) + " is wrong";
    }
    return "";
}

std::string verify(const Call &call, int rank, int ranks, const Buffers &buffers)
{
    if (!buffers.recv->check() || (buffers.send && !buffers.send->check()))
        return "bytes around a buffer were written";
    if (call.operation == REDUCE && rank != call.root) {
        if (buffers.send && !buffers.recv->is_untouched())
            return "the receive buffer of a rank that is not the root was written";
        return "";
    }
    return verify_elements(call, rank, ranks, static_cast<unsigned char *>(buffers.recv_argument));
}

std::string describe(const Call &call)
{
    return std::string(operation_names[call.operation]) + " " + type_name(call.type) + " " +
           redop_name(call.redop) + (call.in_place ? " in place" : " out of place") + " count " +
           std::to_string(call.count) + " root " + std::to_string(call.root) +
           (call.side == Guarded::END ? " ending at a guard" : " offset " + std::to_string(call.offset)) +
           (call.device_memory == 0   ? ""
            : call.device_memory == 1 ? " in device memory"
                                      : " in mixed memory");
}
