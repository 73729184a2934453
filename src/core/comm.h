/*
 * comm.h - a communicator: one rank's view of its group of ranks, and what may be done to it from several
 * threads.
 *
 * Three counts keep a communicator alive while others look at it. `references` keeps the struct: the roster,
 * every launch, every recorded call hold one. `active` keeps its resources: calls and the watch thread hold
 * one while they are inside (roster.h). `launched - landed` is what the device still runs.
 *
 * The first error of a communicator stays (comm_error.c). It comes from this rank's kernels, from the watch
 * thread, or from a peer that raised this rank's stop and left its reason in the rank page.
 */
#ifndef RONDO_CORE_COMM_H
#define RONDO_CORE_COMM_H

#include "config.h"

#include "collectives/plan.h"
#include "device/device.h"
#include "topology/trees.h"
#include "transport/transport.h"

#include "nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum rondo_comm_state {
    RONDO_COMM_PENDING, /* the handle is known, its init has not begun */
    RONDO_COMM_INIT,    /* its init runs */
    RONDO_COMM_READY,
    RONDO_COMM_CLOSING, /* ends its operations; calls are refused, the watch thread still looks */
    RONDO_COMM_DYING    /* gives up its resources; nobody may look */
};

enum rondo_init_stop { RONDO_INIT_CANCELLED = 1, RONDO_INIT_ABORTED };

/* What a communicator knows of one of its ranks. */
struct rondo_member {
    const struct rondo_transport_ops *transport;
    struct rondo_reach *reach; /* NULL for the rank itself */
    struct rondo_rank_page *page;
    struct rondo_switchboard *board;
    struct rondo_window window; /* empty where the transport has none, and for the rank itself */
    /* [RONDO_SEND, RONDO_RECV][channel][own port], made at first use. */
    struct rondo_end *ends[RONDO_CONNECTION_NUM][RONDO_PROTOCOL_NUM];
    uint64_t sent, received; /* operations so far with this rank, see struct rondo_task.number */
    bool is_dead;            /* its process has ended, or runs another program; the watch thread's */
    uint64_t hung_up;        /* rondo_clock_ns() when its life pipe was first seen closed, 0: it is not */
};

/* Whether a rank's process runs at all, by its page's beat. */
struct rondo_pulse {
    uint64_t beat; /* at the last look */
    uint64_t at;   /* rondo_clock_ns() when it was first seen so */
    bool is_fresh; /* it has advanced since the look before */
};

/* Launches that have not begun. */
struct rondo_queue_look {
    uint64_t landed; /* that had ended at the last look */
    uint64_t since;  /* rondo_clock_ns() when it was first seen so, 0: never */
    bool is_reported;
};

/* What the watch thread remembers from look to look (stall.c). */
struct rondo_look {
    uint64_t at;        /* rondo_clock_ns() of the last one */
    uint64_t signature; /* of what the rank waits for */
    uint64_t since;     /* rondo_clock_ns() when it was first seen so */
    uint64_t closure;   /* of a set of ranks that wait for each other alone, 0: none seen */
    unsigned closure_looks;
    uint64_t gone_since; /* rondo_clock_ns() when a rank that it waits for was first seen gone, 0: none is */
    int gone;            /* that rank */
    uint64_t agreed;     /* collectives up to this one are the same on all ranks (agreement.h) */
    struct rondo_queue_look queue;
    bool is_reported;
    bool is_watched;            /* deaths before the first look have been asked for */
    struct rondo_pulse *pulses; /* [ranks] */
};

/* What a kernel found wrong, until it can be told in words (fault.c). */
struct rondo_suspicion {
    uint32_t is_pending; /* atomic; set last, cleared once the error has its final text */
    ncclResult_t code;
    enum rondo_operation operation;
    uint64_t number;
    int peer;
    uint64_t expected_bytes, found_bytes;
    uint64_t since; /* rondo_clock_ns() */
};

