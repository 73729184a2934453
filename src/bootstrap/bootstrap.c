/*
 * bootstrap.c - joining a communicator's network, and the collectives on it.
 *
 * All-gather (Bruck): the ranks stand on a circle. A rank holds blocks rank, rank + 1, ..., and in round k it
 * sends as many as it has, or as are still missing, to rank - 2^k, and gets as many from rank + 2^k. After
 * ceil(log2 n) rounds it has all n. Each rank sends (n - 1) blocks altogether. The barrier is the same
 * pattern without blocks.
 */
#include "bootstrap/bootstrap.h"

#include "id.h"
#include "mesh.h"
#include "notice.h"
#include "rendezvous.h"
#include "root.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sender that is this far ahead of its peer waits. A choice, not measured: memory against a sender that
 * need not wait. */
#define QUEUE_MOST (16u << 20)
#define PAUSE_NS UINT64_C(1000000) /* between looks at a root that tells its ranks of a failure */

ncclResult_t rondo_bootstrap_create_id(ncclUniqueId *id_out)
{
    const char *fixed = rondo_param_string(RONDO_PARAM_COMM_ID);
    struct rondo_id id = {0};
    union rondo_address address;
    ncclResult_t rc;

    if (fixed) {
        rc = rondo_id_fixed(fixed, rondo_param_string(RONDO_PARAM_SECRET_FILE), &id);
    } else {
        rc = rondo_rendezvous_interface(&address);
        if (rc == ncclSuccess)
            rc = rondo_random_bytes(&id.secret, sizeof(id.secret));
        if (rc == ncclSuccess)
            rc = rondo_root_start(&address, &id.secret, false, &id.root);
        rondo_id_stamp(&id);
    }
    if (rc == ncclSuccess)
        rondo_id_write(&id, id_out);
    rondo_auth_wipe(&id.secret, sizeof(id.secret));
    return rc;
}

/* --- joining --- */

static void free_bootstrap(struct rondo_bootstrap *bootstrap)
{
    rondo_loop_condition_destroy(bootstrap->condition);
    free(bootstrap->addresses);
    free(bootstrap->peers);
    rondo_auth_wipe(&bootstrap->secret, sizeof(bootstrap->secret));
    free(bootstrap);
}

static ncclResult_t allocate(const struct rondo_id *id, int rank, int ranks, const volatile uint32_t *stop,
                             struct rondo_bootstrap **bootstrap_out)
{
    struct rondo_bootstrap *bootstrap = calloc(1, sizeof(*bootstrap));
    ncclResult_t rc;

    if (!bootstrap)
        return rondo_fail(ncclSystemError, "join as rank %d of %d: out of memory", rank, ranks);
    rondo_mesh_init(bootstrap);
    bootstrap->rank = rank;
    bootstrap->ranks = ranks;
    bootstrap->secret = id->secret;
    bootstrap->stop = stop;
    bootstrap->addresses = calloc((size_t)ranks, sizeof(*bootstrap->addresses));
    bootstrap->peers = calloc((size_t)ranks, sizeof(*bootstrap->peers));
    rc = rondo_loop_condition_create(&bootstrap->condition);
    if (rc == ncclSuccess && (!bootstrap->addresses || !bootstrap->peers))
        rc = rondo_fail(ncclSystemError, "join as rank %d of %d: out of memory", rank, ranks);
    if (rc != ncclSuccess) {
        free_bootstrap(bootstrap);
        return rc;
    }
    *bootstrap_out = bootstrap;
    return ncclSuccess;
}

static ncclResult_t meet_root(struct rondo_bootstrap *bootstrap, const struct rondo_id *id, uint64_t deadline)
{
    ncclResult_t rc;

    rondo_loop_lock();
    rc = rondo_loop_attach(&bootstrap->source);
    if (rc == ncclSuccess) {
        rc = rondo_reserve_take(&bootstrap->reserve, 2 + 2 * rondo_rounds(bootstrap->ranks));
        if (rc != ncclSuccess)
            rondo_loop_detach(&bootstrap->source);
    }
    if (rc != ncclSuccess) {
        bootstrap->rendezvous.is_unheard = true;
    } else {
        bootstrap->is_attached = true;
        rc = rondo_rendezvous_meet(bootstrap, id, deadline);
    }
    rondo_loop_unlock();
    return rc;
}

/* Let the root tell the others of the failure that was recorded last; yields rc, with its text recorded
 * last again. */
