// The JSON writer, read back by a parser that takes nothing but JSON.
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

#include <nccl.h> // has C++ overloads, so it cannot come first inside the braces below

extern "C" {
#include "json_writer.h"
}

namespace
{

struct Written {
    char *text = nullptr;
    size_t bytes = 0;
    json_writer writer = {};
    Written()
    {
        writer.file = open_memstream(&text, &bytes);
    }
    std::string Take()
    {
        fclose(writer.file);
        std::string result = text;
        free(text);
        return result;
    }
};

} // namespace

TEST(PerfJson, NestsAndSeparates)
{
    Written w;
    json_begin(&w.writer, nullptr, '{');
    json_begin(&w.writer, "empty", '[');
    json_end(&w.writer, ']');
    json_begin(&w.writer, "list", '[');
    json_integer(&w.writer, nullptr, -5);
    json_bool(&w.writer, nullptr, true);
    json_end(&w.writer, ']');
    json_string(&w.writer, "none", nullptr);
    json_number(&w.writer, "pi", 3.25);
    json_number(&w.writer, "bad", NAN);
    json_end(&w.writer, '}');
    EXPECT_EQ(
        w.Take(),
        "{\n  \"empty\": [],\n  \"list\": [\n    -5,\n    true\n  ],\n  \"none\": null,\n  \"pi\": 3.25,\n  "
        "\"bad\": \"nan\"\n}");
}

TEST(PerfJson, EscapesWhateverTheEnvironmentHolds)
{
    Written w;
    json_string(&w.writer, nullptr, "a\"b\\c\n\t\x01\x7f\xc3\xa9\xff\xc3(\xed\xa0\x80");
    EXPECT_EQ(w.Take(),
              "\"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u007f\xc3\xa9\\u00ff\\u00c3(\\u00ed\\u00a0\\u0080\"");
}
