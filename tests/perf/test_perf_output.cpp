// The text and the JSON that scripts read.
#include "run_perf.h"

#include <regex.h>

namespace
{

// Does an extended regular expression match somewhere? POSIX's, as <regex> does not compile without warnings
// under ASan.
bool Matches(const std::string &text, const char *expression)
{
    regex_t compiled;
    if (regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB) != 0) {
        ADD_FAILURE() << "bad expression " << expression;
        return false;
    }
    bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return found;
}

// The line that starts with a prefix.
std::string Line(const std::string &text, const std::string &prefix)
{
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.rfind(prefix, 0) == 0)
            return line;
    return "";
}

std::string TemporaryJson()
{
    static int number;
    return testing::TempDir() + "rondo-perf-" + std::to_string(getpid()) + "-" + std::to_string(number++) +
           ".json";
}

} // namespace

TEST(PerfOutput, HeaderTableAndFooter)
{
    Outcome run = RunShell("all_reduce_perf -g 2 -b 8 -e 64 -f 8 -n 3");
    ASSERT_EQ(run.status, 0) << run.text;
    EXPECT_TRUE(Matches(run.text, "# nccl-tests version [^ ]+ nccl-headers=[0-9]+ nccl-library=[0-9]+\n"));
    EXPECT_TRUE(Has(run.text, "# Collective test starting: all_reduce_perf\n"));
    EXPECT_TRUE(Has(run.text,
                    "# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 8(factor) warmup iters: 1 iters: 3 agg "
                    "iters: 1 validation: 1 graph: 0 unalign: 0\n#\n# Using devices\n"));
    EXPECT_TRUE(Matches(run.text, "#  Rank  1 Group  0 Pid [ 0-9]{6,} on +[^ ]+ device  "
                                  "1 \\[[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\] "));
    EXPECT_TRUE(
        Has(run.text,
            "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time"
            "   algbw   busbw  #wrong"));
    EXPECT_TRUE(
        Has(run.text,
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "));
    EXPECT_TRUE(
        Matches(run.text, "\n +8 +2     float     sum      -1 [ 0-9.e+]+       0 [ 0-9.e+]+       0\n"));
    EXPECT_TRUE(Has(run.text, "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "));
    EXPECT_TRUE(Has(run.text, "\n#\n# Collective test concluded: all_reduce_perf\n#\n"));
}

// Who starts a program without options measures one rank, most often without knowing; parsers skip the line.
TEST(PerfOutput, ASingleRankIsToldHowToBecomeSeveral)
{
    Outcome run = RunShell("all_reduce_perf -b 8 -e 8 -n 1");
    ExpectAllRight(run, 1);
    std::string hint = Line(run.text, "# Hint: ");
    for (const char *way : {"--procs", "-t ", "-g ", "mpirun"})
        EXPECT_TRUE(Has(hint, way)) << run.text;
    for (const char *several : {"-g 2", "-t 2", "--procs 2", "--procs 1"})
        EXPECT_EQ(Line(RunShell(std::string("all_reduce_perf -b 8 -e 8 -n 1 ") + several).text, "# Hint"), "")
            << several;
    EXPECT_EQ(
        Line(RunShell("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 all_reduce_perf -b 8 -e 8 -n 1").text,
             "# Hint"),
        "");
}

TEST(PerfOutput, BandwidthsFollowFromTimes)
{
    struct {
        const char *program;
        double bus_per_algorithm; // with 4 ranks
        double bytes_per_size;
    } rows[] = {{"all_reduce_perf", 1.5, 1}, {"all_gather_perf", 0.75, 1}, {"reduce_scatter_perf", 0.75, 1},
                {"broadcast_perf", 1, 1},    {"reduce_perf", 1, 1},        {"alltoall_perf", 0.75, 1},
                {"gather_perf", 0.75, 1},    {"scatter_perf", 0.75, 1},    {"sendrecv_perf", 1, 1},
                {"hypercube_perf", 1, 0.75}};
    for (auto &row : rows) {
        Outcome run = RunShell(std::string(row.program) + " -g 4 -b 4M -e 4M -n 2 -c 0");
        std::vector<Row> table = Rows(run.text);
        ASSERT_EQ(table.size(), 1u) << run.text;
        EXPECT_EQ(table[0].size, 4 << 20);
        double algorithm = table[0].size * row.bytes_per_size / table[0].times[0] * 1e-3;
        EXPECT_NEAR(table[0].algorithm[0], algorithm, 0.01 + algorithm * 0.01) << run.text;
        EXPECT_NEAR(table[0].bus[0], algorithm * row.bus_per_algorithm, 0.01 + algorithm * 0.02) << run.text;
    }
}

TEST(PerfOutput, JsonIsStrictForOneAndTwoRanks)
{
    for (const char *ranks : {"-g 1", "-g 2", "--procs 2"}) {
        std::string path = TemporaryJson();
        Outcome run = RunShell(std::string("all_reduce_perf -b 8 -e 64 -f 8 -n 2 -J ") + path + " " + ranks);
        ASSERT_EQ(run.status, 0) << run.text;
        EXPECT_TRUE(Has(run.text, "# Writing JSON output to " + path)) << run.text;
        EXPECT_EQ(
            FromJson(path, "list(d)"),
            "['version', 'start_time', 'args', 'env', 'nccl_version', 'config', 'results', 'out_of_bounds', "
            "'average_bus_bandwidth', 'errors', 'end_time']");
        EXPECT_EQ(FromJson(path, "d[\"version\"], len(d[\"results\"]), d[\"out_of_bounds\"], d[\"errors\"]"),
                  "3 2 {'count': 0, 'okay': True} []");
        EXPECT_EQ(
            FromJson(path, "[list(r) for r in d[\"results\"]][0]"),
            "['size', 'count', 'type', 'redop', 'root', 'out_of_place', 'in_place', 'actual_iterations', "
            "'experiment_name']");
        EXPECT_EQ(
            FromJson(path,
                     "[(r[\"size\"], r[\"root\"], r[\"out_of_place\"][\"nwrong\"]) for r in d[\"results\"]]"),
            "[(8, '-1', 0), (64, '-1', 0)]");
        unlink(path.c_str());
    }
}

TEST(PerfOutput, JsonHasNullForWhatWasNotVerified)
{
    std::string path = TemporaryJson();
    ASSERT_EQ(RunShell("alltoall_perf -g 2 -b 1K -e 1K -n 2 -J " + path).status, 0);
    EXPECT_EQ(
        FromJson(
            path,
            "d[\"results\"][0][\"out_of_place\"][\"nwrong\"], d[\"results\"][0][\"in_place\"][\"nwrong\"]"),
        "0 None");
    unlink(path.c_str());
    ASSERT_EQ(RunShell("all_reduce_perf -g 2 -b 1K -e 1K -n 2 -c 0 -J " + path).status, 0);
    EXPECT_EQ(FromJson(path, "d[\"results\"][0][\"in_place\"][\"nwrong\"], d[\"out_of_bounds\"]"),
              "None {'count': 0, 'okay': None}");
    unlink(path.c_str());
}

TEST(PerfOutput, JsonNeverOverwrites)
{
    std::string path = TemporaryJson();
    std::ofstream(path) << "mine";
    Outcome run = RunShell("all_reduce_perf -b 8 -e 8 -n 1 -J " + path);
    EXPECT_TRUE(Has(run.text, path + ".0")) << run.text;
    std::string kept;
    std::ifstream(path) >> kept;
    EXPECT_EQ(kept, "mine");
    EXPECT_EQ(FromJson(path + ".0", "len(d[\"results\"])"), "1");
    unlink(path.c_str());
    unlink((path + ".0").c_str());
    EXPECT_EQ(RunShell("all_reduce_perf -b 8 -e 8 -n 1 -J /nonexistent/x.json").status, 6);
}

TEST(PerfOutput, AnOutputFileOfAnotherKindIsNotPassedOverInSilence)
{
    Outcome run = RunShell("all_reduce_perf -g 2 -b 8 -e 8 -n 1 -J /nonexistent/x.txt");
    ExpectAllRight(run, 1);
    EXPECT_TRUE(Matches(run.text, "# Warning: .*/nonexistent/x.txt.* nothing is written\n")) << run.text;
}

TEST(PerfOutput, TheTimestampStandsUnderItsHeading)
{
    Outcome run = RunShell("all_reduce_perf -g 2 -b 8 -e 8 -n 1 -S 1");
    ExpectAllRight(run, 1);
    std::string head = Line(run.text, "#       size"), row = Line(run.text, "           8");
    EXPECT_TRUE(Matches(row, "  [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$")) << row;
    EXPECT_EQ(row.size(), head.size()) << run.text;
}

// What a size was cut down to comes after the devices whose memory was asked.
TEST(PerfOutput, ASizeBeyondMemoryIsReduced)
{
    Outcome run = RunShell("all_reduce_perf -g 2 -b 8 -e 1000000G -f 2000000000 -n 1 -w 0 -c 0");
    EXPECT_EQ(run.status, 0) << run.text;
    EXPECT_TRUE(Matches(run.text,
                        "\n#  Rank  1 [^\n]*\n# Reducing maxBytes to [0-9]+ due to memory limitation\n"
                        "#\n# +out-of-place "))
        << run.text;
}

TEST(PerfOutput, PerIterationColumnsAndJson)
{
    std::string path = TemporaryJson();
    Outcome run = RunShell("all_reduce_perf --procs 2 -b 1K -e 1K -n 5 -I 1 -K 2 -J " + path);
    ASSERT_EQ(run.status, 0) << run.text;
    EXPECT_TRUE(Has(run.text, "out-of-place (+ per-iteration)")) << run.text;
    EXPECT_TRUE(Has(run.text, "i_min    i_max    i_p99    i_cv%")) << run.text;
    EXPECT_EQ(
        FromJson(path,
                 "[len(x) for x in [d[\"results\"][0][\"out_of_place_per_iter\"][k] for k in (\"times_us\", "
                 "\"per_process_max_times_us\")]], "
                 "d[\"results\"][0][\"in_place_per_iter\"][\"skipped_iterations\"]"),
        "[5, 2] 2");
    EXPECT_EQ(
        FromJson(path,
                 "all(max(c)==t for t,c in zip(d[\"results\"][0][\"out_of_place_per_iter\"][\"times_us\"], "
                 "zip(*d[\"results\"][0][\"out_of_place_per_iter\"][\"per_process_max_times_us\"])))"),
        "True");
    unlink(path.c_str());
}

TEST(PerfOutput, AMinimumBandwidthIsEnforced)
{
    Outcome run = RunShell("NCCL_TESTS_MIN_BW=1e9 all_reduce_perf -g 2 -b 1K -e 1K -n 1");
    EXPECT_EQ(run.status, 7) << run.text;
    EXPECT_TRUE(Has(Line(run.text, "# Avg bus bandwidth"), "FAILED")) << run.text;
    run = RunShell("NCCL_TESTS_MIN_BW=0 all_reduce_perf -g 2 -b 1K -e 1K -n 1");
    EXPECT_EQ(run.status, 0) << run.text;
    EXPECT_TRUE(Has(Line(run.text, "# Avg bus bandwidth"), "OK")) << run.text;
}