static ncclResult_t send_notice(const struct rondo_id *id, int rank, int ranks, ncclResult_t rc,
                                uint64_t deadline, const volatile uint32_t *stop)
{
    uint64_t limit = rondo_clock_ns() + RONDO_NOTICE_NS;
    char reason[RONDO_REASON_MOST];

    snprintf(reason, sizeof(reason), "%s", rondo_error_own());
    rondo_notice_send(id, rank, ranks, rc, reason, deadline < limit ? deadline : limit, stop);
    return rondo_error_restate(rc, reason);
}

void rondo_bootstrap_excuse(const ncclUniqueId *bytes, int rank, int ranks, ncclResult_t code,
                            const char *reason, uint64_t deadline, const volatile uint32_t *stop)
{
    struct rondo_id id;
    union rondo_address bound;

    if (rondo_id_read(bytes, &id) != ncclSuccess)
        return;
    if (id.is_fixed && rank == 0 && rondo_root_start(&id.root, &id.secret, true, &bound) != ncclSuccess)
        return;
    rondo_notice_send(&id, rank, ranks, code, reason, deadline, stop);
}

ncclResult_t rondo_bootstrap_join(const ncclUniqueId *bytes, int rank, int ranks, uint64_t deadline,
                                  const volatile uint32_t *stop, struct rondo_bootstrap **bootstrap_out)
{
    struct rondo_bootstrap *bootstrap = NULL;
    struct rondo_id id;
    union rondo_address bound;
    bool has_root;
    ncclResult_t rc;

    if (ranks < 1 || ranks > RONDO_RANKS_MOST)
        return rondo_fail(ncclInvalidArgument, "join with %d ranks: 1 to %d are possible", ranks,
                          RONDO_RANKS_MOST);
    rc = rondo_id_read(bytes, &id);
    if (rc != ncclSuccess)
        return rc;
    rc = allocate(&id, rank, ranks, stop, &bootstrap);
    if (rc != ncclSuccess)
        return send_notice(&id, rank, ranks, rc, deadline, stop);
    has_root = id.is_fixed && rank == 0;
    if (has_root) {
        rc = rondo_root_start(&id.root, &id.secret, true, &bound);
        if (rc != ncclSuccess)
            has_root = false;
    }
    if (rc == ncclSuccess)
        rc = meet_root(bootstrap, &id, deadline);
    if (rc == ncclSuccess)
        rc = rondo_bootstrap_all_gather(bootstrap, bootstrap->addresses, sizeof(bootstrap->addresses[0]),
                                        deadline);
    if (rc != ncclSuccess) {
        bool is_unheard = bootstrap->rendezvous.is_unheard;

        rondo_bootstrap_destroy(bootstrap); /* also frees descriptors: a notice needs one, or a thread */
        if (is_unheard)
            rc = send_notice(&id, rank, ranks, rc, deadline, stop);
        if (has_root)
            rondo_root_give_up(&id.root);
        return rc;
    }
    bootstrap->is_joined = true;
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_BOOTSTRAP, "rank %d of %d joined", rank, ranks);
    *bootstrap_out = bootstrap;
    return ncclSuccess;
}

void rondo_bootstrap_give_up(struct rondo_bootstrap *bootstrap, const char *reason)
{
    rondo_loop_lock();
    rondo_mesh_give_up(bootstrap, reason);
    rondo_loop_unlock();
}

void rondo_bootstrap_settle(const ncclUniqueId *bytes, uint64_t deadline)
{
    struct rondo_id id;

    if (rondo_id_read(bytes, &id) != ncclSuccess)
        return;
    while (rondo_root_has_news(&id.root) && rondo_clock_ns() < deadline)
        rondo_clock_sleep_ns(PAUSE_NS);
}

void rondo_bootstrap_destroy(struct rondo_bootstrap *bootstrap)
{
    if (!bootstrap)
        return;
    rondo_loop_lock();
    rondo_mesh_leave(bootstrap);
    if (bootstrap->is_attached)
        rondo_loop_detach(&bootstrap->source);
    rondo_loop_unlock_settled();
    free_bootstrap(bootstrap);
}

/* --- talking --- */

