/*
 * auth.c - keyed tags over libsodium's BLAKE2b.
 *
 * A tag covers the label with its terminating zero before the data, so that no (label, data) pair reads as
 * another.
 */
#include "base/auth.h"

#include "base/error.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

ncclResult_t rondo_random_bytes(void *out, size_t bytes)
{
    unsigned char *next = out;

    while (bytes > 0) {
        ssize_t got = getrandom(next, bytes, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return rondo_fail(ncclSystemError, "getrandom of %zu bytes: %s", bytes, strerror(errno));
        next += got;
        bytes -= (size_t)got;
    }
    return ncclSuccess;
}

void rondo_auth_tag(const struct rondo_secret *secret, const char *label, const void *data, size_t bytes,
                    unsigned char tag_out[RONDO_TAG_BYTES])
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, secret->bytes, sizeof(secret->bytes), RONDO_TAG_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)label, strlen(label) + 1);
    if (bytes > 0)
        crypto_generichash_update(&state, data, bytes);
    crypto_generichash_final(&state, tag_out, RONDO_TAG_BYTES);
    sodium_memzero(&state, sizeof(state));
}

bool rondo_auth_check(const struct rondo_secret *secret, const char *label, const void *data, size_t bytes,
                      const unsigned char tag[RONDO_TAG_BYTES])
{
    unsigned char right[RONDO_TAG_BYTES];

    rondo_auth_tag(secret, label, data, bytes, right);
    return sodium_memcmp(right, tag, sizeof(right)) == 0;
}

void rondo_auth_derive(const void *data, size_t bytes, struct rondo_secret *secret_out)
{
    static const unsigned char purpose[] = "rondo secret of any bytes";

    crypto_generichash(secret_out->bytes, sizeof(secret_out->bytes), data, bytes, purpose,
                       sizeof(purpose) - 1);
}

void rondo_auth_wipe(void *data, size_t bytes)
{
    sodium_memzero(data, bytes);
}
