/*
 * hook.h - a circular list threaded through the objects it lists.
 *
 * An object is in one list at a time by each hook it has. A hook that is in no list points to itself.
 */
#ifndef RONDO_CPU_HOOK_H
#define RONDO_CPU_HOOK_H

#include <stdbool.h>
#include <stddef.h>

struct rondo_hook {
    struct rondo_hook *next, *previous;
};

/* The object of this type whose member is *hook. */
#define rondo_hook_owner(hook, type, member) ((type *)((char *)(hook)-offsetof(type, member)))

static inline void rondo_hook_init(struct rondo_hook *hook)
{
    hook->next = hook->previous = hook;
}

static inline bool rondo_hook_alone(const struct rondo_hook *hook)
{
    return hook->next == hook;
}

/* Put hook, which is in no list, at the end of the list that starts at head. */
static inline void rondo_hook_append(struct rondo_hook *head, struct rondo_hook *hook)
{
    hook->next = head;
    hook->previous = head->previous;
    head->previous->next = hook;
    head->previous = hook;
}

/* Take hook out of the list it is in, if any. */
static inline void rondo_hook_remove(struct rondo_hook *hook)
{
    hook->previous->next = hook->next;
    hook->next->previous = hook->previous;
    rondo_hook_init(hook);
}

#endif
