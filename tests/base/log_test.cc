// Levels, subsystems, files and whole lines.
#include "base/error.h"
#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <regex.h>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

// POSIX, because gcc's warnings and std::regex do not get on under sanitizers.
bool Matches(const std::string &text, const char *pattern)
{
    regex_t compiled;
    EXPECT_EQ(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0) << pattern;
    bool is_match = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&compiled);
    return is_match;
}

class Log : public testing::Test
{
  protected:
    void SetUp() override
    {
        char path[] = "/tmp/rondo-log-XXXXXX";
        ASSERT_NE(mkdtemp(path), nullptr);
        folder_ = path;
    }
    void TearDown() override
    {
        Set(nullptr, nullptr, nullptr);
        EXPECT_EQ(std::system(("rm -r " + folder_).c_str()), 0);
    }
    static void SetOne(const char *name, const char *value)
    {
        if (value)
            setenv(name, value, 1);
        else
            unsetenv(name);
    }
    static void Set(const char *level, const char *subsystems, const char *file)
    {
        SetOne("NCCL_DEBUG", level);
        SetOne("NCCL_DEBUG_SUBSYS", subsystems);
        SetOne("NCCL_DEBUG_FILE", file);
        rondo_log_reset();
    }
    static std::string Read(const std::string &path)
    {
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }

    std::string folder_;
};

TEST_F(Log, Levels)
{
    const char *names[] = {"", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
    for (int set = RONDO_LOG_NONE; set <= RONDO_LOG_TRACE; set++) {
        Set(names[set], "ALL", nullptr);
        for (int line = RONDO_LOG_VERSION; line <= RONDO_LOG_TRACE; line++)
            EXPECT_EQ(rondo_log_enabled(static_cast<rondo_log_level>(line), RONDO_LOG_INIT), line <= set)
                << names[set] << line;
        EXPECT_TRUE(rondo_log_enabled(RONDO_LOG_ALARM, 0));
    }
    Set("info", nullptr, nullptr);
    EXPECT_TRUE(rondo_log_enabled(RONDO_LOG_INFO, RONDO_LOG_INIT)) << "any case";
}

TEST_F(Log, AnUnknownLevelIsToldOnce)
{
    testing::internal::CaptureStderr();
    Set("LOUD", nullptr, nullptr);
    EXPECT_FALSE(rondo_log_enabled(RONDO_LOG_WARN, 0));
    EXPECT_FALSE(rondo_log_enabled(RONDO_LOG_WARN, 0));
    std::string lines = testing::internal::GetCapturedStderr();
    EXPECT_NE(lines.find("NCCL_DEBUG=\"LOUD\""), std::string::npos);
    EXPECT_EQ(lines.find('\n'), lines.size() - 1);
}

TEST_F(Log, Subsystems)
{
    struct {
        const char *list;
        unsigned on, off;
    } rows[] = {
        {nullptr, RONDO_LOG_INIT | RONDO_LOG_BOOTSTRAP | RONDO_LOG_ENV,
         RONDO_LOG_COLL | RONDO_LOG_NET | RONDO_LOG_ALLOC},
        {"COLL", RONDO_LOG_COLL, RONDO_LOG_INIT | RONDO_LOG_P2P},
        {"coll,Net", RONDO_LOG_COLL | RONDO_LOG_NET, RONDO_LOG_INIT},
        {"^COLL,NET", RONDO_LOG_INIT | RONDO_LOG_P2P | RONDO_LOG_DESTROY, RONDO_LOG_COLL | RONDO_LOG_NET},
        {"ALL", RONDO_LOG_INIT | RONDO_LOG_DESTROY | RONDO_LOG_CALL, 0},
        {"^ALL", 0, RONDO_LOG_INIT | RONDO_LOG_DESTROY},
        {"NVLS,RAS,nonsense,,", 0, RONDO_LOG_INIT | RONDO_LOG_COLL},
        {"CO", 0, RONDO_LOG_COLL},
    };
    for (const auto &row : rows) {
        Set("INFO", row.list, nullptr);
        for (unsigned bit = 1; bit <= RONDO_LOG_DESTROY; bit <<= 1) {
            if ((row.on | row.off) & bit) {
                EXPECT_EQ(rondo_log_enabled(RONDO_LOG_INFO, bit), (row.on & bit) != 0)
                    << (row.list ? row.list : "") << " " << bit;
            }
        }
        EXPECT_TRUE(rondo_log_enabled(RONDO_LOG_WARN, 0)) << "WARN ignores subsystems";
    }
}

TEST_F(Log, ALineHasItsPrefixAndStaysOne)
{
    Set("WARN", nullptr, nullptr);
    testing::internal::CaptureStderr();
    errno = EPERM;
    rondo_log(RONDO_LOG_WARN, 0, "a\nb\033[31m %d", 7);
    EXPECT_EQ(errno, EPERM);
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_INIT, "not wanted");
    std::string lines = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(Matches(lines, "^[^ :]+:[0-9]+:[0-9]+ NCCL WARN a b \\[31m 7\n$")) << lines;
}

TEST_F(Log, VersionLinesAreTheirTextAlone)
{
    for (const char *level : {"VERSION", "WARN", "TRACE"}) {
        Set(level, "NET", nullptr);
        testing::internal::CaptureStderr();
        rondo_log(RONDO_LOG_VERSION, 0, "NCCL version %d", 2);
        EXPECT_EQ(testing::internal::GetCapturedStderr(), "NCCL version 2\n") << level;
    }
}

