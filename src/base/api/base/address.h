/*
 * address.h - TCP addresses, and as text.
 */
#ifndef RONDO_BASE_ADDRESS_H
#define RONDO_BASE_ADDRESS_H

#include "nccl.h"

#include <netinet/in.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An IPv4 or IPv6 address with port; 28 bytes; travels between ranks as it is. */
union rondo_address {
    struct sockaddr any;
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;
};

#define RONDO_ADDRESS_TEXT 80

/* "10.0.0.1:5000" or "[fe80::1%2]:5000"; returns out. Never fails: an unknown family is written as such. */
const char *rondo_address_text(const union rondo_address *address, char out[RONDO_ADDRESS_TEXT]);

/* Bytes of the sockaddr in use, 0 for an unknown family. */
socklen_t rondo_address_bytes(const union rondo_address *address);

/* Parse "host:port", "1.2.3.4:port" or "[v6]:port"; resolves names (may block in the resolver).
 * ncclInvalidArgument: the text is malformed or the name unknown; the message quotes it. */
ncclResult_t rondo_address_parse(const char *text, union rondo_address *address_out);

#ifdef __cplusplus
}
#endif
#endif
