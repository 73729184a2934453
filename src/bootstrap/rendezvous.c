/*
 * rendezvous.c - a rank reports to the root and gets its answer.
 *
 * An id of a root's own exists only after its root does, so a refused connection means that the root is gone:
 * a quick, clear error. With NCCL_COMM_ID ranks may come before rank 0 has started the root: they try until
 * their time is up.
 */
#include "rendezvous.h"

#include "root.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/interface.h"
#include "base/log.h"
#include "base/param.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Choices, not measured. The backlog is what the kernel may cut to net.core.somaxconn. A rank whose attempt
 * failed comes again after a pause that grows: sooner would help one rank and hurt a root that thousands
 * besiege. */
#define BACKLOG 4096
#define RETRY_NS UINT64_C(20000000)
#define RETRY_MOST_NS UINT64_C(200000000)
#define ATTEMPTS_MOST 200

__attribute__((format(printf, 3, 4))) static void finish(struct rondo_bootstrap *mesh, ncclResult_t code,
                                                         const char *format, ...)
{
    va_list arguments;

    if (mesh->rendezvous.is_over)
        return;
    mesh->rendezvous.is_over = true;
    mesh->rendezvous.code = code;
    va_start(arguments, format);
    vsnprintf(mesh->rendezvous.text, sizeof(mesh->rendezvous.text), format, arguments);
    va_end(arguments);
    rondo_loop_condition_signal(mesh->condition);
}

/* --- our own address --- */

static int wanted_family(void)
{
    static int is_told;
    const char *family = rondo_param_string(RONDO_PARAM_SOCKET_FAMILY);

    if (!family)
        return AF_UNSPEC;
    if (strcmp(family, "AF_INET") == 0)
        return AF_INET;
    if (strcmp(family, "AF_INET6") == 0)
        return AF_INET6;
    if (!__atomic_exchange_n(&is_told, 1, __ATOMIC_RELAXED))
        rondo_log(RONDO_LOG_WARN, RONDO_LOG_ENV,
                  "NCCL_SOCKET_FAMILY=\"%s\" is ignored: AF_INET or AF_INET6 is accepted", family);
    return AF_UNSPEC;
}

ncclResult_t rondo_rendezvous_interface(union rondo_address *address_out)
{
    struct rondo_interface found;
    int count;
    ncclResult_t rc = rondo_interface_find(rondo_param_string(RONDO_PARAM_SOCKET_IFNAME), wanted_family(),
                                           &found, 1, &count);

    if (rc != ncclSuccess)
        return rc;
    *address_out = found.address;
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_BOOTSTRAP, "bootstrap uses interface %s", found.name);
    return ncclSuccess;
}

/* When the user says nothing, the address by which the root is reached: it is certain to lie in a network of
 * the job. */
static ncclResult_t choose_address(const struct rondo_link *link, union rondo_address *address_out)
{
    socklen_t bytes = sizeof(*address_out);

    if (rondo_param_string(RONDO_PARAM_SOCKET_IFNAME) || rondo_param_string(RONDO_PARAM_SOCKET_FAMILY))
        return rondo_rendezvous_interface(address_out);
    memset(address_out, 0, sizeof(*address_out));
    if (getsockname(link->handle.fd, &address_out->any, &bytes) != 0)
        return rondo_rendezvous_interface(address_out);
    if (address_out->any.sa_family == AF_INET6)
        address_out->in6.sin6_port = 0;
    else
        address_out->in4.sin_port = 0;
    return ncclSuccess;
}

/* --- the link to the root --- */

/* The root has proved itself: tell it who we are. */
static void on_opened(struct rondo_link *link)
{
    struct rondo_bootstrap *mesh = link->owner;
    struct rondo_report report = {.version = RONDO_BOOTSTRAP_VERSION,
                                  .rank = mesh->rank,
                                  .ranks = mesh->ranks,
                                  .patience_ms = mesh->rendezvous.patience_ms};
    union rondo_address address;
    ncclResult_t rc = choose_address(link, &address);

    rondo_reserve_release(&mesh->reserve, 1);
    if (rc == ncclSuccess)
        rc = rondo_gate_open(&mesh->gate, &address, BACKLOG, &mesh->secret, &rondo_mesh_gate_ops, mesh);
    if (rc == ncclSuccess) {
        report.listener = mesh->gate.address;
        if (mesh->rank >= 0 && mesh->rank < mesh->ranks) /* if not, the root will say so to all */
            mesh->addresses[mesh->rank] = mesh->gate.address;
        rc = rondo_link_send(link, RONDO_FRAME_REPORT, 0, &report, sizeof(report));
    }
    if (rc != ncclSuccess) {
        mesh->rendezvous.is_unheard = true;
        finish(mesh, rc, "%s", rondo_error_own());
    }
}