/* Copy a message of exactly bytes out of the inbox. */
static ncclResult_t receive_exactly(struct rondo_bootstrap *bootstrap, int peer, enum rondo_frame_kind kind,
                                    uint32_t tag, void *data, size_t bytes, uint64_t deadline)
{
    struct rondo_message *message;
    ncclResult_t rc = rondo_mesh_receive(bootstrap, peer, kind, tag, deadline, &message);

    if (rc != ncclSuccess)
        return rc;
    if (message->bytes != bytes)
        rc = rondo_fail(
            ncclInvalidUsage,
            "rank %d expects %zu bytes of rank %d, which sends %zu: the ranks do not call the same",
            bootstrap->rank, bytes, peer, message->bytes);
    else if (bytes > 0)
        memcpy(data, message->data, bytes);
    rondo_message_free(message);
    return rc;
}

/* One round of a dissemination: to rank - distance, from rank + distance. */
static ncclResult_t exchange(struct rondo_bootstrap *bootstrap, enum rondo_frame_kind kind, uint32_t round,
                             const void *out, void *in, size_t bytes, uint64_t deadline)
{
    int distance = 1 << round;
    int to = (bootstrap->rank - distance + bootstrap->ranks) % bootstrap->ranks;
    int from = (bootstrap->rank + distance) % bootstrap->ranks;
    ncclResult_t rc;

    rondo_loop_lock();
    rc = rondo_mesh_send(bootstrap, to, kind, round, out, bytes);
    if (rc == ncclSuccess)
        rc = receive_exactly(bootstrap, from, kind, round, in, bytes, deadline);
    if (rc != ncclSuccess) /* what the others wait for will not come */
        rondo_mesh_give_up(bootstrap, rondo_error_own());
    rondo_loop_unlock();
    return rc;
}

ncclResult_t rondo_bootstrap_all_gather(struct rondo_bootstrap *bootstrap, void *data, size_t bytes,
                                        uint64_t deadline)
{
    size_t rank = (size_t)bootstrap->rank, ranks = (size_t)bootstrap->ranks;
    unsigned char *blocks; /* blocks[i] is rank (rank + i)'s */
    ncclResult_t rc = ncclSuccess;

    if (bytes == 0 || ranks == 1)
        return ncclSuccess;
    if (bytes > RONDO_FRAME_MOST / ((ranks + 1) / 2))
        return rondo_fail(ncclInvalidArgument,
                          "gather %zu bytes of each of %zu ranks: too much for the bootstrap network", bytes,
                          ranks);
    blocks = malloc(ranks * bytes);
    if (!blocks)
        return rondo_fail(ncclSystemError, "gather %zu bytes of each of %zu ranks: out of memory", bytes,
                          ranks);
    memcpy(blocks, (unsigned char *)data + rank * bytes, bytes);
    for (uint32_t round = 0; rc == ncclSuccess && (size_t)1 << round < ranks; round++) {
        size_t have = (size_t)1 << round;
        size_t count = have < ranks - have ? have : ranks - have;

        rc = exchange(bootstrap, RONDO_FRAME_GATHER, round, blocks, blocks + have * bytes, count * bytes,
                      deadline);
    }
    if (rc == ncclSuccess) {
        memcpy((unsigned char *)data + rank * bytes, blocks, (ranks - rank) * bytes);
        memcpy(data, blocks + (ranks - rank) * bytes, rank * bytes);
    }
    free(blocks);
    return rc;
}

ncclResult_t rondo_bootstrap_barrier(struct rondo_bootstrap *bootstrap, uint64_t deadline)
{
    ncclResult_t rc = ncclSuccess;

    for (uint32_t round = 0; rc == ncclSuccess && INT64_C(1) << round < bootstrap->ranks; round++)
        rc = exchange(bootstrap, RONDO_FRAME_BARRIER, round, NULL, NULL, 0, deadline);
    return rc;
}

ncclResult_t rondo_bootstrap_send(struct rondo_bootstrap *bootstrap, int peer, uint32_t tag, const void *data,
                                  size_t bytes, uint64_t deadline)
{
    ncclResult_t rc;

    rondo_loop_lock();
    rc = rondo_mesh_send(bootstrap, peer, RONDO_FRAME_MESSAGE, tag, data, bytes);
    if (rc == ncclSuccess)
        rc = rondo_mesh_drain(bootstrap, peer, QUEUE_MOST, deadline);
    rondo_loop_unlock();
    return rc;
}

ncclResult_t rondo_bootstrap_recv(struct rondo_bootstrap *bootstrap, int peer, uint32_t tag, void *data,
                                  size_t bytes, uint64_t deadline)
{
    ncclResult_t rc;

    rondo_loop_lock();
    rc = receive_exactly(bootstrap, peer, RONDO_FRAME_MESSAGE, tag, data, bytes, deadline);
    rondo_loop_unlock();
    return rc;
}
