/*
 * auth.h - proving knowledge of a job's secret, and random bytes.
 *
 * Built on libsodium (keyed BLAKE2b; constant-time comparison), which is linked statically and hidden.
 */
#ifndef RONDO_BASE_AUTH_H
#define RONDO_BASE_AUTH_H

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDO_SECRET_BYTES 16 /* 128 bits, as the design asks */
#define RONDO_TAG_BYTES 16
#define RONDO_NONCE_BYTES 16

struct rondo_secret {
    unsigned char bytes[RONDO_SECRET_BYTES];
};

/* Fill with bytes of the kernel's generator. ncclSystemError: the kernel gave none. */
ncclResult_t rondo_random_bytes(void *out, size_t bytes);

/* Keyed tag over label (a text that names the situation, so that no tag fits another) and data. Pure. */
void rondo_auth_tag(const struct rondo_secret *secret, const char *label, const void *data, size_t bytes,
                    unsigned char tag_out[RONDO_TAG_BYTES]);

/* Whether tag is the right one; takes the same time whatever the answer. Pure. */
bool rondo_auth_check(const struct rondo_secret *secret, const char *label, const void *data, size_t bytes,
                      const unsigned char tag[RONDO_TAG_BYTES]);

/* Secret made from any bytes (a passphrase file). Pure. */
void rondo_auth_derive(const void *data, size_t bytes, struct rondo_secret *secret_out);

/* Overwrite a secret in a way the compiler cannot drop. */
void rondo_auth_wipe(void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