/* Addresses of ranks rank - 1, rank - 2, rank - 4, ... */
static bool take_addresses(struct rondo_bootstrap *mesh, const unsigned char *tail, size_t bytes)
{
    int rounds = rondo_rounds(mesh->ranks);

    if (bytes != (size_t)rounds * sizeof(union rondo_address))
        return false;
    for (int round = 0; round < rounds; round++) {
        union rondo_address address;
        int peer = (mesh->rank - (1 << round) + mesh->ranks) % mesh->ranks;

        memcpy(&address, tail + (size_t)round * sizeof(address), sizeof(address));
        if (rondo_address_bytes(&address) == 0)
            return false;
        mesh->addresses[peer] = address;
    }
    return true;
}

static bool take_answer(struct rondo_bootstrap *mesh, const unsigned char *data, size_t bytes)
{
    struct rondo_answer answer;
    size_t tail = bytes - sizeof(answer);

    if (bytes < sizeof(answer))
        return false;
    memcpy(&answer, data, sizeof(answer));
    if (answer.bytes != tail || answer.code < ncclSuccess || answer.code >= ncclNumResults ||
        answer.code == ncclInProgress)
        return false;
    if (answer.code != ncclSuccess) {
        finish(mesh, (ncclResult_t)answer.code, "%.*s", (int)(tail < 1000 ? tail : 1000),
               (const char *)data + sizeof(answer));
        return true;
    }
    if (mesh->rank < 0 || mesh->rank >= mesh->ranks || !take_addresses(mesh, data + sizeof(answer), tail))
        return false;
    memcpy(mesh->session, answer.session, sizeof(mesh->session));
    finish(mesh, ncclSuccess, "joined");
    return true;
}

static bool on_frame(struct rondo_link *link, const struct rondo_frame *head, void *data)
{
    bool is_answer = head->kind == RONDO_FRAME_ANSWER && take_answer(link->owner, data, head->bytes);

    free(data);
    return is_answer;
}

static void fail_challenge(struct rondo_bootstrap *mesh, const char *root, enum rondo_verdict verdict)
{
    if (verdict == RONDO_VERDICT_VERSION)
        finish(mesh, ncclInvalidUsage,
               "the root at %s runs another version of this library: install one version on all hosts", root);
    else if (verdict == RONDO_VERDICT_SECRET && mesh->rendezvous.is_fixed)
        finish(mesh, ncclInvalidUsage,
               "the root at %s, NCCL_COMM_ID, has another secret than this rank: RONDO_SECRET_FILE must have "
               "the same contents on all ranks, "
               "and no other job may use that port",
               root);
    else
        finish(mesh, ncclRemoteError, "the root at %s is gone, and another program listens there%s", root,
               mesh->rendezvous.is_fixed ? ": choose another port for NCCL_COMM_ID"
                                         : ": a unique id serves one communicator");
}

/* An id of a root's own exists only after its root does, so the root is gone: most likely its ranks gave
 * up. */
static void fail_without_root(struct rondo_bootstrap *mesh, const char *root, const char *why)
{
    int limit = (int)rondo_param_int(RONDO_PARAM_INIT_TIMEOUT);
    double age = rondo_id_age(mesh->rendezvous.made_ms);
    char guess[160] = "";

    if (age > limit)
        snprintf(guess, sizeof(guess),
                 "; it was made %.1f s ago: most likely the other ranks have given up, and rank %d is too "
                 "late by %.1f s",
                 age, mesh->rank, age - limit);
    else if (age >= 0)
        snprintf(guess, sizeof(guess), "; it was made %.1f s ago", age);
    finish(mesh, ncclRemoteError,
           "the root of the unique id is not there (%s: %s): an id serves one communicator, for %d s, "
           "while the process that made it lives%s",
           root, why, limit, guess);
}

