/*
 * fiber.c - fibers over Boost.Context's switch.
 *
 * A fiber's stack starts in one loop that lives as long as the fiber: it runs the function it was given,
 * reports idle, and runs the next one at the next resume. So nothing is rebuilt between functions, and the
 * sanitizers, which keep a shadow of every stack, see calls and returns in balance.
 */
#include "base/fiber.h"

#include "fcontext.h"

#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FRAME_GROWTH \
    4 /* red zones and shadow calls make frames larger than the caller of create() reckoned with */
#else
#define FRAME_GROWTH 1
#endif

struct rondo_fiber {
    void *context; /* where the fiber stands while it does not run */
    void *resumer; /* where its resumer stands while it runs */
    void (*function)(struct rondo_fiber *self, void *argument);
    void *argument;
    bool is_idle;
    void *mapping; /* guard page, then the stack */
    size_t mapping_bytes;
    size_t guard_bytes;
#ifdef __SANITIZE_ADDRESS__
    const void *resumer_bottom;
    size_t resumer_bytes;
#endif
#ifdef __SANITIZE_THREAD__
    void *tsan_self, *tsan_resumer;
#endif
};

/* Leave the fiber for its resumer; returns at the next resume, on whatever thread makes it. */
static void switch_out(struct rondo_fiber *self)
{
    struct fcontext_transfer back;

#ifdef __SANITIZE_ADDRESS__
    void *fake_stack;

    __sanitizer_start_switch_fiber(&fake_stack, self->resumer_bottom, self->resumer_bytes);
#endif
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(self->tsan_resumer, 0);
#endif
    back = jump_fcontext(self->resumer, NULL);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack, &self->resumer_bottom, &self->resumer_bytes);
#endif
    self->resumer = back.context;
}

static void run_functions(struct fcontext_transfer from)
{
    struct rondo_fiber *self = from.data;

#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(NULL, &self->resumer_bottom, &self->resumer_bytes);
#endif
    self->resumer = from.context;
    for (;;) {
        self->function(self, self->argument);
        self->is_idle = true;
        switch_out(self);
    }
}

ncclResult_t rondo_fiber_create(size_t stack_bytes, struct rondo_fiber **fiber_out)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t stack;
    struct rondo_fiber *fiber;

    if (stack_bytes > SIZE_MAX / 2 / FRAME_GROWTH)
        return rondo_fail(ncclInvalidArgument, "make a fiber with a stack of %zu bytes: too large",
                          stack_bytes);
    stack =
        (stack_bytes * FRAME_GROWTH + 2 * page - 1) / page * page; /* the fiber's own loop needs room too */
    fiber = calloc(1, sizeof(*fiber));
    if (!fiber)
        return rondo_fail(ncclSystemError, "make a fiber: out of memory");
    fiber->guard_bytes = page;
    fiber->mapping_bytes = page + stack;
    fiber->mapping = mmap(NULL, fiber->mapping_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (fiber->mapping == MAP_FAILED) {
        ncclResult_t rc =
            rondo_fail(ncclSystemError, "map a fiber's stack of %zu bytes: %s", stack, strerror(errno));
        free(fiber);
        return rc;
    }
    if (mprotect(fiber->mapping, page, PROT_NONE) != 0) {
        ncclResult_t rc = rondo_fail(ncclSystemError,
                                     "protect the guard page of a fiber's stack: %s; "
                                     "vm.max_map_count limits the number of fibers",
                                     strerror(errno));
        munmap(fiber->mapping, fiber->mapping_bytes);
        free(fiber);
        return rc;
    }
    fiber->is_idle = true;
    fiber->context = make_fcontext((char *)fiber->mapping + fiber->mapping_bytes, stack, run_functions);
#ifdef __SANITIZE_THREAD__
    fiber->tsan_self = __tsan_create_fiber(0);
#endif
    *fiber_out = fiber;
    return ncclSuccess;
}

void rondo_fiber_prepare(struct rondo_fiber *fiber,
                         void (*function)(struct rondo_fiber *self, void *argument), void *argument)
{
    assert(fiber->is_idle);
    fiber->function = function;
    fiber->argument = argument;
    fiber->is_idle = false;
}

bool rondo_fiber_resume(struct rondo_fiber *fiber)
{
    struct fcontext_transfer back;

    assert(!fiber->is_idle);
#ifdef __SANITIZE_ADDRESS__
    void *fake_stack;

    __sanitizer_start_switch_fiber(&fake_stack, (char *)fiber->mapping + fiber->guard_bytes,
                                   fiber->mapping_bytes - fiber->guard_bytes);
#endif
#ifdef __SANITIZE_THREAD__
    fiber->tsan_resumer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->tsan_self, 0);
#endif
    back = jump_fcontext(fiber->context, fiber);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#endif
    fiber->context = back.context;
    return fiber->is_idle;
}

void rondo_fiber_yield(struct rondo_fiber *self)
{
    switch_out(self);
}

void rondo_fiber_destroy(struct rondo_fiber *fiber)
{
    if (!fiber)
        return;
#ifdef __SANITIZE_THREAD__
    __tsan_destroy_fiber(fiber->tsan_self);
#endif
#ifdef __SANITIZE_ADDRESS__
    /* The addresses may come back from mmap: take the red zones of the last frames away. */
    __asan_unpoison_memory_region((char *)fiber->mapping + fiber->guard_bytes,
                                  fiber->mapping_bytes - fiber->guard_bytes);
#endif
    munmap(fiber->mapping, fiber->mapping_bytes);
    free(fiber);
}
