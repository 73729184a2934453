// docs/variables.md lists every variable in the table. RONDO_UPDATE_DOCS=1 writes the list into the page.
#include "base/param.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace
{

const std::string kBegin = "<!-- begin of the table: made from src/base/api/base/params.def -->\n";
const std::string kEnd = "<!-- end of the table -->\n";

std::string Number(int64_t number)
{
    return number == INT64_MAX ? "2^63-1" : std::to_string(number);
}

std::string Table()
{
    std::string table = "| variable | default | range | meaning |\n|---|---|---|---|\n";
    for (int i = 0; i < RONDO_PARAM_NUM; i++) {
        auto id = static_cast<rondo_param_id>(i);
        rondo_param_limits bounds = rondo_param_range(id);
        std::string range =
            bounds.is_integer ? Number(bounds.low) + " to " + Number(bounds.high) : std::string("text");
        table += "| `" + std::string(rondo_param_name(id)) + "` | " +
                 (bounds.is_integer ? Number(bounds.initial) : std::string("unset")) + " | " + range + " | " +
                 rondo_param_text(id) + " |\n";
    }
    return table;
}

TEST(Variables, ThePageHasTheTable)
{
    const char *path = RONDO_VARIABLES_PAGE;
    std::ifstream in(path);
    std::string page{std::istreambuf_iterator<char>(in), {}};
    size_t begin = page.find(kBegin), end = page.find(kEnd);

    ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << path << " has lost its marks";
    begin += kBegin.size();
    ASSERT_LE(begin, end) << path;
    if (std::getenv("RONDO_UPDATE_DOCS")) {
        page.replace(begin, end - begin, Table());
        std::ofstream(path) << page;
        return;
    }
    EXPECT_EQ(page.substr(begin, end - begin), Table())
        << "write it anew: RONDO_UPDATE_DOCS=1 build/tests/base/base_test --gtest_filter='Variables.*'";
}

} // namespace
