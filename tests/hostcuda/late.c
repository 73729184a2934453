/*
 * late.c - a library whose destructor calls the CUDA runtime after the runtime's own destructors.
 *
 * The loader ends users before what they use. So that the runtime counts as a user of this library, the
 * library is loaded first, stands before libcuda.so.1 with a function that the runtime calls there, and
 * passes the call on.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static int (*late_malloc)(void **, size_t);
static int (*late_error)(void);

__attribute__((visibility("default"))) void late_watch(int (*allocate)(void **, size_t),
                                                       int (*last_error)(void));

void late_watch(int (*allocate)(void **, size_t), int (*last_error)(void))
{
    late_malloc = allocate;
    late_error = last_error;
}

__attribute__((visibility("default"))) const void *rondo_hostcuda_context(uint32_t abi, uint32_t *abi_out);

const void *rondo_hostcuda_context(uint32_t abi, uint32_t *abi_out)
{
    const void *(*real)(uint32_t, uint32_t *);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    *(void **)&real = driver ? dlsym(driver, "rondo_hostcuda_context") : NULL;
    printf("passed_on %d\n", real != NULL);
    return real ? real(abi, abi_out) : NULL;
}

__attribute__((destructor)) static void call_functions(void)
{
    void *memory = NULL;

    if (!late_malloc || !late_error)
        return;
    printf("late_malloc %d\n", late_malloc(&memory, 64));
    printf("late_last %d\n", late_error());
    fflush(stdout);
}
