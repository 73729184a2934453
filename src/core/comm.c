/* comm.c - a communicator's storage, its connections' ends, and its names in messages. */
#include "comm.h"

#include "comm_peers.h"
#include "redop.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ncclResult_t rondo_comm_create(int rank, int ranks, int device, const struct rondo_config *config,
                               const struct rondo_device_ops *ops, struct ncclComm **comm_out)
{
    void *memory;

    /* Lines are alone in 128 bytes, so the struct is aligned to them. */
    if (posix_memalign(&memory, RONDO_LINE_BYTES, sizeof(struct ncclComm)) != 0)
        return rondo_fail(ncclSystemError, "allocate a communicator of %zu bytes: out of memory",
                          sizeof(struct ncclComm));
    struct ncclComm *comm = memory;
    memset(comm, 0, sizeof(*comm));
    comm->members = calloc((size_t)ranks, sizeof(*comm->members));
    comm->peers = calloc((size_t)ranks, sizeof(*comm->peers));
    comm->look.pulses = calloc((size_t)ranks, sizeof(*comm->look.pulses));
    if (!comm->members || !comm->peers || !comm->look.pulses) {
        free(comm->members);
        free(comm->peers);
        free(comm->look.pulses);
        free(comm);
        return rondo_fail(ncclSystemError, "allocate a communicator of %d ranks: out of memory", ranks);
    }
    comm->rank = rank;
    comm->ranks = ranks;
    comm->device = device;
    comm->config = *config;
    comm->ops = ops;
    comm->state = RONDO_COMM_PENDING;
    comm->references = 1;
    pthread_mutex_init(&comm->lock, NULL);
    *comm_out = comm;
    return ncclSuccess;
}

void rondo_comm_get(struct ncclComm *comm)
{
    __atomic_fetch_add(&comm->references, 1, __ATOMIC_RELAXED);
}

static void free_ends(struct rondo_member *member)
{
    for (int kind = 0; kind < RONDO_CONNECTION_NUM; kind++) {
        for (int protocol = 0; protocol < RONDO_PROTOCOL_NUM; protocol++)
            free(member->ends[kind][protocol]);
    }
}

void rondo_comm_put(struct ncclComm *comm)
{
    /* Acquire and release: what others did with the struct comes before it is freed here. */
    if (__atomic_sub_fetch(&comm->references, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    for (int r = 0; r < comm->ranks; r++)
        free_ends(&comm->members[r]);
    rondo_comm_free_directs(comm);
    free(comm->tree_ends);
    rondo_premul_free_all(comm);
    pthread_mutex_destroy(&comm->lock);
    free(comm->look.pulses);
    free(comm->order);
    free(comm->position);
    free(comm->members);
    free(comm->peers);
    free(comm);
}

/* Ends of one kind and protocol with one peer, in one direction. */
static size_t count_ends(const struct ncclComm *comm, enum rondo_connection_kind kind)
{
    return kind == RONDO_CONNECTION_PAIR ? 1 : (size_t)comm->layout.channels * rondo_connection_ports(kind);
}

static struct rondo_end *make_ends(size_t count, int peer)
{
    void *memory;

    if (posix_memalign(&memory, RONDO_LINE_BYTES, count * sizeof(struct rondo_end)) != 0) {
        (void)rondo_fail(ncclSystemError, "allocate %zu connection ends to rank %d: out of memory", count,
                         peer);
        return NULL;
    }
    return memset(memory, 0, count * sizeof(struct rondo_end));
}

struct rondo_end *rondo_comm_end(void *owner, enum rondo_direction direction, int peer,
                                 const struct rondo_connection *connection)
{
    struct ncclComm *comm = owner;
    struct rondo_member *member = &comm->members[peer];
    struct rondo_end **ends = &member->ends[connection->kind][connection->protocol];
    size_t count = count_ends(comm, connection->kind);
    size_t place = connection->channel * rondo_connection_ports(connection->kind) + connection->own_port;

    if (!*ends)
        *ends = make_ends(2 * count, peer);
    if (!*ends)
        return NULL;
    struct rondo_end *end = *ends + (size_t)direction * count + place;
    if (!end->slots) {
        if (member->transport->connect(member->reach, &comm->layout, &comm->peers[comm->rank],
                                       &comm->peers[peer], direction, connection, end) != ncclSuccess)
            return NULL;
    }
    return end;
}

const char *rondo_comm_rank_text(const struct ncclComm *comm, int rank, char out[RONDO_RANK_TEXT])
{
    const struct rondo_peer *peer = &comm->peers[rank];

    snprintf(out, RONDO_RANK_TEXT, "rank %d (pid %d, host %.31s)", rank, peer->pid, peer->hostname);
    return out;
}

const char *rondo_comm_text(const struct ncclComm *comm, char out[RONDO_COMM_TEXT])
{
    if (comm->config.name[0])
        snprintf(out, RONDO_COMM_TEXT, "communicator '%.60s'", comm->config.name);
    else
        snprintf(out, RONDO_COMM_TEXT, "communicator %06x", (unsigned)(comm->id & 0xffffff));
    return out;
}

/* The acquires here and below pair with launch_batch(): whoever sees a launch counted waits for it. */
bool rondo_comm_is_busy(struct ncclComm *comm)
{
    return rondo_line_read(&comm->landed) != __atomic_load_n(&comm->launched, __ATOMIC_ACQUIRE);
}

ncclResult_t rondo_comm_flush(struct ncclComm *comm, uint64_t deadline)
{
    uint64_t target = __atomic_load_n(&comm->launched, __ATOMIC_ACQUIRE);
    bool reached = true;

    if (rondo_line_read(&comm->landed) >= target)
        return ncclSuccess;
    __atomic_store_n(&comm->page->blocked, rondo_thread_id(), __ATOMIC_RELAXED);
    ncclResult_t rc = comm->ops->wait_line(&comm->landed, target, deadline, &reached);
    __atomic_store_n(&comm->page->blocked, 0, __ATOMIC_RELAXED);
    if (rc != ncclSuccess)
        return rc;
    if (!reached)
        return rondo_fail(ncclTimeout, "rank %d still has operations on device %d", comm->rank, comm->device);
    return ncclSuccess;
}

uint64_t rondo_thread_id(void)
{
    static _Thread_local uint64_t id;

    if (id == 0)
        id = (uint64_t)gettid();
    return id;
}
