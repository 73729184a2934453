/*
 * log.h - NCCL_DEBUG's lines, on stderr or in NCCL_DEBUG_FILE, never on stdout unless that file says so.
 *
 * A line is "host:pid:tid NCCL LEVEL text", the form that log readers know; at VERSION it is the text alone.
 * Nothing is formatted when the level is off.
 */
#ifndef RONDO_BASE_LOG_H
#define RONDO_BASE_LOG_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ALARM is for lines without which a program seems to hang for no reason: they are written whatever
 * NCCL_DEBUG says. */
enum rondo_log_level {
    RONDO_LOG_NONE,
    RONDO_LOG_ALARM = RONDO_LOG_NONE,
    RONDO_LOG_VERSION,
    RONDO_LOG_WARN,
    RONDO_LOG_INFO,
    RONDO_LOG_ABORT,
    RONDO_LOG_TRACE
};

/* Subsystems as NCCL_DEBUG_SUBSYS names them; a bit each. */
enum rondo_log_subsystem {
    RONDO_LOG_INIT = 1 << 0,
    RONDO_LOG_COLL = 1 << 1,
    RONDO_LOG_P2P = 1 << 2,
    RONDO_LOG_SHM = 1 << 3,
    RONDO_LOG_NET = 1 << 4,
    RONDO_LOG_GRAPH = 1 << 5,
    RONDO_LOG_TUNING = 1 << 6,
    RONDO_LOG_ENV = 1 << 7,
    RONDO_LOG_ALLOC = 1 << 8,
    RONDO_LOG_CALL = 1 << 9,
    RONDO_LOG_PROXY = 1 << 10,
    RONDO_LOG_BOOTSTRAP = 1 << 11,
    RONDO_LOG_REG = 1 << 12,
    RONDO_LOG_DESTROY = 1 << 13,
};

/* Whether a line of this level and these subsystems would be written. Reads the environment at the first
 * call. */
bool rondo_log_enabled(enum rondo_log_level level, unsigned subsystems);

/* Write one line; ALARM, which reads WARN, VERSION and WARN ignore the subsystems. Thread-safe; a line is written
 * by one write(). Keeps errno. */
void rondo_log(enum rondo_log_level level, unsigned subsystems, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes the next line read NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE again. */
void rondo_log_reset(void);

#ifdef __cplusplus
}
#endif
#endif
