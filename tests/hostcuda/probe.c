/*
 * probe.c - a plain C program written for CUDA, run by process_test.cpp in environments of its own. It prints
 * what the calls answered, one "name value" a line.
 */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *name, int value)
{
    printf("%s %d\n", name, value);
    fflush(stdout);
}

static int count_devices(void)
{
    int count = -1, device = -1;
    void *memory = NULL;

    show("count_error", cudaGetDeviceCount(&count));
    show("count", count);
    show("last", cudaGetLastError());
    show("set", cudaSetDevice(0));
    show("get", cudaGetDevice(&device));
    show("malloc", cudaMalloc(&memory, 64));
    show("synchronize", cudaDeviceSynchronize());
    return 0;
}

/* Uses the device in the parent if asked to, then in a child. */
static int fork_child(int parent_uses_it)
{
    int count = 0, status = 0;
    void *memory = NULL;
    pid_t child;

    show("parent_count", cudaGetDeviceCount(&count));
    if (parent_uses_it)
        show("parent_malloc", cudaMalloc(&memory, 64));
    child = fork();
    if (child == 0) {
        show("child_malloc", cudaMalloc(&memory, 64));
        show("child_memset", cudaMemset(memory, 1, 64));
        show("child_synchronize", cudaDeviceSynchronize());
        show("child_last", cudaGetLastError());
        exit(0);
    }
    waitpid(child, &status, 0);
    show("child_status", status);
    show("parent_synchronize", cudaDeviceSynchronize());
    return 0;
}

static void call_late(void)
{
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, 64);

    show("atexit_malloc", error);
    show("atexit_free", cudaFree(memory));
}

/* Work is still queued and memory still allocated when main returns. */
static int leave_early(void)
{
    void *memory = NULL;
    cudaStream_t stream;

    show("malloc", cudaMalloc(&memory, 1 << 20));
    show("stream", cudaStreamCreate(&stream));
    show("memset", cudaMemsetAsync(memory, 1, 1 << 20, stream));
    atexit(call_late);
    return 0;
}

static int fail_loudly(void)
{
    char host[8] = {0};
    void *memory = NULL;

    show("set", cudaSetDevice(99));
    show("malloc", cudaMalloc(&memory, 8));
    show("copy", cudaMemcpy(memory, host, 1 << 20, cudaMemcpyHostToDevice));
    show("capture", cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
    show("free", cudaFree(host));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "count") == 0)
        return count_devices();
    if (strcmp(what, "fork-unused") == 0)
        return fork_child(0);
    if (strcmp(what, "fork-used") == 0)
        return fork_child(1);
    if (strcmp(what, "exit") == 0)
        return leave_early();
    if (strcmp(what, "fail") == 0)
        return fail_loudly();
    fprintf(stderr, "usage: %s count|fork-unused|fork-used|exit|fail\n", argv[0]);
    return 2;
}
