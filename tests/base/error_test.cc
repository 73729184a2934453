// The last error: texts, threads, forwarding.
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace
{

TEST(Error, RecordsAndYieldsTheCode)
{
    errno = ENOENT;
    EXPECT_EQ(rondo_fail(ncclSystemError, "open %s: %d", "x", 5), ncclSystemError);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_STREQ(rondo_error_last(), "open x: 5");
}

TEST(Error, IsCutNotOverrun)
{
    std::string text(5000, 'a');
    EXPECT_EQ(rondo_fail(ncclInternalError, "%s", text.c_str()), ncclInternalError);
    EXPECT_EQ(std::string(rondo_error_last()), std::string(1023, 'a'));
}

TEST(Error, IsTheProcessesButTheCopyIsTheThreads)
{
    EXPECT_EQ(rondo_fail(ncclInvalidArgument, "first"), ncclInvalidArgument);
    const char *mine = rondo_error_last();
    std::thread([] {
        EXPECT_STREQ(rondo_error_last(), "first") << "seen from another thread";
        EXPECT_EQ(rondo_fail(ncclInvalidArgument, "second"), ncclInvalidArgument);
    }).join();
    EXPECT_STREQ(mine, "first") << "another thread's failure must not change a text already given out";
    EXPECT_STREQ(rondo_error_last(), "second");
}

TEST(Error, OwnTextIsNotAnotherThreads)
{
    rondo_fail(ncclInternalError, "mine");
    std::thread([] {
        EXPECT_STREQ(rondo_error_own(), "") << "this thread has recorded nothing";
        rondo_fail(ncclInternalError, "another's");
        EXPECT_STREQ(rondo_error_own(), "another's");
    }).join();
    EXPECT_STREQ(rondo_error_own(), "mine");
    EXPECT_STREQ(rondo_error_last(), "another's");
}

TEST(Error, IsRestatedAfterOthers)
{
    EXPECT_EQ(rondo_fail(ncclTimeout, "the cause"), ncclTimeout);
    std::string cause = rondo_error_own();
    rondo_fail(ncclInternalError, "what follows from it");
    EXPECT_EQ(rondo_error_restate(ncclTimeout, cause.c_str()), ncclTimeout);
    EXPECT_EQ(rondo_error_last(), cause);
    std::thread([&] {
        rondo_error_restate(ncclTimeout, cause.c_str());
        EXPECT_EQ(rondo_error_own(), cause);
    }).join();
}

TEST(Error, ManyThreadsNeverMixTexts)
{
    std::vector<std::thread> threads;
    for (char letter = 'a'; letter < 'e'; letter++)
        threads.emplace_back([letter] {
            std::string text(300, letter);
            for (int i = 0; i < 500; i++) {
                EXPECT_EQ(rondo_fail(ncclInternalError, "%s", text.c_str()), ncclInternalError);
                std::string seen = rondo_error_last();
                ASSERT_EQ(seen, std::string(300, seen[0]));
            }
        });
    for (std::thread &thread : threads)
        thread.join();
}

std::string forwarded;

TEST(Error, ForwardsToAnotherInstance)
{
    rondo_error_forward([](ncclResult_t code, const char *, int, const char *text) {
        EXPECT_EQ(code, ncclTimeout);
        forwarded = text;
    });
    EXPECT_EQ(rondo_fail(ncclTimeout, "over there"), ncclTimeout);
    rondo_error_forward(nullptr);
    EXPECT_EQ(rondo_fail(ncclTimeout, "here"), ncclTimeout);
    EXPECT_EQ(forwarded, "over there");
}

} // namespace
