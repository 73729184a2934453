/*
 * link.h - one connection of the bootstrap: the challenge first, then frames.
 *
 * A link never blocks. What is sent before the link is open, or faster than the peer reads, is queued; a lost
 * attempt to open it may be repeated, with the queue kept. Owners hear of everything through the table of
 * functions they give. A frame is a head and its payload; its size is bounded and checked before anything is
 * allocated.
 *
 * Threads: all of this runs under the loop's lock, the owner's functions included; nothing of it blocks.
 */
#ifndef RONDO_BOOTSTRAP_LINK_H
#define RONDO_BOOTSTRAP_LINK_H

#include "challenge.h"
#include "loop.h"

#include "base/address.h"

#define RONDO_FRAME_MOST (64u << 20)

enum rondo_frame_kind {
    RONDO_FRAME_REPORT = 1, /* rank to root: struct rondo_report and its tail */
    RONDO_FRAME_ANSWER,     /* root to rank: struct rondo_answer and its tail */
    RONDO_FRAME_MESSAGE,    /* of send and recv */
    RONDO_FRAME_GATHER,     /* of the collectives; tag is the round */
    RONDO_FRAME_BARRIER,
    RONDO_FRAME_GOODBYE, /* the sender leaves in order */
    RONDO_FRAME_DEATH, /* tag is the rank that the sender knows to be gone, the payload that rank's reason */
};

struct rondo_frame {
    uint32_t kind;
    uint32_t tag;
    uint64_t bytes;
};

/* How a link ended. */
enum rondo_link_end {
    RONDO_LINK_REFUSED,  /* no connection; the errno value says why */
    RONDO_LINK_LOST,     /* closed or reset by the other end */
    RONDO_LINK_VERDICT,  /* the other end failed the challenge; the verdict says how */
    RONDO_LINK_MALFORMED /* proved, but sends frames that no peer of ours would */
};

struct rondo_link;

struct rondo_link_ops {
    /* Server: the entry is genuine; false refuses it and ends the link as LOST. May change link->ops and
     * link->owner. NULL for clients. */
    bool (*admit)(struct rondo_link *link, const struct rondo_entry *entry);
    /* Both ends are proved. Queued frames follow. */
    void (*opened)(struct rondo_link *link);
    /* A frame. data, head->bytes of it, is malloc'ed and becomes the owner's, who frees it also when it
     * returns false; NULL when the frame is empty. False: malformed. */
    bool (*frame)(struct rondo_link *link, const struct rondo_frame *head, void *data);
    /* The socket is closed. detail: errno value, or verdict. The owner destroys the link, or connects it
     * anew. */
    void (*closed)(struct rondo_link *link, enum rondo_link_end end, int detail);
    /* The queue has run empty. */
    void (*drained)(struct rondo_link *link);
};

enum rondo_link_phase {
    RONDO_LINK_IDLE,
    RONDO_LINK_CONNECTING,
    RONDO_LINK_AWAIT_HELLO,
    RONDO_LINK_AWAIT_PROOF,
    RONDO_LINK_AWAIT_ENTRY,
    RONDO_LINK_AWAIT_WELCOME,
    RONDO_LINK_OPEN,
};

struct rondo_link_chunk;

struct rondo_link {
    struct rondo_loop_handle handle; /* first */
    const struct rondo_link_ops *ops;
    void *owner;
    const struct rondo_secret *secret; /* the owner's, longer lived than the link */
    union rondo_address address;       /* the other end's */
    enum rondo_link_phase phase;
    bool was_open;     /* both ends were proved at some time */
    uint64_t since_ns; /* server: when it was accepted */

    /* For owners. */
    int peer;          /* rank at the other end */
    unsigned attempts; /* client: how often connected */
    uint64_t retry_ns; /* client: when to connect anew; UINT64_MAX: not waiting for that */
    struct rondo_link *next;

    struct rondo_hello hello;
    struct rondo_proof proof;
    struct rondo_entry entry; /* client: sealed and sent once the server is proved */

    unsigned char staging[64]; /* handshake messages and heads, in */
    size_t staged;
    struct rondo_frame head; /* of the payload being read */
    unsigned char *payload;
    size_t payload_got;

    unsigned char opening[64]; /* handshake messages, out */
    size_t opening_bytes, opening_sent;
    struct rondo_link_chunk *first, *last; /* frames, out */
    size_t first_sent, queued_bytes;
    uint32_t events;   /* watched for */
    int connect_error; /* errno value of an answer that connect gave at once */
    int write_error;   /* errno value of the first send that failed */
    bool is_busy, is_doomed;
};

/* A client's end; nothing happens before rondo_link_connect. address and entry are copied; the entry's tag is
 * filled later. The caller owns *link_out until rondo_link_destroy. ncclSystemError: no memory. */
ncclResult_t rondo_link_create_client(const union rondo_address *address, const struct rondo_secret *secret,
                                      const struct rondo_entry *entry, const struct rondo_link_ops *ops,
                                      void *owner, struct rondo_link **link_out);

/* A server's end over an accepted socket, which becomes the link's even on failure. The caller owns
 * *link_out. ncclSystemError: no memory, or epoll cannot watch the socket. */
ncclResult_t rondo_link_create_server(int fd, const union rondo_address *address,
                                      const struct rondo_secret *secret, const struct rondo_link_ops *ops,
                                      void *owner, struct rondo_link **link_out);

/* Begin to connect, for the first time or, after closed, anew; frames that are queued are kept. The outcome,
 * refusals included, comes through opened or closed, later. ncclInvalidArgument: the address is of no family
 * we know. ncclSystemError: no descriptor, or epoll cannot watch it. After these closed is not called, and
 * the link may be connected again. */
ncclResult_t rondo_link_connect(struct rondo_link *link);

/* Queue a frame of bytes; data is copied. What the kernel takes at once is sent at once; how much it does not
 * take is not bounded here, see queued_bytes. A connection that is lost is told by closed, not here.
 * ncclInvalidArgument: more than RONDO_FRAME_MOST. ncclSystemError: no memory; nothing is queued. */
ncclResult_t rondo_link_send(struct rondo_link *link, enum rondo_frame_kind kind, uint32_t tag,
                             const void *data, size_t bytes);

/* Close without a word and free, what is queued included; no call to the owner follows. May be called from
 * the owner's functions. Takes NULL. */
void rondo_link_destroy(struct rondo_link *link);

/* A sentence's end: "Connection refused", "it closed the connection", ...; returns out. */
#define RONDO_LINK_END_TEXT 160
const char *rondo_link_end_text(enum rondo_link_end end, int detail, char out[RONDO_LINK_END_TEXT]);

#endif
