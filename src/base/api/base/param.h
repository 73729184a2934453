/*
 * param.h - every variable the library reads, from one table (params.def).
 *
 * A value is read from the environment at its first use and kept for the life of the process. A value that
 * does not parse or is out of range is ignored with one WARN line that names the variable, the value and
 * what is accepted.
 */
#ifndef RONDO_BASE_PARAM_H
#define RONDO_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rondo_param_id {
#define RONDO_PARAM_INT(id, name, initial, low, high, text) RONDO_PARAM_##id,
#define RONDO_PARAM_STRING(id, name, text) RONDO_PARAM_##id,
#include "base/params.def"
#undef RONDO_PARAM_INT
#undef RONDO_PARAM_STRING
    RONDO_PARAM_NUM
};

/* The value of an integer variable, its default when unset. Thread-safe. */
int64_t rondo_param_int(enum rondo_param_id id);

/* The value of a text variable, NULL when unset or empty. Owned by the library, lives as long as the
 * process. */
const char *rondo_param_string(enum rondo_param_id id);

/* Name and one-sentence meaning of a row, for documentation and messages. */
const char *rondo_param_name(enum rondo_param_id id);
const char *rondo_param_text(enum rondo_param_id id);

/* What a row takes: integers from low to high, initial when unset, or, if not is_integer, any text. */
struct rondo_param_limits {
    bool is_integer;
    int64_t initial, low, high;
};

struct rondo_param_limits rondo_param_range(enum rondo_param_id id);

/* Whether the library would use this text of a row's variable; nothing is read or logged. */
bool rondo_param_accepts(enum rondo_param_id id, const char *text);

/* Tests only: forget what was read, so that the next use reads the environment again. */
void rondo_param_reset_for_test(void);

#ifdef __cplusplus
}
#endif
#endif
