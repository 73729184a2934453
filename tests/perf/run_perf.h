// run_perf.h - start a perf program as a user would, and take its output apart.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

struct Outcome {
    int status = -1;  // exit status; 128 + signal
    std::string text; // stdout and stderr
};

// A shell command line, of which the first word after variables is a program in build/bin. timeout ends what
// hangs.
inline Outcome RunShell(const std::string &command, int limit_s = 60)
{
    Outcome run;
    std::string line = "cd " PERF_BIN " && exec timeout -k 5 " + std::to_string(limit_s) +
                       " env PATH=.:\"$PATH\" " + command + " 2>&1";
    FILE *pipe = popen(line.c_str(), "r");
    char buffer[4096];
    size_t got;
    while ((got = fread(buffer, 1, sizeof(buffer), pipe)) > 0)
        run.text.append(buffer, got);
    int state = pclose(pipe);
    run.status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return run;
}

struct Row {
    long size, count;
    std::string type, op, root;
    double times[2], algorithm[2], bus[2];
    std::string wrong[2];
};

inline std::vector<Row> Rows(const std::string &text)
{
    std::vector<Row> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.size() < 13 || line.find_first_not_of(" 0123456789") < 12)
            continue;
        if (line.compare(38, 6, "      ") == 0 && line.size() > 44)
            line.replace(38, 6, " empty"); // hypercube's redop
        std::istringstream in(line);
        Row row;
        in >> row.size >> row.count >> row.type >> row.op >> row.root;
        for (int side = 0; side < 2; side++)
            in >> row.times[side] >> row.algorithm[side] >> row.bus[side] >> row.wrong[side];
        if (in)
            rows.push_back(row);
    }
    return rows;
}

inline bool Has(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

// Every side of every line verified and right, and said so.
inline void ExpectAllRight(const Outcome &run, size_t lines, bool in_place = true)
{
    EXPECT_EQ(run.status, 0) << run.text;
    EXPECT_TRUE(Has(run.text, "# Out of bounds values : 0 OK")) << run.text;
    std::vector<Row> rows = Rows(run.text);
    EXPECT_EQ(rows.size(), lines) << run.text;
    for (const Row &row : rows) {
        EXPECT_EQ(row.wrong[0], "0") << run.text;
        EXPECT_EQ(row.wrong[1], in_place ? "0" : "N/A") << run.text;
    }
}

// The JSON text, through a parser that accepts nothing but JSON, evaluated by a Python expression over d.
inline std::string FromJson(const std::string &path, const std::string &expression)
{
    std::string line = "python3 -c 'import json,sys\n"
                       "def no(x): raise ValueError(x)\n"
                       "d=json.load(open(sys.argv[1]),parse_constant=no)\n"
                       "print(" +
                       expression + ")' " + path + " 2>&1";
    FILE *pipe = popen(line.c_str(), "r");
    char buffer[4096] = "";
    std::string text;
    while (fgets(buffer, sizeof(buffer), pipe))
        text += buffer;
    pclose(pipe);
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    return text;
}
