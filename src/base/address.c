/* address.c - TCP addresses as text and back. */
#include "base/address.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

socklen_t rondo_address_bytes(const union rondo_address *address)
{
    switch (address->any.sa_family) {
    case AF_INET:
        return sizeof(address->in4);
    case AF_INET6:
        return sizeof(address->in6);
    default:
        return 0;
    }
}

const char *rondo_address_text(const union rondo_address *address, char out[RONDO_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN];
    char scope[12] = "";

    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->in4.sin_addr, host, sizeof(host));
        snprintf(out, RONDO_ADDRESS_TEXT, "%s:%u", host, ntohs(address->in4.sin_port));
    } else if (address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof(host));
        if (address->in6.sin6_scope_id != 0)
            snprintf(scope, sizeof(scope), "%%%u", address->in6.sin6_scope_id);
        snprintf(out, RONDO_ADDRESS_TEXT, "[%s%s]:%u", host, scope, ntohs(address->in6.sin6_port));
    } else {
        snprintf(out, RONDO_ADDRESS_TEXT, "(address of unknown family %u)", address->any.sa_family);
    }
    return out;
}

/* Cut text into host and port; brackets are taken off. False when it is not of one of the three forms. */
static bool split_text(const char *text, char *host, size_t host_bytes, const char **port_out)
{
    const char *colon = strrchr(text, ':');
    size_t bytes;

    if (!colon || colon == text)
        return false;
    bytes = (size_t)(colon - text);
    if (text[0] == '[') {
        if (bytes < 3 || text[bytes - 1] != ']')
            return false;
        text++;
        bytes -= 2;
    } else if (memchr(text, ':', bytes)) {
        return false; /* an IPv6 address without brackets: which part would be the port? */
    }
    if (bytes >= host_bytes)
        return false;
    memcpy(host, text, bytes);
    host[bytes] = '\0';
    *port_out = colon + 1;
    return true;
}

ncclResult_t rondo_address_parse(const char *text, union rondo_address *address_out)
{
    char host[256];
    const char *port;
    char *end;
    long number;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int error;

    if (!split_text(text, host, sizeof(host), &port))
        return rondo_fail(ncclInvalidArgument,
                          "address \"%s\": expected host:port, 1.2.3.4:port or [v6]:port", text);
    number = strtol(port, &end, 10);
    if (port[0] < '0' || port[0] > '9' || *end != '\0' || number < 1 || number > 65535)
        return rondo_fail(ncclInvalidArgument, "address \"%s\": the port must be a number from 1 to 65535",
                          text);
    if (text[0] == '[')
        hints.ai_flags = AI_NUMERICHOST;
    error = getaddrinfo(host, NULL, &hints, &found);
    if (error != 0)
        return rondo_fail(ncclInvalidArgument, "address \"%s\": resolve \"%s\": %s", text, host,
                          gai_strerror(error));
    memset(address_out, 0, sizeof(*address_out));
    memcpy(address_out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (address_out->any.sa_family == AF_INET6)
        address_out->in6.sin6_port = htons((uint16_t)number);
    else
        address_out->in4.sin_port = htons((uint16_t)number);
    return ncclSuccess;
}
