/*
 * error.h - one way to report a failure.
 *
 * Whoever first understands a failure reports it with rondo_fail(), which records a sentence for
 * ncclGetLastError and yields the code; callers above only pass the code on. A sentence says what was
 * tried, on what object, what the system answered, and, where we know it, what to do.
 */
#ifndef RONDO_BASE_ERROR_H
#define RONDO_BASE_ERROR_H

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Record the text and return code unchanged. Thread-safe; keeps errno; never blocks on I/O except for the
 * log line that NCCL_DEBUG=WARN asks for. The text is cut at 1023 bytes. */
ncclResult_t rondo_error_record(ncclResult_t code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* An expression that records the message and yields its code: it hides no return and no jump. It yields its
 * own copy of the code, so that the compiler knows a failure's code in the caller and does not warn of
 * outputs unset on failure. */
#define rondo_fail(code, ...)                                                 \
    __extension__({                                                           \
        ncclResult_t rondo_fail_code = (code);                                \
        rondo_error_record(rondo_fail_code, __FILE__, __LINE__, __VA_ARGS__); \
        rondo_fail_code;                                                      \
    })

/* The most recently recorded text of the process, "" when there was none. The answer is a copy that belongs
 * to the calling thread and lives until its next call. */
const char *rondo_error_last(void);

/* The text that the calling thread recorded last, "" when there was none: what to pass on after a call of
 * this thread that failed, whatever other threads report meanwhile. Lives until the thread's next record. */
const char *rondo_error_own(void);

/* Make `text` the last error text of process and thread again, after other failures have been recorded;
 * nothing is logged where it still is the process's. Yields code. */
ncclResult_t rondo_error_restate(ncclResult_t code, const char *text);

/* What the system means by an errno value and, for limits that are reached, their value and how to raise
 * them. Belongs to the calling thread and lives until its next call; keeps errno. */
const char *rondo_error_system(int error);

/* Where a second instance of this layer (hostcuda carries its own copy) forwards its texts; NULL keeps them.
 * Set once, before other threads report. */
void rondo_error_forward(void (*sink)(ncclResult_t code, const char *file, int line, const char *text));

#ifdef __cplusplus
}
#endif
#endif
