// The command line: what it sets, what it refuses, and with which exit status.
#include <cstdlib>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <vector>

#include <nccl.h> // has C++ overloads, so it cannot come first inside the braces below

extern "C" {
#include "elements.h"
#include "options.h"
}

namespace
{

struct Parsed {
    perf_parse answer;
    int status;
    perf_options options;
    std::string out, err;
};

Parsed Parse(const std::string &line)
{
    std::vector<std::string> words = {"all_reduce_perf"};
    std::istringstream in(line);
    for (std::string word; in >> word;)
        words.push_back(word);
    std::vector<char *> argv;
    for (std::string &word : words)
        argv.push_back(word.data());
    argv.push_back(nullptr);
    char *out_text = nullptr, *err_text = nullptr;
    size_t out_bytes, err_bytes;
    FILE *out = open_memstream(&out_text, &out_bytes), *err = open_memstream(&err_text, &err_bytes);
    Parsed parsed;
    parsed.answer =
        perf_options_parse((int)words.size(), argv.data(), out, err, &parsed.options, &parsed.status);
    fclose(out);
    fclose(err);
    parsed.out = out_text;
    parsed.err = err_text;
    free(out_text);
    free(err_text);
    if (parsed.options.json_path)
        parsed.options.json_path = "set"; // it points into words
    return parsed;
}

} // namespace

TEST(PerfOptions, Defaults)
{
    Parsed p = Parse("");
    ASSERT_EQ(p.answer, PERF_PARSE_RUN);
    EXPECT_EQ(p.options.threads, 1);
    EXPECT_EQ(p.options.gpus, 1);
    EXPECT_EQ(p.options.min_bytes, 32u << 20);
    EXPECT_EQ(p.options.max_bytes, 32u << 20);
    EXPECT_EQ(p.options.step_bytes, 1u << 20);
    EXPECT_EQ(p.options.step_factor, 1);
    EXPECT_EQ(p.options.iters, 20);
    EXPECT_EQ(p.options.warmup_iters, 1);
    EXPECT_EQ(p.options.check_rounds, 1);
    EXPECT_EQ(p.options.op, PERF_SUM);
    EXPECT_STREQ(perf_types[p.options.type].name, "float");
    EXPECT_EQ(p.options.average, 1);
    EXPECT_EQ(p.options.device_ctas, 16);
    EXPECT_EQ(p.options.inject_rank, -1);
}

TEST(PerfOptions, ShortAndLongNames)
{
    Parsed p = Parse("-t 2 -g 3 -b 8 -e 1.5K -f 2 -n 5 -m 4 -w 0 -N 2 -p 1 -c 3 -o max -d half -r -1 -z 3 -y "
                     "1 -T 9 -C 1 -S 1 "
                     "-J x.json -a 3 -R 1 -x 2 -M 1 -u 7 -I 1 -K 2");
    ASSERT_EQ(p.answer, PERF_PARSE_RUN) << p.err;
    EXPECT_EQ(p.options.threads, 2);
    EXPECT_EQ(p.options.gpus, 3);
    EXPECT_EQ(p.options.min_bytes, 8u);
    EXPECT_EQ(p.options.max_bytes, 1536u);
    EXPECT_EQ(p.options.step_factor, 2);
    EXPECT_EQ(p.options.op, PERF_MAX);
    EXPECT_EQ(p.options.root, -1);
    EXPECT_TRUE(p.options.parallel_init && p.options.null_stream && p.options.report_cpu_time);
    EXPECT_EQ(p.options.blocking, 3);
    EXPECT_EQ(p.options.timeout_s, 9);
    EXPECT_EQ(p.options.registration, 1);
    EXPECT_EQ(p.options.cta_policy, 2);
    EXPECT_EQ(p.options.unalign, 7);
    EXPECT_EQ(p.options.per_iteration_skip, 2);
    p = Parse("--procs 4 --nthreads 0x2 --minbytes=1K --maxbytes 2K --stepbytes 512 --datatype all --op all "
              "--root all");
    ASSERT_EQ(p.answer, PERF_PARSE_RUN) << p.err;
    EXPECT_EQ(p.options.procs, 4);
    EXPECT_EQ(p.options.threads, 2);
    EXPECT_EQ(p.options.step_bytes, 512u);
    EXPECT_EQ(p.options.type, -1);
    EXPECT_EQ(p.options.op, -1);
    EXPECT_EQ(p.options.root, 0); // as its models read it
}

TEST(PerfOptions, RefusesWithStatus255)
{
    for (const char *line : {"-b 1Q", "-e x", "-i -1", "-b 2M -e 1M", "-t 0", "-g 0", "-g 99999", "-D 1",
                             "-D 1 -R 1", "-b 8 -e 64 -i 0", "-n -1", "-m 0", "-z 4", "-a 4", "-R 3",
                             "--procs -2", "-n 99999999999", "-r 99999999999"}) {
        Parsed p = Parse(line);
        EXPECT_EQ(p.answer, PERF_PARSE_EXIT) << line;
        EXPECT_EQ(p.status, 255) << line;
        EXPECT_NE(p.err, "") << line;
    }
    EXPECT_EQ(Parse("-b 1Q").err, "invalid size specified for 'minbytes'\n");
}

