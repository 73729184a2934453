/*
 * calls.h - the calls on streams and events, as the slots of the same names in device.h and cpu.h.
 */
#ifndef RONDO_CPU_CALLS_H
#define RONDO_CPU_CALLS_H

#include "cpu/caller.h"

#ifdef __cplusplus
extern "C" {
#endif

ncclResult_t rondo_stream_create(int device, unsigned flags, int priority, void **stream_out);
ncclResult_t rondo_stream_destroy(void *stream);
ncclResult_t rondo_stream_info(void *stream, int *device_out, unsigned *flags_out, int *priority_out);
ncclResult_t rondo_stream_launch(int device, void *stream, const struct rondo_launch *launch);
ncclResult_t rondo_stream_copy(int device, void *stream, void *destination, const void *source, size_t bytes);
ncclResult_t rondo_stream_fill(int device, void *stream, void *destination, int value, size_t bytes);
ncclResult_t rondo_stream_host(int device, void *stream, void (*function)(void *argument), void *argument);
ncclResult_t rondo_stream_synchronize(int device, void *stream);
ncclResult_t rondo_stream_query(int device, void *stream, bool *done_out);
ncclResult_t rondo_device_synchronize(int device);
ncclResult_t rondo_device_reset(int device);
ncclResult_t rondo_line_wait(struct rondo_line *line, uint64_t target, uint64_t deadline, bool *reached_out);

ncclResult_t rondo_event_create(int device, bool has_timing, struct rondo_event **event_out);
ncclResult_t rondo_event_record(struct rondo_event *event, int device, void *stream);
ncclResult_t rondo_event_query(struct rondo_event *event, bool *done_out);
ncclResult_t rondo_event_synchronize(struct rondo_event *event);
ncclResult_t rondo_event_elapsed(struct rondo_event *start, struct rondo_event *end, float *milliseconds_out);
ncclResult_t rondo_stream_wait(int device, void *stream, struct rondo_event *event);
void rondo_event_destroy(struct rondo_event *event);

/* For the calls above. Under the lock: the queue of a handle; NULL, 1 and 2 are the default streams of
 * device. */
ncclResult_t rondo_stream_find(struct rondo_caller *self, int device, void *stream,
                               struct rondo_queue **queue_out);

/* Under the lock: a new queue of the calling thread's own, PER_THREAD or HIDDEN. NULL: no memory. */
struct rondo_queue *rondo_stream_of_thread(struct rondo_caller *self, int device, enum rondo_queue_role role);

/* Under the lock: append an item and, if the queue was idle, see what that makes ready. */
ncclResult_t rondo_stream_append(struct rondo_driver *driver, struct rondo_queue *queue,
                                 const struct rondo_item *item);

/* With the lock free, after appending: run what needs no wait, and leave. */
void rondo_driver_leave(struct rondo_driver *driver);

/* Without the lock: block until queue->completed is ticket. watch has been called. */
void rondo_driver_await(struct rondo_driver *driver);

/* Under the lock, which it releases and takes: a few passes over what the thread left behind. */
void rondo_driver_look(struct rondo_driver *driver, struct rondo_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
