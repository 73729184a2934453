// Runs that cannot succeed: they end, in time, with the right exit status and a text that names the cause.
#include "run_perf.h"

#include <csignal>
#include <dirent.h>

namespace
{

// Live processes (not zombies) with a word on their command lines.
int CountProcesses(const std::string &word)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    while (dirent *entry = readdir(proc)) {
        std::ifstream file(std::string("/proc/") + entry->d_name + "/cmdline");
        std::stringstream text;
        text << file.rdbuf();
        count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && Has(text.str(), word);
    }
    closedir(proc);
    return count;
}

// Start a run that would take for ever, with a size that no other process has on its command line.
pid_t StartEndless(const std::string &word, const char *limit = "0")
{
    pid_t pid = fork();
    if (pid == 0) {
        if (chdir(PERF_BIN) != 0 || !freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(1);
        execl("./all_reduce_perf", "all_reduce_perf", "--procs", "3", "-N", "0", "-T", limit, "-b",
              word.c_str(), "-e", word.c_str(), nullptr);
        _exit(1);
    }
    for (int i = 0; i < 200 && CountProcesses(word) < 4; i++)
        usleep(20000);
    EXPECT_EQ(CountProcesses(word), 4);
    usleep(300000);
    return pid;
}

pid_t AChildOf(pid_t parent)
{
    DIR *proc = opendir("/proc");
    pid_t victim = 0;
    while (dirent *entry = readdir(proc)) {
        std::ifstream file(std::string("/proc/") + entry->d_name + "/stat");
        std::string text;
        std::getline(file, text);
        size_t close = text.rfind(')');
        if (close != std::string::npos && atoi(text.c_str() + close + 4) == parent)
            victim = atoi(entry->d_name);
    }
    closedir(proc);
    return victim;
}

void ExpectAllGone(const std::string &word)
{
    for (int i = 0; i < 1000 && CountProcesses(word) > 0; i++)
        usleep(20000);
    EXPECT_EQ(CountProcesses(word), 0);
}

} // namespace

TEST(PerfFailures, ExitStatusesAndTexts)
{
    struct {
        const char *command;
        int status;
        const char *text;
    } rows[] = {
        {"all_reduce_perf -b 1Q", 255, "invalid size specified for 'minbytes'"},
        {"all_reduce_perf -D 1", 255, "-R 2"},
        {"all_reduce_perf --bogus", 0, "invalid option"},
        {"all_reduce_perf --help", 0, "--procs"},
        {"RONDO_CPU_DEVICES=2 all_reduce_perf -g 4 -b 8 -e 8", 5, "devices 0 to 3, there are 2"},
        {"RONDO_PERF_INJECT=x all_reduce_perf -b 8 -e 8", 6, "RONDO_PERF_INJECT"},
        {"PMI_RANK=3 PMI_SIZE=2 all_reduce_perf -b 8 -e 8", 6, "PMI_RANK=3"},
        {"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=2 all_reduce_perf -b 8 -e 8", 6, "RONDO_PERF_RENDEZVOUS"},
        {"PMI_RANK=0 PMI_SIZE=2 RONDO_PERF_TIMEOUT=1 all_reduce_perf -b 8 -e 8", 4, "for rank 1"},
        {"broadcast_perf -g 2 -r 7 -b 8 -e 8 -n 1", 3, "ncclBroadcast"},
    };
    for (auto &row : rows) {
        Outcome run = RunShell(row.command, 30);
        EXPECT_EQ(run.status, row.status) << row.command << "\n" << run.text;
        EXPECT_TRUE(Has(run.text, row.text)) << row.command << "\n" << run.text;
    }
}

// What the library or the device does not have is passed on, never papered over.
TEST(PerfFailures, MissingFeaturesAreNamed)
{
    struct {
        const char *option, *value;
        int status;
        const char *text;
    } rows[] = {{"-G", "2", 5, "cudaStreamBeginCapture"},
                {"-R", "1", 3, "ncclCommRegister"},
                {"-R", "2", 3, "ncclCommWindowRegister"},
                {"-D", "1 -R 2", 5, "-D 1"}};
    std::string help = RunShell("all_reduce_perf --help").text;
    for (auto &row : rows) {
        Outcome run =
            RunShell(std::string("all_reduce_perf -g 2 -b 8 -e 8 -n 1 ") + row.option + " " + row.value);
        EXPECT_EQ(run.status, row.status) << run.text;
        EXPECT_TRUE(Has(run.text, row.text) && Has(run.text, "Test ")) << run.text;
        size_t line = help.find(std::string("\n  ") + row.option + ","), end = help.find('\n', line + 1);
        ASSERT_NE(line, std::string::npos) << help;
        EXPECT_TRUE(Has(help.substr(line, end - line), "exit " + std::to_string(row.status))) << help;
    }
}

TEST(PerfFailures, AKilledRankEndsTheRun)
{
    const std::string word = std::to_string(4000000 + getpid());
    pid_t parent = StartEndless(word);
    pid_t victim = AChildOf(parent);
    ASSERT_GT(victim, 0);
    kill(victim, SIGKILL);
    int state = 0;
    ASSERT_EQ(waitpid(parent, &state, 0), parent);
    EXPECT_TRUE(WIFEXITED(state));
    EXPECT_NE(WEXITSTATUS(state), 0);
    ExpectAllGone(word);
}

TEST(PerfFailures, SignalsGoOnToTheRanks)
{
    const std::string word = std::to_string(8000000 + getpid());
    pid_t parent = StartEndless(word);
    kill(parent, SIGTERM);
    int state = 0;
    ASSERT_EQ(waitpid(parent, &state, 0), parent);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 128 + SIGTERM);
    ExpectAllGone(word);
}

TEST(PerfFailures, NoRankOutlivesAKilledLauncher)
{
    const std::string word = std::to_string(12000000 + getpid());
    pid_t parent = StartEndless(word);
    kill(parent, SIGKILL);
    int state = 0;
    ASSERT_EQ(waitpid(parent, &state, 0), parent);
    ExpectAllGone(word);
}

// A rank that stands still is noticed by -T, wherever the others are when it does.
TEST(PerfFailures, AStoppedRankEndsInATimeout)
{
    const std::string word = std::to_string(16000000 + getpid());
    pid_t parent = StartEndless(word, "1");
    pid_t victim = AChildOf(parent);
    ASSERT_GT(victim, 0);
    kill(victim, SIGSTOP);
    int state = 0;
    ASSERT_EQ(waitpid(parent, &state, 0), parent);
    EXPECT_TRUE(WIFEXITED(state));
    EXPECT_EQ(WEXITSTATUS(state), 4);
    ExpectAllGone(word);
}