struct ncclComm {
    /* Constant once READY. */
    int rank, ranks, device;
    uint64_t id; /* hash of the unique id: names the communicator on all ranks */
    struct rondo_config config;
    const struct rondo_device_ops *ops;
    struct rondo_layout layout;
    struct rondo_peer *peers;     /* [ranks] */
    struct rondo_member *members; /* [ranks] */
    int32_t *order;               /* [channels][ranks] */
    int32_t *position;            /* [channels] */
    void *mailbox;
    struct rondo_rank_page *page; /* at its start */
    void *stream;                 /* a private one, NULL until needed */
    bool has_watch;               /* a count of the watch thread */
    bool is_exposed;              /* peers may be using the mailbox */
    struct rondo_tree_node trees[RONDO_TREES];
    uint32_t tree_levels;
    struct rondo_peer_ends
        *tree_ends;               /* [channels][RONDO_PROTOCOL_NUM][RONDO_TREE_PORTS]; NULL until needed */
    struct rondo_window readable; /* what of this rank's memory all peers can read; here is unused */
    struct rondo_direct *directs; /* [channels][RONDO_PROTOCOL_NUM], filled as they come into use */
    struct rondo_plan_context context;

    /* The roster's, under its lock. */
    struct ncclComm *next;
    enum rondo_comm_state state;
    unsigned active;
    uint32_t references; /* atomic */
    uint32_t init_stop;  /* atomic; 0, or an enum rondo_init_stop that ends an init: released by roster.c,
                            acquired by the init's waits */

    /* Of the call that holds in_call. */
    uint32_t in_call; /* atomic */
    bool is_finalized;
    uint64_t number;   /* of the newest collective */
    uint64_t history;  /* in its record */
    uint64_t pairs;    /* sends and receives so far */
    uint64_t launched; /* atomic; read by others */
    void *last_stream;
    struct rondo_event *last_event; /* recorded after the newest launch; NULL before the first */
    struct rondo_line landed;       /* launches that have ended, for rondo_device_ops.wait_line */

    pthread_mutex_t lock; /* guards the rest */
    ncclResult_t error;   /* also read without the lock, hence atomic */
    char error_text[1024];
    bool is_provisional; /* a better text for the same error may still come */
    void *premuls;       /* the root of a tree; redop.c's */

    struct rondo_look look; /* the watch thread's alone */
    struct rondo_suspicion suspicion;
};

/* Allocate a communicator in state PENDING with one reference. Outside ranks, device and config it is empty.
 */
ncclResult_t rondo_comm_create(int rank, int ranks, int device, const struct rondo_config *config,
                               const struct rondo_device_ops *ops, struct ncclComm **comm_out);
void rondo_comm_get(struct ncclComm *comm);

/* Drop a reference; the last one frees the struct. Its resources must have been given up before. */
void rondo_comm_put(struct ncclComm *comm);

/* For struct rondo_plan_context. */
struct rondo_end *rondo_comm_end(void *owner, enum rondo_direction direction, int peer,
                                 const struct rondo_connection *connection);

/* "rank 2 (pid 17, host a)"; returns out. */
#define RONDO_RANK_TEXT 96
const char *rondo_comm_rank_text(const struct ncclComm *comm, int rank, char out[RONDO_RANK_TEXT]);

/* "communicator 'name'" or "communicator 1a2b3c"; returns out. */
#define RONDO_COMM_TEXT 96
const char *rondo_comm_text(const struct ncclComm *comm, char out[RONDO_COMM_TEXT]);

/* Set this rank's error; the first stays. A text that is provisional is replaced by the next that is not. */
void rondo_comm_set_error(struct ncclComm *comm, ncclResult_t code, const char *text);
void rondo_comm_set_provisional_error(struct ncclComm *comm, ncclResult_t code, const char *text);

/* Whether there is an error whose text is final. */
bool rondo_comm_is_settled(struct ncclComm *comm);

/* The error so far, ncclSuccess if none; looks at what peers have raised. Never blocks. */
ncclResult_t rondo_comm_error(struct ncclComm *comm);

/* The same, and a failure's text is recorded again for ncclGetLastError. Waits, a second at most, while a
 * failure is being put into words (fault.c). */
ncclResult_t rondo_comm_check(struct ncclComm *comm);

/* Set the error here, and raise stop with it here and at every rank that can be reached, so that all ranks
 * end with the same code and text. culprit: the rank it is about, -1 if none. Never blocks. */
void rondo_comm_end_all(struct ncclComm *comm, ncclResult_t code, int culprit, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Raise this rank's own stop without a reason that peers would see: what it runs ends soon. */
void rondo_comm_stop(struct ncclComm *comm, uint32_t code);

/* Whether launches are still on the device. */
bool rondo_comm_is_busy(struct ncclComm *comm);

/* Run this rank's work until all launches have ended or the deadline. Ends early only with them. */
ncclResult_t rondo_comm_flush(struct ncclComm *comm, uint64_t deadline);

/* Thread id, read from the kernel once a thread. */
uint64_t rondo_thread_id(void);

#endif
