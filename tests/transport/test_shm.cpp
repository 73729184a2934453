// The shm transport between real processes: a forked child is the peer, with its own arena and descriptor
// service.
#include "fake_device.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "mailbox_blocks.h"
#include "transport/descriptor_service.h"
#include "transport/mailbox.h"

#include <gtest/gtest.h>

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace
{

const rondo_layout kLayout = {4, 2, 4096, 2048};
const uint64_t kOffset = 64 * 1024; // of the mailbox in each arena

int OpenDescriptors()
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

uint64_t Soon(unsigned ms)
{
    return rondo_clock_ns() + ms * 1000000ull;
}

rondo_peer Describe(int rank, int device, uint32_t service)
{
    rondo_peer peer = {};
    peer.rank = rank;
    peer.device = device;
    peer.host = rondo_host_hash();
    peer.process = rondo_process_nonce();
    peer.pid = getpid();
    peer.service = service;
    peer.local_mailbox = (uint64_t)(uintptr_t)(fake::Arena(device) + kOffset);
    peer.mailbox.process = peer.process;
    peer.mailbox.device = device;
    peer.mailbox.offset = kOffset;
    peer.mailbox.bytes = rondo_mailbox_bytes(&kLayout);
    peer.mailbox.arena_bytes = fake::kArenaBytes;
    return peer;
}

// A child process with a service and, on each device, a mailbox: ranks 1 and 2. It serves until told to stop.
class Child
{
  public:
    explicit Child(bool serves = true)
    {
        int up[2], down[2];
        EXPECT_EQ(pipe(up) | pipe(down), 0);
        pid = fork();
        if (pid == 0) {
            close(up[0]);
            close(down[1]);
            Live(up[1], down[0], serves);
            _exit(0);
        }
        close(up[1]);
        close(down[0]);
        from_ = up[0];
        to_ = down[1];
        EXPECT_EQ(read(from_, ranks, sizeof(ranks)), (ssize_t)sizeof(ranks));
    }

    ~Child()
    {
        close(to_);
        close(from_);
        if (pid > 0) {
            kill(pid, SIGCONT);
            waitpid(pid, nullptr, 0);
        }
    }

    void Kill()
    {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        pid = -1;
    }

    // A byte of its arena, as the child itself sees it.
    unsigned char Peek(int device, uint64_t offset)
    {
        uint64_t question[2] = {(uint64_t)device, offset};
        unsigned char answer = 0;
        EXPECT_EQ(write(to_, question, sizeof(question)), (ssize_t)sizeof(question));
        EXPECT_EQ(read(from_, &answer, 1), 1);
        return answer;
    }

    pid_t pid;
    rondo_peer ranks[2];

  private:
    static void Live(int to, int from, bool serves)
    {
        uint32_t service = 0;
        int fd = -1;
        if (rondo_descriptor_service_start(&service, &fd) != ncclSuccess)
            _exit(1);
        rondo_peer own[2] = {Describe(1, 0, service), Describe(2, 1, service)};
        for (int device = 0; device < 2; device++)
            fake::Arena(device)[kOffset + 200] = (unsigned char)(40 + device);
        if (write(to, own, sizeof(own)) != (ssize_t)sizeof(own))
            _exit(2);
        for (;;) {
            pollfd waiting[2] = {{from, POLLIN, 0}, {serves ? fd : -1, POLLIN, 0}};
            poll(waiting, 2, -1);
            if (waiting[1].revents)
                rondo_descriptor_service_poll();
            if (waiting[0].revents) {
                uint64_t question[2];
                if (read(from, question, sizeof(question)) != (ssize_t)sizeof(question))
                    return; // the parent is done
                if (write(to, &fake::Arena((int)question[0])[question[1]], 1) != 1)
                    return;
            }
        }
    }

    int from_, to_;
};

class Shm : public testing::Test
{
  protected:
    void SetUp() override
    {
        int count = 0;
        const rondo_transport_ops *const *list = rondo_transport_list(&count);
        for (int i = 0; i < count; i++) {
            if (strcmp(list[i]->name, "shm") == 0)
                shm = list[i];
        }
        ASSERT_NE(shm, nullptr);
        fake::FailAfter(-1);
        fake::Prepare();
        self = Describe(0, 0, 1);
    }

    rondo_reach *Attach(const rondo_peer &peer)
    {
        rondo_reach *reach = nullptr;
        EXPECT_EQ(shm->attach(&self, &peer, Soon(20000), &reach), ncclSuccess) << rondo_error_last();
        return reach;
    }

    const rondo_transport_ops *shm = nullptr;
    rondo_peer self;
};

TEST_F(Shm, BothSidesSeeTheSameMailbox)
{
    Child child;
    rondo_reach *reach = Attach(child.ranks[0]);
    ASSERT_NE(reach, nullptr);
    EXPECT_EQ(shm->score(&self, &child.ranks[0]), 50u);
    unsigned char *page = (unsigned char *)shm->page(reach, &child.ranks[0]);
    ASSERT_NE(page, nullptr);
    EXPECT_EQ(page[200], 40);
    EXPECT_NE(shm->board(reach), nullptr);
    const rondo_connection connections[] = {{RONDO_CONNECTION_PAIR, RONDO_PROTOCOL_SIMPLE, 0, 0, 0},
                                            {RONDO_CONNECTION_RING, RONDO_PROTOCOL_SIMPLE, 0, 0, 0},
                                            {RONDO_CONNECTION_RING, RONDO_PROTOCOL_SIMPLE, 1, 0, 0}};
    for (int i = 0; i < 3; i++) {
        rondo_end to = {}, from = {};
        ASSERT_EQ(shm->connect(reach, &kLayout, &self, &child.ranks[0], RONDO_SEND, &connections[i], &to),
                  ncclSuccess);
        ASSERT_EQ(shm->connect(reach, &kLayout, &self, &child.ranks[0], RONDO_RECV, &connections[i], &from),
                  ncclSuccess);
        rondo_mailbox_block there = rondo_mailbox_block_at(&kLayout, connections[i].kind,
                                                           connections[i].protocol, connections[i].channel);
        to.slots[7] = (unsigned char)(90 + i);
        EXPECT_EQ(child.Peek(0, kOffset + there.slots + 7), 90 + i);
        __atomic_store_n(&to.posted->value, 33, __ATOMIC_RELEASE);
        EXPECT_EQ(child.Peek(0, kOffset + there.posted), 33);
        __atomic_store_n(&from.consumed->value, 44, __ATOMIC_RELEASE);
        EXPECT_EQ(child.Peek(0, kOffset + there.consumed), 44);
        EXPECT_EQ((unsigned char *)to.consumed >= fake::Arena(0) &&
                      (unsigned char *)to.consumed < fake::Arena(0) + fake::kArenaBytes,
                  true);
        EXPECT_EQ((unsigned char *)from.slots >= fake::Arena(0) &&
                      (unsigned char *)from.slots < fake::Arena(0) + fake::kArenaBytes,
                  true);
    }
    shm->release(reach);
}

TEST_F(Shm, AProcessIsMappedOnceForAnyNumberOfCommunicators)
{
    Child child;
    int before = OpenDescriptors();
    std::vector<rondo_reach *> reaches;
    for (int i = 0; i < 100; i++) {
        reaches.push_back(Attach(child.ranks[0]));
        ASSERT_EQ(reaches.back(), reaches.front());
    }
    EXPECT_EQ(fake::LiveMappings(), 2) << "arena and switchboard";
    EXPECT_EQ(OpenDescriptors(), before + 2) << "the pidfd and the life pipe";
    rondo_reach *second = Attach(child.ranks[1]);
    EXPECT_NE(second, reaches[0]);
    EXPECT_EQ(((unsigned char *)shm->page(second, &child.ranks[1]))[200], 41)
        << "the arena of the other device";
    EXPECT_EQ(fake::LiveMappings(), 3) << "one more arena";
    EXPECT_EQ(OpenDescriptors(), before + 2);
    EXPECT_EQ(shm->board(second), shm->board(reaches[0]));
    EXPECT_EQ(shm->death(second), shm->death(reaches[0]));
    EXPECT_EQ(shm->life(second), shm->life(reaches[0]));
    for (rondo_reach *reach : reaches)
        shm->release(reach);
    EXPECT_EQ(fake::LiveMappings(), 2) << "the second is still in use";
    EXPECT_EQ(((unsigned char *)shm->page(second, &child.ranks[1]))[200], 41);
    shm->release(second);
    EXPECT_EQ(fake::LiveMappings(), 0);
    EXPECT_EQ(OpenDescriptors(), before);
    shm->release(Attach(child.ranks[0])); // and again
    EXPECT_EQ(fake::LiveMappings(), 0);
    EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(Shm, DeathIsSeenAndMemoryStaysMapped)
{
    Child child;
    rondo_reach *reach = Attach(child.ranks[0]);
    pollfd waiting = {shm->death(reach), POLLIN, 0}, listening = {shm->life(reach), POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 0), 0);
    EXPECT_EQ(poll(&listening, 1, 0), 0);
    child.Kill();
    EXPECT_EQ(poll(&waiting, 1, 20000), 1);
    EXPECT_EQ(poll(&listening, 1, 20000), 1);
    EXPECT_EQ(listening.revents, POLLHUP);
    EXPECT_EQ(((unsigned char *)shm->page(reach, &child.ranks[0]))[200], 40);
    shm->release(reach);
    EXPECT_EQ(shm->attach(&self, &child.ranks[0], Soon(20000), &reach), ncclRemoteError)
        << "nobody is there any more";
    EXPECT_EQ(fake::LiveMappings(), 0);
}

TEST_F(Shm, AStoppedPeerIsATimeoutAndLeavesNothing)
{
    Child child(false);
    int before = OpenDescriptors();
    rondo_reach *reach = nullptr;
    EXPECT_EQ(shm->attach(&self, &child.ranks[0], Soon(50), &reach), ncclTimeout);
    EXPECT_EQ(reach, nullptr);
    EXPECT_EQ(OpenDescriptors(), before);
    EXPECT_EQ(fake::LiveMappings(), 0);
}

TEST_F(Shm, ThreadsThatWantTheSamePeerShareIt)
{
    Child child;
    std::vector<rondo_reach *> reaches(8);
    std::vector<std::thread> threads;
    for (rondo_reach *&reach : reaches) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20; i++) {
                if (reach)
                    shm->release(reach);
                reach = nullptr;
                EXPECT_EQ(shm->attach(&self, &child.ranks[i % 2], Soon(20000), &reach), ncclSuccess)
                    << rondo_error_last();
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    for (rondo_reach *reach : reaches) {
        EXPECT_EQ(reach, reaches[0]);
        shm->release(reach);
    }
    EXPECT_EQ(fake::LiveMappings(), 0);
}

TEST_F(Shm, ThreadsThatWaitForAnothersAttemptHaveDeadlinesOfTheirOwn)
{
    Child child(false);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++) {
        threads.emplace_back([&, i] {
            rondo_reach *reach = nullptr;
            EXPECT_EQ(shm->attach(&self, &child.ranks[0], Soon(50 + 100 * i), &reach), ncclTimeout);
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(fake::LiveMappings(), 0);
}

TEST_F(Shm, FailedAttachLeavesNothingBehind)
{
    Child child;
    int before = OpenDescriptors();
    for (int nth = 0;; nth++) {
        rondo_reach *reach = nullptr;
        fake::FailAfter(nth);
        ncclResult_t rc = shm->attach(&self, &child.ranks[0], Soon(20000), &reach);
        bool has_failed = fake::HasFailed();
        fake::FailAfter(-1);
        if (!has_failed) {
            EXPECT_EQ(rc, ncclSuccess);
            EXPECT_GE(nth, 2) << "arena and switchboard can fail";
            shm->release(reach);
            break;
        }
        EXPECT_NE(rc, ncclSuccess);
        EXPECT_EQ(reach, nullptr);
        EXPECT_EQ(fake::LiveMappings(), 0) << "call " << nth;
        EXPECT_EQ(OpenDescriptors(), before) << "call " << nth;
    }
    EXPECT_EQ(fake::LiveMappings(), 0);
    EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(Shm, ARecordThatLiesIsRefused)
{
    Child child;
    rondo_reach *reach = Attach(child.ranks[0]);
    rondo_end end = {};
    struct Lie {
        uint64_t offset, bytes;
    };
    for (const Lie &lie :
         {Lie{kOffset + 64, UINT64_MAX}, Lie{fake::kArenaBytes, UINT64_MAX},
          Lie{UINT64_MAX - 127, UINT64_MAX}, Lie{kOffset, 4096}, Lie{fake::kArenaBytes - 4096, UINT64_MAX}}) {
        rondo_peer liar = child.ranks[0];
        const rondo_connection ring = {RONDO_CONNECTION_RING, RONDO_PROTOCOL_SIMPLE, 0, 0, 0};
        liar.mailbox.offset = lie.offset;
        liar.mailbox.bytes = lie.bytes;
        EXPECT_EQ(shm->connect(reach, &kLayout, &self, &liar, RONDO_SEND, &ring, &end), ncclInternalError);
        EXPECT_EQ(shm->page(reach, &liar), nullptr);
    }
    shm->release(reach);
    rondo_peer liar = child.ranks[0];
    liar.mailbox.arena_bytes *= 2;
    EXPECT_NE(shm->attach(&self, &liar, Soon(20000), &reach), ncclSuccess);
    EXPECT_EQ(fake::LiveMappings(), 0);
}

TEST_F(Shm, RanksOfOneProcessOrOfTwoHostsAreNotForIt)
{
    rondo_reach *reach = nullptr;
    rondo_peer peer = self;
    EXPECT_NE(shm->attach(&self, &peer, 0, &reach), ncclSuccess);
    peer.process++;
    peer.host++;
    EXPECT_NE(shm->attach(&self, &peer, 0, &reach), ncclSuccess);
    EXPECT_EQ(reach, nullptr);
}

} // namespace
