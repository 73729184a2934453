/*
 * challenge.h - the four messages by which two ends of a connection prove that they know the job's secret.
 *
 *     client                                                        server
 *     hello    magic, version, nonce                     ------>    anyone can send this
 *     (checks) <-- proof: magic, version, nonce, tag(server, both nonces)
 *     entry    purpose, ranks, session, tag(client, both nonces, entry)  --->   (checks)
 *     (checks) <-- welcome: tag(welcome, both nonces)
 *
 * The client says who it is only after the server has proved itself; the server believes nothing before the
 * entry's tag. Both nonces are in every tag, so no recorded message fits another connection, and the labels
 * differ, so none can be sent back to its author. Pure: no I/O here.
 */
#ifndef RONDO_BOOTSTRAP_CHALLENGE_H
#define RONDO_BOOTSTRAP_CHALLENGE_H

#include "base/auth.h"

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

#define RONDO_WIRE_MAGIC UINT64_C(0x30656469576f526e) /* "nRoWide0" */
#define RONDO_WIRE_VERSION 3                          /* of these messages and the frames that follow them */

#define RONDO_SESSION_BYTES 16

struct rondo_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    unsigned char nonce[RONDO_NONCE_BYTES];
};

struct rondo_proof {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    unsigned char nonce[RONDO_NONCE_BYTES];
    unsigned char tag[RONDO_TAG_BYTES];
};

enum rondo_purpose { RONDO_PURPOSE_ROOT = 1, RONDO_PURPOSE_PEER = 2 };

struct rondo_entry {
    uint32_t purpose;
    int32_t from, to; /* ranks; to is -1 for the root */
    uint32_t reserved;
    unsigned char session[RONDO_SESSION_BYTES]; /* which run of the job; zero towards the root */
    unsigned char tag[RONDO_TAG_BYTES];
};

struct rondo_welcome {
    unsigned char tag[RONDO_TAG_BYTES];
};

enum rondo_verdict {
    RONDO_VERDICT_GOOD,
    RONDO_VERDICT_STRANGER,
    RONDO_VERDICT_VERSION,
    RONDO_VERDICT_SECRET
};

/* ncclSystemError: no random bytes. */
ncclResult_t rondo_hello_make(struct rondo_hello *hello_out);
enum rondo_verdict rondo_hello_check(const struct rondo_hello *hello);

/* To a hello of another version a proof with our version still goes out, so that the client can tell the
 * difference. */
ncclResult_t rondo_proof_make(const struct rondo_secret *secret, const struct rondo_hello *hello,
                              struct rondo_proof *proof_out);
enum rondo_verdict rondo_proof_check(const struct rondo_secret *secret, const struct rondo_hello *hello,
                                     const struct rondo_proof *proof);

/* Fills entry->tag over the other fields. */
void rondo_entry_seal(const struct rondo_secret *secret, const struct rondo_hello *hello,
                      const struct rondo_proof *proof, struct rondo_entry *entry);
enum rondo_verdict rondo_entry_check(const struct rondo_secret *secret, const struct rondo_hello *hello,
                                     const struct rondo_proof *proof, const struct rondo_entry *entry);

void rondo_welcome_make(const struct rondo_secret *secret, const struct rondo_hello *hello,
                        const struct rondo_proof *proof, struct rondo_welcome *welcome_out);
enum rondo_verdict rondo_welcome_check(const struct rondo_secret *secret, const struct rondo_hello *hello,
                                       const struct rondo_proof *proof, const struct rondo_welcome *welcome);

#endif
