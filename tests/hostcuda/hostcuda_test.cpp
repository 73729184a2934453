// hostcuda_test.cpp - running helper programs.
#include "hostcuda_test.h"

#include <cstdio>
#include <sys/wait.h>

std::string RunProgram(const std::string &environment, const std::string &command)
{
    std::string output, line = "env " + environment + " timeout 60 sh -c '" + command + "' 2>&1";
    FILE *pipe = popen(line.c_str(), "r");
    if (!pipe)
        return "popen failed";
    char buffer[4096];
    for (size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
        output.append(buffer, got);
    int status = pclose(pipe);
    if (WIFEXITED(status))
        output += "exit " + std::to_string(WEXITSTATUS(status)) + "\n";
    else
        output += "signal " + std::to_string(WTERMSIG(status)) + "\n";
    return output;
}
