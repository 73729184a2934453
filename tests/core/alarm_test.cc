// What a program is told that has asked for hardly any log, or for none: its version, and where it stands still.
#include "ranks.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace
{

const int kEnvironment =
    setenv("RONDO_STALL_SECONDS", "1", 1) + unsetenv("NCCL_DEBUG") + unsetenv("NCCL_DEBUG_FILE");

// What this process writes to stderr from here on.
class Stderr
{
  public:
    Stderr()
    {
        int fd = mkstemp(path_);
        dup2(fd, STDERR_FILENO);
        close(fd);
    }
    ~Stderr()
    {
        unlink(path_);
    }
    std::string Text() const
    {
        std::ifstream file(path_);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }

  private:
    char path_[40] = "/tmp/rondo-stderr-XXXXXX";
};

// Rank 1 calls seconds after the others.
std::string Late(Party &p, unsigned seconds)
{
    std::vector<float> data(64, 1.0f);
    if (p.first == 1)
        sleep(seconds);
    return p.Alone([&](int rank, ncclComm_t comm) {
        return Outcome(
            rank, comm,
            ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm, nullptr));
    });
}

// One line a process, whatever the level, however many communicators it makes; and none that is not asked for.
TEST(Alarm, TheVersionIsToldOnce)
{
    int version = 0;
    ASSERT_EQ(ncclGetVersion(&version), ncclSuccess);
    std::string line = "NCCL version " + std::to_string(version / 10000) + "." +
                       std::to_string(version / 100 % 100) + "." + std::to_string(version % 100) +
                       " (Rondo)\n";
    for (const char *level : {"", "VERSION", "WARN", "INFO"}) {
        ExpectSuccess(RunRanks(Mode::kProcesses, 2, [&](Party &p) {
            setenv("NCCL_DEBUG", level, 1);
            ncclResetDebugInit();
            Stderr log;
            std::string outcome = p.Init();
            if (outcome.empty())
                outcome = p.Destroy();
            ncclUniqueId id;
            ncclComm_t comm;
            if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess ||
                ncclCommDestroy(comm) != ncclSuccess)
                outcome = "the second communicator";
            std::string text = log.Text();
            size_t first = text.find("NCCL version");
            bool is_right = *level
                                ? first != std::string::npos && text.compare(first, line.size(), line) == 0 &&
                                      (first == 0 || text[first - 1] == '\n') &&
                                      text.find("NCCL version", first + 1) == std::string::npos
                                : text.empty();
            return outcome.empty() && !is_right ? std::string(level) + ": stderr has: " + text : outcome;
        }));
    }
}

TEST(Alarm, AStallIsReportedWithoutNcclDebug)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [](Party &p) {
        Stderr log;
        std::string outcome = p.Init();
        if (outcome.empty())
            outcome = Late(p, 3);
        std::string text = log.Text();
        if (outcome.empty() && p.first != 1 &&
            (text.find("NCCL WARN AllReduce(") == std::string::npos ||
             text.find("has not moved") == std::string::npos || text.find("rank 1 (") == std::string::npos))
            outcome = "stderr has: " + text;
        return outcome.empty() ? p.Destroy() : outcome;
    }));
}

TEST(Alarm, NothingIsSaidWhenNothingStalls)
{
    ExpectSuccess(RunRanks(Mode::kProcesses, 3, [](Party &p) {
        Stderr log;
        std::string outcome = p.Init();
        if (outcome.empty())
            outcome = Late(p, 0);
        if (outcome.empty())
            outcome = p.Destroy();
        return outcome.empty() && !log.Text().empty() ? "stderr has: " + log.Text() : outcome;
    }));
}

} // namespace
