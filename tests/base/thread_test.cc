// The library's own threads.
#include "base/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <sched.h>

namespace
{

struct Seen {
    char name[16];
    bool is_term_blocked, is_segv_blocked;
};

void Look(void *argument)
{
    auto *seen = static_cast<Seen *>(argument);
    sigset_t mask;
    pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    seen->is_term_blocked = sigismember(&mask, SIGTERM) == 1;
    seen->is_segv_blocked = sigismember(&mask, SIGSEGV) == 1;
}

TEST(Thread, HasItsNameAndTakesNoSignals)
{
    Seen seen{};
    rondo_thread thread;
    ASSERT_EQ(rondo_thread_start("rondo-0123456789", 16384, Look, &seen, &thread), ncclSuccess);
    rondo_thread_join(&thread);
    EXPECT_STREQ(seen.name, "rondo-012345678") << "cut at 15 characters";
    EXPECT_TRUE(seen.is_term_blocked);
    EXPECT_FALSE(seen.is_segv_blocked) << "a blocked fault would kill without a report";
    sigset_t mine;
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    EXPECT_EQ(sigismember(&mine, SIGTERM), 0) << "the caller's mask is as before";
}

TEST(Thread, DetachedRunsToItsEnd)
{
    std::atomic<bool> is_done{false};
    rondo_thread thread;
    ASSERT_EQ(rondo_thread_start(
                  "rondo-test", 0,
                  [](void *argument) { static_cast<std::atomic<bool> *>(argument)->store(true); }, &is_done,
                  &thread),
              ncclSuccess);
    rondo_thread_detach(&thread);
    while (!is_done)
        sched_yield();
}

} // namespace