TEST_F(Log, ErrorsAreWarnings)
{
    Set("WARN", nullptr, nullptr);
    testing::internal::CaptureStderr();
    EXPECT_EQ(rondo_fail(ncclInternalError, "broken thing"), ncclInternalError);
    std::string lines = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(Matches(lines, "NCCL WARN broken thing \\(log_test.cc:[0-9]+\\)\n$")) << lines;
    Set(nullptr, nullptr, nullptr);
    testing::internal::CaptureStderr();
    EXPECT_EQ(rondo_fail(ncclInternalError, "broken thing"), ncclInternalError);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Log, AlarmsAreWrittenWhateverTheLevel)
{
    for (const char *level : {"", "VERSION", "WARN", "TRACE"}) {
        Set(level, "NET", nullptr);
        testing::internal::CaptureStderr();
        rondo_log(RONDO_LOG_ALARM, RONDO_LOG_INIT, "look here");
        std::string lines = testing::internal::GetCapturedStderr();
        EXPECT_TRUE(Matches(lines, "^[^ :]+:[0-9]+:[0-9]+ NCCL WARN look here\n$")) << level << lines;
    }
    Set("WARN", nullptr, (folder_ + "/alarm").c_str());
    rondo_log(RONDO_LOG_ALARM, 0, "filed");
    EXPECT_NE(Read(folder_ + "/alarm").find("WARN filed\n"), std::string::npos);
    testing::internal::CaptureStderr();
    Set(nullptr, nullptr, nullptr);
    rondo_log(RONDO_LOG_ALARM, 0, "on stderr again");
    EXPECT_NE(testing::internal::GetCapturedStderr().find("on stderr again"), std::string::npos);
}

TEST_F(Log, NeverOnStdoutUnlessToldSo)
{
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Set("WARN", nullptr, nullptr);
    rondo_log(RONDO_LOG_WARN, 0, "default");
    Set("WARN", nullptr, "/dev/stdout");
    rondo_log(RONDO_LOG_WARN, 0, "asked for");
    std::string on_stdout = testing::internal::GetCapturedStdout(),
                on_stderr = testing::internal::GetCapturedStderr();
    EXPECT_EQ(on_stdout.find("default"), std::string::npos);
    EXPECT_NE(on_stdout.find("asked for"), std::string::npos);
    EXPECT_NE(on_stderr.find("default"), std::string::npos);
}

TEST_F(Log, FilePatterns)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    std::string name = host, pid = std::to_string(getpid());
    name = name.substr(0, name.find('.'));
    Set("WARN", nullptr, (folder_ + "/log.%h.%p.%%.%x").c_str());
    rondo_log(RONDO_LOG_WARN, 0, "first");
    std::string path = folder_ + "/log." + name + "." + pid + ".%.%x";
    EXPECT_NE(Read(path).find("NCCL WARN first\n"), std::string::npos) << path;
    rondo_log_reset();
    rondo_log(RONDO_LOG_WARN, 0, "second");
    EXPECT_NE(Read(path).find("first"), std::string::npos)
        << "reading the same name again must not empty the file";
    EXPECT_NE(Read(path).find("second"), std::string::npos);
    Set("WARN", nullptr, (folder_ + "/other").c_str());
    rondo_log(RONDO_LOG_WARN, 0, "third");
    EXPECT_EQ(Read(path).find("third"), std::string::npos);
    EXPECT_NE(Read(folder_ + "/other").find("third"), std::string::npos);
}

TEST_F(Log, AnUnwritableFileIsToldOnceAndStderrUsed)
{
    std::string fifo = folder_ + "/fifo", endless = "/" + std::string(5000, 'x');
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    for (const std::string &path : {std::string("/nonexistent/x"), folder_, fifo, endless}) {
        testing::internal::CaptureStderr();
        Set("WARN", nullptr, path.c_str());
        rondo_log(RONDO_LOG_WARN, 0, "one");
        rondo_log(RONDO_LOG_WARN, 0, "two");
        std::string lines = testing::internal::GetCapturedStderr();
        EXPECT_NE(lines.find("NCCL_DEBUG_FILE=\"" + path.substr(0, 100)), std::string::npos) << lines;
        EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3) << lines;
        EXPECT_NE(lines.find("two\n"), std::string::npos) << lines;
    }
}

TEST_F(Log, ThreadsDoNotMixLines)
{
    std::string path = folder_ + "/all";
    Set("WARN", nullptr, path.c_str());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([i] {
            for (int j = 0; j < 200; j++)
                rondo_log(RONDO_LOG_WARN, 0, "%s", std::string(200, static_cast<char>('a' + i)).c_str());
        });
    for (std::thread &thread : threads)
        thread.join();
    std::ifstream file(path);
    int count = 0;
    for (std::string line; std::getline(file, line); count++)
        ASSERT_TRUE(Matches(line, " NCCL WARN (a{200}|b{200}|c{200}|d{200})$")) << line;
    EXPECT_EQ(count, 800);
}

TEST_F(Log, AForkedChildCanReport)
{
    Set("WARN", nullptr, "/dev/null");
    std::atomic<bool> is_over{false};
    std::thread busy([&] {
        while (!is_over) {
            rondo_log_reset();
            EXPECT_EQ(rondo_fail(ncclInternalError, "busy"), ncclInternalError);
        }
    });
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            alarm(20); // a lock inherited from the busy thread would hang
            rondo_log_reset();
            _exit(rondo_fail(ncclTimeout, "child") == ncclTimeout ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    is_over = true;
    busy.join();
}

} // namespace