TEST(PerfOptions, UnknownOptionsAndHelpExitWith0)
{
    for (const char *line : {"-h", "--help", "-k", "--bogus"}) {
        Parsed p = Parse(line);
        EXPECT_EQ(p.answer, PERF_PARSE_EXIT) << line;
        EXPECT_EQ(p.status, 0) << line;
        EXPECT_NE(p.out.find("-b,--minbytes"), std::string::npos) << line;
    }
    EXPECT_EQ(Parse("-k").out.rfind("invalid option 'k'\n", 0), 0u);
    EXPECT_NE(Parse("--help").out.find("RONDO_PERF_INJECT"), std::string::npos);
}

// Whatever -o and -d accept is in the help, word for word.
TEST(PerfOptions, HelpListsEveryName)
{
    std::string help = Parse("--help").out, list = "operations (-o):";
    for (const char *name : perf_op_names)
        list += std::string(" ") + name;
    EXPECT_NE(help.find(list + ";"), std::string::npos) << help;
    list = "types (-d):";
    for (const perf_type &type : perf_types)
        list += std::string(" ") + type.name;
    EXPECT_NE(help.find(list + ";"), std::string::npos) << help;
    EXPECT_NE(help.find("the run goes on with sum or float"), std::string::npos) << help;
}

TEST(PerfOptions, UnknownNamesFallBackAloud)
{
    Parsed p = Parse("-d float128 -o xor");
    ASSERT_EQ(p.answer, PERF_PARSE_RUN);
    EXPECT_STREQ(perf_types[p.options.type].name, "float");
    EXPECT_EQ(p.options.op, PERF_SUM);
    EXPECT_EQ(p.out,
              "invalid type float128, defaulting to float .. \ninvalid op xor, defaulting to sum .. \n");
}

TEST(PerfOptions, CombinationsThatLoseAFeatureWarn)
{
    Parsed p = Parse("-I 1 -G 1");
    EXPECT_EQ(p.answer, PERF_PARSE_RUN);
    EXPECT_FALSE(p.options.per_iteration);
    EXPECT_NE(p.out.find("Warning"), std::string::npos);
    p = Parse("-z 3 -G 1");
    EXPECT_EQ(p.options.blocking, 0);
    for (const char *line : {"-K 2", "-I 1 -K 20", "-I 1 -K -1"}) {
        p = Parse(line);
        EXPECT_EQ(p.options.per_iteration_skip, 0) << line;
        EXPECT_NE(p.out.find("Warning"), std::string::npos) << line;
    }
    p = Parse("-V 500");
    EXPECT_EQ(p.options.device_ctas, 16);
}

// A limit that was misspelt would be one that every run keeps.
TEST(PerfOptions, NumbersInVariablesAreReadOrRefused)
{
    struct {
        const char *name, *good;
        std::vector<const char *> bad;
    } rows[] = {{"NCCL_TESTS_MIN_BW", "2.5", {"fast", "2,5", "10GB", "-1", "nan", "inf"}},
                {"NCCL_TESTS_DEVICE", "3", {"gpu3", "-1", "3x", "1e9"}}};
    for (auto &row : rows) {
        setenv(row.name, row.good, 1);
        Parsed p = Parse("");
        EXPECT_EQ(p.answer, PERF_PARSE_RUN) << row.name;
        EXPECT_EQ(p.options.min_bus_bandwidth, row.name == std::string("NCCL_TESTS_MIN_BW") ? 2.5 : -1);
        EXPECT_EQ(p.options.first_device, row.name == std::string("NCCL_TESTS_DEVICE") ? 3 : -1);
        for (const char *bad : row.bad) {
            setenv(row.name, bad, 1);
            p = Parse("");
            EXPECT_EQ(p.answer, PERF_PARSE_EXIT) << bad;
            EXPECT_EQ(p.status, 6) << bad;
            EXPECT_NE(p.err.find(row.name), std::string::npos) << bad;
        }
        setenv(row.name, "", 1); // as if it were not set
        EXPECT_EQ(Parse("").answer, PERF_PARSE_RUN) << row.name;
        unsetenv(row.name);
    }
}

TEST(PerfOptions, InjectionIsReadOrRefused)
{
    setenv("RONDO_PERF_INJECT", "3:0x10", 1);
    Parsed p = Parse("");
    EXPECT_EQ(p.answer, PERF_PARSE_RUN);
    EXPECT_EQ(p.options.inject_rank, 3);
    EXPECT_EQ(p.options.inject_offset, 16u);
    for (const char *bad : {"", "1", "1:", ":1", "x:1", "-1:1", "1:x", "1:2y"}) {
        setenv("RONDO_PERF_INJECT", bad, 1);
        p = Parse("");
        EXPECT_EQ(p.answer, PERF_PARSE_EXIT) << bad;
        EXPECT_EQ(p.status, 6) << bad;
        EXPECT_NE(p.err.find("RONDO_PERF_INJECT"), std::string::npos) << bad;
    }
    unsetenv("RONDO_PERF_INJECT");
}
