/*
 * consumer.c - a program as users write it, compiled as C and as C++ by consumers.sh with what pkg-config or
 * CMake says. It links every kind of name: one that answers, one that refuses, one of a tool's twins.
 */
#include <nccl.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int version = 0;

    if (ncclGetVersion(&version) != ncclSuccess || version != NCCL_VERSION_CODE) {
        fprintf(stderr, "header says %d, library says %d\n", NCCL_VERSION_CODE, version);
        return 1;
    }
    if (pncclGetVersion(NULL) != ncclInvalidArgument || strlen(ncclGetLastError(NULL)) == 0) {
        fprintf(stderr, "a NULL output was not refused with a sentence\n");
        return 1;
    }
    printf("%s, version %d, configuration of %zu bytes\n", ncclGetErrorString(ncclSuccess), version,
           config.size);
    return 0;
}
