/* challenge.c - making and checking the messages of the mutual challenge. */
#include "challenge.h"

#include <stddef.h>
#include <string.h>

/* What every tag covers: both nonces, and the entry for the client's. */
struct covered {
    unsigned char client[RONDO_NONCE_BYTES], server[RONDO_NONCE_BYTES];
    unsigned char entry[offsetof(struct rondo_entry, tag)];
};

static const char server_label[] = "rondo challenge: server";
static const char client_label[] = "rondo challenge: client";
static const char welcome_label[] = "rondo challenge: welcome";

static struct covered cover(const struct rondo_hello *hello, const struct rondo_proof *proof,
                            const struct rondo_entry *entry)
{
    struct covered covered = {0};

    memcpy(covered.client, hello->nonce, sizeof(covered.client));
    memcpy(covered.server, proof->nonce, sizeof(covered.server));
    if (entry)
        memcpy(covered.entry, entry, sizeof(covered.entry));
    return covered;
}

ncclResult_t rondo_hello_make(struct rondo_hello *hello_out)
{
    *hello_out = (struct rondo_hello){.magic = RONDO_WIRE_MAGIC, .version = RONDO_WIRE_VERSION};
    return rondo_random_bytes(hello_out->nonce, sizeof(hello_out->nonce));
}

enum rondo_verdict rondo_hello_check(const struct rondo_hello *hello)
{
    if (hello->magic != RONDO_WIRE_MAGIC)
        return RONDO_VERDICT_STRANGER;
    return hello->version == RONDO_WIRE_VERSION ? RONDO_VERDICT_GOOD : RONDO_VERDICT_VERSION;
}

ncclResult_t rondo_proof_make(const struct rondo_secret *secret, const struct rondo_hello *hello,
                              struct rondo_proof *proof_out)
{
    struct covered covered;
    ncclResult_t rc;

    *proof_out = (struct rondo_proof){.magic = RONDO_WIRE_MAGIC, .version = RONDO_WIRE_VERSION};
    rc = rondo_random_bytes(proof_out->nonce, sizeof(proof_out->nonce));
    if (rc != ncclSuccess)
        return rc;
    covered = cover(hello, proof_out, NULL);
    rondo_auth_tag(secret, server_label, &covered, sizeof(covered), proof_out->tag);
    return ncclSuccess;
}

enum rondo_verdict rondo_proof_check(const struct rondo_secret *secret, const struct rondo_hello *hello,
                                     const struct rondo_proof *proof)
{
    struct covered covered = cover(hello, proof, NULL);

    if (proof->magic != RONDO_WIRE_MAGIC)
        return RONDO_VERDICT_STRANGER;
    if (proof->version != RONDO_WIRE_VERSION)
        return RONDO_VERDICT_VERSION;
    return rondo_auth_check(secret, server_label, &covered, sizeof(covered), proof->tag)
               ? RONDO_VERDICT_GOOD
               : RONDO_VERDICT_SECRET;
}

void rondo_entry_seal(const struct rondo_secret *secret, const struct rondo_hello *hello,
                      const struct rondo_proof *proof, struct rondo_entry *entry)
{
    struct covered covered = cover(hello, proof, entry);

    rondo_auth_tag(secret, client_label, &covered, sizeof(covered), entry->tag);
}

enum rondo_verdict rondo_entry_check(const struct rondo_secret *secret, const struct rondo_hello *hello,
                                     const struct rondo_proof *proof, const struct rondo_entry *entry)
{
    struct covered covered = cover(hello, proof, entry);

    return rondo_auth_check(secret, client_label, &covered, sizeof(covered), entry->tag)
               ? RONDO_VERDICT_GOOD
               : RONDO_VERDICT_SECRET;
}

void rondo_welcome_make(const struct rondo_secret *secret, const struct rondo_hello *hello,
                        const struct rondo_proof *proof, struct rondo_welcome *welcome_out)
{
    struct covered covered = cover(hello, proof, NULL);

    rondo_auth_tag(secret, welcome_label, &covered, sizeof(covered), welcome_out->tag);
}

enum rondo_verdict rondo_welcome_check(const struct rondo_secret *secret, const struct rondo_hello *hello,
                                       const struct rondo_proof *proof, const struct rondo_welcome *welcome)
{
    struct covered covered = cover(hello, proof, NULL);

    return rondo_auth_check(secret, welcome_label, &covered, sizeof(covered), welcome->tag)
               ? RONDO_VERDICT_GOOD
               : RONDO_VERDICT_SECRET;
}
