/*
 * late_program.c - loads late.c's library and the CUDA runtime, given as its arguments in that order, and
 * uses the runtime.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void (*watch)(int (*allocate)(void **, size_t), int (*last_error)(void));
    int (*allocate)(void **, size_t);
    int (*last_error)(void);
    void *memory = NULL;
    void *late = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    void *runtime = late ? dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) : NULL;

    if (!runtime) {
        fprintf(stderr, "usage: %s LATE LIBCUDART (%s)\n", argv[0],
                argc > 2 ? dlerror() : "too few arguments");
        return 2;
    }
    *(void **)&watch = dlsym(late, "late_watch");
    *(void **)&allocate = dlsym(runtime, "cudaMalloc");
    *(void **)&last_error = dlsym(runtime, "cudaGetLastError");
    watch(allocate, last_error);
    printf("malloc %d\n", allocate(&memory, 64));
    return 0;
}
