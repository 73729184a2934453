/*
 * handles.h - the values that callers hold for streams and events.
 *
 * A handle is no address but a place in a table and the number of that place's use, so that one that was
 * destroyed, or never made, is recognised instead of followed. Everything here needs the lock.
 */
#ifndef RONDO_CPU_HANDLES_H
#define RONDO_CPU_HANDLES_H

enum rondo_handle_kind { RONDO_HANDLE_STREAM = 1, RONDO_HANDLE_EVENT };

#ifdef __cplusplus
extern "C" {
#endif

/* NULL: no memory. Never 1 or 2, which name default streams. */
void *rondo_handle_make(enum rondo_handle_kind kind, void *object);

/* The object, NULL if the handle is none of that kind. */
void *rondo_handle_find(enum rondo_handle_kind kind, const void *handle);

/* Forget a handle that rondo_handle_find knows. */
void rondo_handle_free(const void *handle);

#ifdef __cplusplus
}
#endif
#endif
