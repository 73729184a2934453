/*
 * gate.h - a listening socket that only lets in who knows the secret.
 *
 * Whoever connects is a stranger until its entry is proved. Strangers are few (the oldest goes when there are
 * too many), short (a time limit), and cost one table slot; nothing waits for them. One line at most a minute
 * tells of those turned away.
 *
 * All of this runs under the loop's lock.
 */
#ifndef RONDO_BOOTSTRAP_GATE_H
#define RONDO_BOOTSTRAP_GATE_H

#include "link.h"
#include "loop.h"

struct rondo_gate_ops {
    /* A proved newcomer. True: it is the owner's, who has set link->ops and link->owner. False: refused. */
    bool (*admit)(void *owner, struct rondo_link *link, const struct rondo_entry *entry);
    /* rondo_gate_tick has a new answer. */
    void (*changed)(void *owner);
};

struct rondo_gate {
    struct rondo_loop_handle handle; /* first; the listener */
    const struct rondo_secret *secret;
    const struct rondo_gate_ops *ops;
    void *owner;
    union rondo_address address;  /* what the listener is bound to */
    struct rondo_link *strangers; /* newest first */
    unsigned stranger_count;
    bool is_served;
    uint64_t paused_until;  /* no descriptors were left; 0: not paused */
    int starved;            /* errno of the last accept for which something was short; 0: none was */
    uint64_t starved_since; /* something has been short ever since, and no stranger has it; 0: not so */
    uint64_t logged_ns;     /* when the last line was written; 0: never */
    unsigned turned_away;   /* since then */
};

/* Listen on address; nobody is accepted before rondo_gate_serve. The secret must outlive the gate. On failure
 * the gate is closed. rondo_gate_close also takes a gate of zero bytes with handle.fd -1. */
ncclResult_t rondo_gate_open(struct rondo_gate *gate, const union rondo_address *address, int backlog,
                             const struct rondo_secret *secret, const struct rondo_gate_ops *ops,
                             void *owner);

/* Begin to accept. */
ncclResult_t rondo_gate_serve(struct rondo_gate *gate);

/* Drop who took too long; returns when to be called again, UINT64_MAX: not before somebody new comes. */
uint64_t rondo_gate_tick(struct rondo_gate *gate, uint64_t now);

/* Whether nobody could be accepted for a while, and no stranger is to blame: waiting on will not help. To be asked
 * when gate_ops.changed is called. */
bool rondo_gate_is_starved(const struct rondo_gate *gate);

/* Close the listener and drop all strangers. Those let in are not touched. */
void rondo_gate_close(struct rondo_gate *gate);

#endif
