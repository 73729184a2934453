/*
 * fcontext.h - the two C symbols of Boost.Context that fibers use, declared here so that no C++ header is
 * needed.
 *
 * A context is a pointer into its own stack, where the registers that a call must keep are saved.
 */
#ifndef RONDO_FCONTEXT_H
#define RONDO_FCONTEXT_H

#include <stddef.h>

/* What arrives on the far side of a jump: the context that jumped, as it now is, and the word it sent along.
 */
struct fcontext_transfer {
    void *context;
    void *data;
};

/* A context that starts in function; top is the highest address of its stack. function must never return. */
void *make_fcontext(void *top, size_t bytes, void (*function)(struct fcontext_transfer from));

/* Save the caller, continue context, and return when something jumps back. A context is good for one jump. */
struct fcontext_transfer jump_fcontext(void *context, void *data);

#endif
