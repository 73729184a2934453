/*
 * mesh.h - the small network between the ranks of one communicator.
 *
 * Every rank has a gate. Who has something to say connects to the other's gate: a link carries messages one
 * way, from the one who connected. Messages that arrive wait in the inbox. A rank that leaves in order says
 * goodbye on all its links. One that vanishes is noticed by those who have a link with it, and they pass the
 * news on along theirs, so that everybody learns whose death it was and nobody waits for the dead. One that
 * gives up announces its own death, with the reason, which travels with that news.
 *
 * All of this runs under the loop's lock.
 */
#ifndef RONDO_BOOTSTRAP_MESH_H
#define RONDO_BOOTSTRAP_MESH_H

#include "gate.h"
#include "link.h"
#include "loop.h"
#include "reserve.h"
#include "root.h"

#include "bootstrap/bootstrap.h"

#define RONDO_MESH_TEXT (RONDO_REASON_MOST + 64) /* how a rank ended */

struct rondo_message {
    struct rondo_message *next;
    int peer;
    uint32_t kind, tag;
    size_t bytes;
    void *data;
};

/* Waiting for the root's answer; see rendezvous.h. */
struct rondo_rendezvous {
    struct rondo_link *link;
    bool is_fixed;
    bool is_over;
    bool is_unheard; /* it is over for a reason of our own, which the root has not heard */
    uint32_t patience_ms;
    uint32_t made_ms; /* of the id */
    ncclResult_t code;
    char text[1024]; /* of a bad end, or why it is not there yet */
};

enum rondo_standing { RONDO_PEER_THERE, RONDO_PEER_LEFT, RONDO_PEER_DEAD };

/* A goodbye may come on another connection than the messages before it, and overtake them; so it says how
 * many they were. */
struct rondo_peer_state {
    enum rondo_standing standing;
    bool has_promised; /* said goodbye; it has left when received == promised */
    uint32_t promised;
    uint32_t sent, received; /* messages */
};

struct rondo_bootstrap {
    struct rondo_loop_source source; /* first */
    int rank, ranks;
    bool is_attached;  /* the source is in the loop */
    bool is_abandoned; /* we are a forked child; the sockets are our parent's */
    bool is_joined;
    struct rondo_secret secret;
    const volatile uint32_t *stop;
    struct rondo_gate gate;
    struct rondo_loop_condition *condition; /* something a caller may wait for has happened */
    struct rondo_rendezvous rendezvous;
    struct rondo_reserve reserve; /* until the root has answered */
    bool is_starved;              /* the gate cannot accept other ranks, and waiting on will not help */
    unsigned char session[RONDO_SESSION_BYTES];
    union rondo_address *addresses; /* [ranks]; family 0: not known (yet) */
    struct rondo_peer_state *peers; /* [ranks] */
    int first_dead;                 /* -1: none */
    char death[RONDO_MESH_TEXT];    /* of the first */
    char reason[RONDO_REASON_MOST]; /* that the first gave itself, empty: none */
    bool has_failed;                /* we are giving up */
    struct rondo_link *outs, *ins;
    struct rondo_message *inbox, **inbox_end;
};

/* What the gate and the ticks need; the rest of the struct is set by who joins. */
extern const struct rondo_gate_ops rondo_mesh_gate_ops;
void rondo_mesh_init(struct rondo_bootstrap *mesh);

/* Compute when the next tick is due. */
void rondo_mesh_reschedule(struct rondo_bootstrap *mesh);

/* Queue a message; the connection is made when there is none. ncclRemoteError: the peer, or for a collective
 * any, is gone. */
ncclResult_t rondo_mesh_send(struct rondo_bootstrap *mesh, int peer, enum rondo_frame_kind kind, uint32_t tag,
                             const void *data, size_t bytes);

/* Wait for the first message of that peer, kind and tag. The caller frees it with rondo_message_free. A
 * wait for a collective's message ends with the death of any rank, for a MESSAGE only with this one's. */
ncclResult_t rondo_mesh_receive(struct rondo_bootstrap *mesh, int peer, enum rondo_frame_kind kind,
                                uint32_t tag, uint64_t deadline, struct rondo_message **message_out);
void rondo_message_free(struct rondo_message *message);

/* Sleep until something happens, for a slice of time at most. ncclInvalidUsage "aborted": the stop word is
 * set. ncclTimeout, without a text: the deadline has passed. ncclSystemError: no descriptor is left for
 * other ranks. */
ncclResult_t rondo_mesh_wait(struct rondo_bootstrap *mesh, uint64_t deadline);

/* Wait until no more than bytes are queued for the peer, or for all with peer -1. */
ncclResult_t rondo_mesh_drain(struct rondo_bootstrap *mesh, int peer, size_t bytes, uint64_t deadline);

/* Tell the peers that we are about to leave for a reason, which is cut to RONDO_REASON_MOST; nothing can be
 * done afterwards but leave. */
void rondo_mesh_give_up(struct rondo_bootstrap *mesh, const char *reason);

/* Say goodbye, or, when we fail, nothing more; send what is queued within a bounded time; close
 * everything. */
void rondo_mesh_leave(struct rondo_bootstrap *mesh);

#endif