static void on_closed(struct rondo_link *link, enum rondo_link_end end, int detail)
{
    struct rondo_bootstrap *mesh = link->owner;
    char root[RONDO_ADDRESS_TEXT], text[RONDO_LINK_END_TEXT];
    uint64_t pause = RETRY_NS * link->attempts;

    rondo_address_text(&link->address, root);
    rondo_link_end_text(end, detail, text);
    if (mesh->rendezvous.is_over)
        return;
    if (link->was_open)
        finish(mesh, ncclRemoteError,
               "the root at %s (in the process %s) went away before all ranks had come: %s", root,
               mesh->rendezvous.is_fixed ? "of rank 0" : "that made the unique id", text);
    else if (end == RONDO_LINK_VERDICT)
        fail_challenge(mesh, root, (enum rondo_verdict)detail);
    else if (!mesh->rendezvous.is_fixed && (end == RONDO_LINK_REFUSED || link->attempts >= ATTEMPTS_MOST))
        fail_without_root(mesh, root, text);
    else
        link->retry_ns = rondo_clock_ns() + (pause < RETRY_MOST_NS ? pause : RETRY_MOST_NS);
    snprintf(mesh->rendezvous.text, mesh->rendezvous.is_over ? 0 : sizeof(mesh->rendezvous.text), "%s", text);
    rondo_mesh_reschedule(mesh);
}

static const struct rondo_link_ops link_ops = {.opened = on_opened, .frame = on_frame, .closed = on_closed};

static ncclResult_t await_answer(struct rondo_bootstrap *mesh, const struct rondo_id *id, uint64_t deadline)
{
    char root[RONDO_ADDRESS_TEXT];
    const char *text;
    ncclResult_t rc;

    while (!mesh->rendezvous.is_over) {
        rc = rondo_mesh_wait(mesh, deadline);

        if (rc == ncclTimeout)
            return rondo_fail(ncclTimeout, "rank %d: the root at %s%s did not answer in time%s%s", mesh->rank,
                              rondo_address_text(&id->root, root),
                              id->is_fixed ? ", which rank 0 starts," : "",
                              mesh->rendezvous.text[0] ? ": " : "", mesh->rendezvous.text);
        if (rc != ncclSuccess)
            return rc;
        if (!mesh->rendezvous.link->was_open && rondo_root_has_starved(&id->root, &rc, &text))
            finish(mesh, rc, "%s", text);
    }
    if (mesh->rendezvous.code != ncclSuccess)
        return rondo_fail(mesh->rendezvous.code, "%s", mesh->rendezvous.text);
    return ncclSuccess;
}

ncclResult_t rondo_rendezvous_meet(struct rondo_bootstrap *mesh, const struct rondo_id *id, uint64_t deadline)
{
    struct rondo_entry entry = {.purpose = RONDO_PURPOSE_ROOT, .from = mesh->rank, .to = -1};
    uint64_t now = rondo_clock_ns();
    uint64_t left_ms = deadline > now ? (deadline - now) / 1000000 : 0;
    ncclResult_t rc;

    mesh->rendezvous = (struct rondo_rendezvous){
        .is_fixed = id->is_fixed,
        .made_ms = id->made_ms,
        .patience_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX,
    };
    rc = rondo_link_create_client(&id->root, &mesh->secret, &entry, &link_ops, mesh, &mesh->rendezvous.link);
    rondo_reserve_release(&mesh->reserve, 1);
    if (rc == ncclSuccess)
        rc = rondo_link_connect(mesh->rendezvous.link);
    mesh->rendezvous.is_unheard = rc != ncclSuccess;
    if (rc == ncclSuccess)
        rc = await_answer(mesh, id, deadline);
    rondo_link_destroy(mesh->rendezvous.link);
    mesh->rendezvous.link = NULL;
    rondo_reserve_release(&mesh->reserve, RONDO_RESERVE_MOST);
    if (rc == ncclSuccess)
        rc = rondo_gate_serve(&mesh->gate);
    return rc;
}
