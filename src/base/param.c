/*
 * param.c - the values of the variables in params.def.
 *
 * A slot holds what its first use read. No lock is taken: threads that race for a first use read the same
 * text, one of them stores and reports it, and all return the same value. So a child forked at any time can
 * go on reading.
 */
#include "base/param.h"

#include "base/log.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *name, *text;
    bool is_string;
    int64_t initial, low, high;
};

static const struct row rows[RONDO_PARAM_NUM] = {
#define RONDO_PARAM_INT(id, variable, first, lowest, highest, meaning) \
    [RONDO_PARAM_##                                                    \
        id] = {.name = variable, .text = meaning, .initial = (first), .low = (lowest), .high = (highest)},
#define RONDO_PARAM_STRING(id, variable, meaning) \
    [RONDO_PARAM_##id] = {.name = variable, .text = meaning, .is_string = true},
#include "base/params.def"
#undef RONDO_PARAM_INT
#undef RONDO_PARAM_STRING
};

/* A text that was read. Kept on a list for the life of the process, because callers may hold it. */
struct kept_text {
    struct kept_text *next;
    char text[];
};

enum { SLOT_UNREAD, SLOT_CLAIMED, SLOT_READ };

static struct {
    int state; /* SLOT_READ is released after the value below, and acquired before it is used */
    int64_t number;
    const char *text; /* NULL: unset or empty */
} slots[RONDO_PARAM_NUM];

static struct kept_text *kept_texts;

/* Claim the right to store and report; one thread gets it. */
static bool claim_slot(enum rondo_param_id id)
{
    int unread = SLOT_UNREAD;

    return __atomic_compare_exchange_n(&slots[id].state, &unread, SLOT_CLAIMED, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void log_value(enum rondo_param_id id, const char *text)
{
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_ENV, "%s set by environment to %s.", rows[id].name, text);
}

/* Whether all of text is one integer in the row's range (C's notations, blanks around it). */
static bool parse_number(const struct row *row, const char *text, int64_t *number_out)
{
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 0);
    if (end == text || errno != 0)
        return false;
    while (isspace((unsigned char)*end))
        end++;
    if (*end != '\0' || number < row->low || number > row->high)
        return false;
    *number_out = number;
    return true;
}

int64_t rondo_param_int(enum rondo_param_id id)
{
    const struct row *row = &rows[id];
    const char *text;
    int64_t number;
    bool is_valid;
    int saved = errno;

    assert((unsigned)id < RONDO_PARAM_NUM && !row->is_string);
    if (__atomic_load_n(&slots[id].state, __ATOMIC_ACQUIRE) == SLOT_READ)
        return __atomic_load_n(&slots[id].number, __ATOMIC_RELAXED);
    text = getenv(row->name);
    if (text && !*text)
        text = NULL;
    is_valid = text && parse_number(row, text, &number);
    if (!is_valid)
        number = row->initial;
    if (claim_slot(id)) {
        __atomic_store_n(&slots[id].number, number, __ATOMIC_RELAXED);
        __atomic_store_n(&slots[id].state, SLOT_READ, __ATOMIC_RELEASE);
        if (is_valid)
            log_value(id, text);
        else if (text)
            rondo_log(RONDO_LOG_WARN, RONDO_LOG_ENV,
                      "%s=\"%s\" is ignored, %" PRId64 " is used: an integer from %" PRId64 " to %" PRId64
                      " is accepted (%s)",
                      row->name, text, row->initial, row->low, row->high, row->text);
    }
    errno = saved;
    return number;
}

/* A copy that lives as long as the process; NULL without memory. */
static const char *keep_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    struct kept_text *kept = malloc(sizeof(*kept) + bytes);

    if (!kept)
        return NULL;
    memcpy(kept->text, text, bytes);
    kept->next = __atomic_load_n(&kept_texts, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&kept_texts, &kept->next, kept, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ; /* only ever pushed to, so the exchange needs no partner */
    return kept->text;
}

const char *rondo_param_string(enum rondo_param_id id)
{
    const char *text;
    int saved = errno;

    assert((unsigned)id < RONDO_PARAM_NUM && rows[id].is_string);
    if (__atomic_load_n(&slots[id].state, __ATOMIC_ACQUIRE) == SLOT_READ)
        return __atomic_load_n(&slots[id].text, __ATOMIC_RELAXED);
    text = getenv(rows[id].name);
    text = text && *text ? keep_text(text) : NULL;
    if (claim_slot(id)) {
        __atomic_store_n(&slots[id].text, text, __ATOMIC_RELAXED);
        __atomic_store_n(&slots[id].state, SLOT_READ, __ATOMIC_RELEASE);
        if (text)
            log_value(id, text);
    }
    errno = saved;
    return text;
}

struct rondo_param_limits rondo_param_range(enum rondo_param_id id)
{
    const struct row *row = &rows[id];

    return (struct rondo_param_limits){
        .is_integer = !row->is_string, .initial = row->initial, .low = row->low, .high = row->high};
}

bool rondo_param_accepts(enum rondo_param_id id, const char *text)
{
    int64_t number;

    return rows[id].is_string || parse_number(&rows[id], text, &number);
}

const char *rondo_param_name(enum rondo_param_id id)
{
    return rows[id].name;
}

const char *rondo_param_text(enum rondo_param_id id)
{
    return rows[id].text;
}

void rondo_param_reset_for_test(void)
{
    for (int id = 0; id < RONDO_PARAM_NUM; id++)
        __atomic_store_n(&slots[id].state, SLOT_UNREAD, __ATOMIC_RELEASE);
}
