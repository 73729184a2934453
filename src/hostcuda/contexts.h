/*
 * contexts.h - primary contexts and device attributes, for the files of libcuda.so.1.
 */
#ifndef RONDO_HOSTCUDA_CONTEXTS_H
#define RONDO_HOSTCUDA_CONTEXTS_H

#include "context.h"

#define RONDO_CONTEXTS 1024 /* the most RONDO_CPU_DEVICES allows */

/* Whether the device's primary context is in use; out of range: no. */
bool rondo_context_is_active(int device);
void rondo_context_set_active(int device, bool active);

/* Whether the calling thread gave its context up; bind() takes that back. */
bool rondo_context_is_detached(void);
void rondo_context_detach(void);

/* attribute() of context.h. */
ncclResult_t rondo_context_attribute(int device, int attribute, int *value_out);

#endif
