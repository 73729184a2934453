/* json_writer.c - see json_writer.h. */
#include "json_writer.h"

#include <math.h>

/* Length of the UTF-8 sequence at text, 0 if it is none. */
static int utf8_length(const unsigned char *text)
{
    int length = text[0] < 0x80                      ? 1
                 : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                 : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                 : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                     : 0;

    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

static void write_text(FILE *file, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    putc('"', file);
    while (*c) {
        int length = utf8_length(c);

        if (*c == '"' || *c == '\\') {
            fprintf(file, "\\%c", *c++);
        } else if (*c < 0x20 || *c == 0x7f || length == 0) { /* arguments and variables may hold any bytes */
            fprintf(file, "\\u%04x", *c++);
        } else {
            fwrite(c, 1, (size_t)length, file);
            c += length;
        }
    }
    putc('"', file);
}

static void start_value(struct json_writer *writer, const char *key)
{
    if (writer->has_value)
        putc(',', writer->file);
    if (writer->depth > 0)
        fprintf(writer->file, "\n%*s", 2 * writer->depth, "");
    writer->has_value = true;
    if (key) {
        write_text(writer->file, key);
        fputs(": ", writer->file);
    }
}

void json_begin(struct json_writer *writer, const char *key, char bracket)
{
    start_value(writer, key);
    putc(bracket, writer->file);
    writer->depth++;
    writer->has_value = false;
}

void json_end(struct json_writer *writer, char bracket)
{
    writer->depth--;
    if (writer->has_value)
        fprintf(writer->file, "\n%*s", 2 * writer->depth, "");
    putc(bracket, writer->file);
    writer->has_value = true; /* of the one around it, this */
}

void json_string(struct json_writer *writer, const char *key, const char *value)
{
    start_value(writer, key);
    if (value)
        write_text(writer->file, value);
    else
        fputs("null", writer->file);
}

void json_integer(struct json_writer *writer, const char *key, int64_t value)
{
    start_value(writer, key);
    fprintf(writer->file, "%lld", (long long)value);
}

void json_number(struct json_writer *writer, const char *key, double value)
{
    if (isnan(value)) {
        json_string(writer, key, "nan");
        return;
    }
    if (isinf(value)) {
        json_string(writer, key, value > 0 ? "inf" : "-inf");
        return;
    }
    start_value(writer, key);
    fprintf(writer->file, "%.10g", value);
}

void json_bool(struct json_writer *writer, const char *key, bool value)
{
    start_value(writer, key);
    fputs(value ? "true" : "false", writer->file);
}
