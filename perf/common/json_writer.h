/*
 * json_writer.h - JSON to a file, value by value.
 *
 * It puts the commas, the indentation and the escapes; the caller pairs begins and ends. A key is NULL inside
 * an array.
 */
#ifndef PERF_JSON_WRITER_H
#define PERF_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
    FILE *file;
    int depth;
    bool has_value; /* the innermost object or array is not empty */
};

void json_begin(struct json_writer *writer, const char *key, char bracket);       /* '{' or '[' */
void json_end(struct json_writer *writer, char bracket);                          /* '}' or ']' */
void json_string(struct json_writer *writer, const char *key, const char *value); /* NULL writes null */
void json_integer(struct json_writer *writer, const char *key, int64_t value);
void json_number(struct json_writer *writer, const char *key,
                 double value); /* what JSON lacks becomes "nan", "inf" */
void json_bool(struct json_writer *writer, const char *key, bool value);

#endif
