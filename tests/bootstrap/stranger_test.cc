// Everything that may knock at a port: the job must not notice.
#include "loopback_ranks.h"

#include <atomic>
#include <mutex>
#include <poll.h>
#include <random>

namespace
{

bool WaitFor(int fd, short events, int milliseconds = 20000)
{
    pollfd entry{fd, events, 0};
    return poll(&entry, 1, milliseconds) == 1;
}

// -1: nobody took the connection in time.
int TryConnect(const rondo_address &address, int milliseconds)
{
    int fd = -1, error = 0;
    if (rondo_socket_connect_start(&address, &fd, &error) != ncclSuccess)
        return -1;
    if (error == 0 && WaitFor(fd, POLLOUT, milliseconds) && rondo_socket_connect_finish(fd) == 0)
        return fd;
    close(fd);
    return -1;
}

int Connect(const rondo_address &address)
{
    int fd = TryConnect(address, 20000);
    EXPECT_GE(fd, 0) << rondo_error_last();
    return fd;
}

// Write what the kernel takes; the other side may already have closed.
void Write(int fd, const void *data, size_t bytes)
{
    if (send(fd, data, bytes, MSG_NOSIGNAL) < 0)
        return;
}

// One of every kind at address. Those that hold on are added to held.
void Knock(const rondo_address &address, std::vector<int> *held)
{
    std::mt19937 random(4711);
    unsigned char noise[1024];
    for (unsigned char &byte : noise)
        byte = static_cast<unsigned char>(random());
    int fd = Connect(address);
    Write(fd, noise, sizeof(noise));
    close(fd);
    close(Connect(address));           // connect and close
    held->push_back(Connect(address)); // connect and hold
    rondo_hello hello{};
    ASSERT_EQ(rondo_hello_make(&hello), ncclSuccess);
    hello.magic ^= 1; // a good header but for the magic
    fd = Connect(address);
    Write(fd, &hello, sizeof(hello));
    held->push_back(fd);
    hello.magic ^= 1; // a good hello, then nothing
    fd = Connect(address);
    Write(fd, &hello, sizeof(hello));
    held->push_back(fd);
    fd = Connect(address); // a good hello, then a forged entry and a frame
    Write(fd, &hello, sizeof(hello));
    rondo_entry entry{};
    entry.purpose = RONDO_PURPOSE_ROOT;
    Write(fd, &entry, sizeof(entry));
    rondo_frame head{RONDO_FRAME_REPORT, 0, sizeof(rondo_report)};
    Write(fd, &head, sizeof(head));
    held->push_back(fd);
    fd = Connect(address); // a slow writer: one byte of a hello
    Write(fd, &hello, 1);
    held->push_back(fd);
    fd = Connect(address); // half closed
    shutdown(fd, SHUT_WR);
    held->push_back(fd);
    fd = Connect(address); // reset
    linger hard{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
}

class Stranger : public Ranks
{
  protected:
    void TearDown() override
    {
        for (int fd : held_)
            close(fd);
        Ranks::TearDown();
    }
    std::vector<int> held_;
};

TEST_F(Stranger, TheRootIsNotDisturbed)
{
    ncclUniqueId id = Id();
    Knock(RootAddress(id), &held_);
    std::thread first([&] {
        EXPECT_EQ(Join(id, {0, 2}, {3, 3}, Long()), std::vector<ncclResult_t>(2, ncclSuccess));
    });
    rondo_clock_sleep_ns(50000000);
    Knock(RootAddress(id), &held_);
    EXPECT_EQ(Join(id, {1}, {3}, Long())[0], ncclSuccess) << rondo_error_last();
    first.join();
}

TEST_F(Stranger, HundredsOfHalfOpenConnectionsCrowdNobodyOut)
{
    ncclUniqueId id = Id();
    std::atomic<bool> is_over{false};
    for (int i = 0; i < 300; i++)
        held_.push_back(Connect(RootAddress(id)));
    std::thread flood([&] { // and more all the while
        rondo_address address = RootAddress(id);
        for (int i = 0; i < 2000 && !is_over; i++) {
            int fd = TryConnect(address, 1000);
            if (fd < 0)
                break; // the root has ended
            held_.push_back(fd);
            if (held_.size() > 600) {
                close(held_.front());
                held_.erase(held_.begin());
            }
        }
    });
    EXPECT_EQ(Join(id, {0, 1, 2, 3}, {4, 4, 4, 4}, Long()), std::vector<ncclResult_t>(4, ncclSuccess))
        << rondo_error_last();
    is_over = true;
    flood.join();
}

TEST_F(Stranger, TheRanksOwnPortsAreNotDisturbed)
{
    std::mutex lock;
    Run(4, [&](int rank, rondo_bootstrap *bootstrap) {
        for (int peer = 0; peer < 4; peer++) {
            std::lock_guard<std::mutex> guard(lock);
            Knock(bootstrap->addresses[peer], &held_);
        }
        ASSERT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess) << rondo_error_last();
        // Links that do not exist yet: rank + 1 is never a dissemination's target in the first place.
        int to = (rank + 1) % 4, from = (rank + 3) % 4, value = rank * 5, got = -1;
        ASSERT_EQ(rondo_bootstrap_send(bootstrap, to, 1, &value, sizeof(value), Long()), ncclSuccess);
        ASSERT_EQ(rondo_bootstrap_recv(bootstrap, from, 1, &got, sizeof(got), Long()), ncclSuccess)
            << rondo_error_last();
        EXPECT_EQ(got, from * 5);
        ASSERT_EQ(rondo_bootstrap_barrier(bootstrap, Long()), ncclSuccess);
    });
}

TEST_F(Stranger, OneLineTellsOfThem)
{
    environment_.Set("NCCL_DEBUG", "WARN");
    ncclUniqueId id = Id();
    testing::internal::CaptureStderr();
    for (int i = 0; i < 5; i++)
        Knock(RootAddress(id), &held_);
    EXPECT_EQ(Join(id, {0}, {1}, Long())[0], ncclSuccess);
    std::string lines = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(Contains(lines, "not of this job; the last is from 127.0.0.1:")) << lines;
    EXPECT_EQ(lines.find('\n'), lines.size() - 1) << lines;
}

TEST_F(Stranger, AnotherJobsRankIsAStrangerToo)
{
    ncclUniqueId mine = Id(), other = Id();
    rondo_id parts{}, wrong{};
    ASSERT_EQ(rondo_id_read(&mine, &parts), ncclSuccess);
    ASSERT_EQ(rondo_id_read(&other, &wrong), ncclSuccess);
    wrong.root = parts.root; // our address, their secret
    ncclUniqueId mixed;
    rondo_id_write(&wrong, &mixed);
    EXPECT_EQ(Join(mixed, {0}, {1}, Long())[0], ncclRemoteError);
    EXPECT_TRUE(Contains(rondo_error_last(), "another program listens there")) << rondo_error_last();
    EXPECT_EQ(Join(mine, {0}, {1}, Long())[0], ncclSuccess);
    EXPECT_EQ(Join(other, {0}, {1}, Long())[0], ncclSuccess);
}

// Whatever listens at an id's address in the root's stead gets a hello and nothing else.
TEST_F(Stranger, AFalseRootLearnsNothing)
{
    rondo_address any{}, bound{}, from{};
    int listener, fd;
    any.in4.sin_family = AF_INET;
    any.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(rondo_socket_listen(&any, 8, &listener, &bound), ncclSuccess);
    rondo_id parts{};
    parts.root = bound;
    ASSERT_EQ(rondo_random_bytes(&parts.secret, sizeof(parts.secret)), ncclSuccess);
    ncclUniqueId id;
    rondo_id_write(&parts, &id);
    std::thread rank([&] { EXPECT_EQ(Join(id, {0}, {1}, Long())[0], ncclRemoteError); });
    ASSERT_TRUE(WaitFor(listener, POLLIN));
    ASSERT_EQ(rondo_socket_accept(listener, &fd, &from), ncclSuccess);
    rondo_hello hello{};
    ASSERT_TRUE(WaitFor(fd, POLLIN));
    EXPECT_EQ(recv(fd, &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
    rondo_proof proof{};
    rondo_secret guess{};
    ASSERT_EQ(rondo_proof_make(&guess, &hello, &proof), ncclSuccess);
    EXPECT_EQ(send(fd, &proof, sizeof(proof), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(proof)));
    char more;
    ASSERT_TRUE(WaitFor(fd, POLLIN));
    EXPECT_LE(recv(fd, &more, 1, 0), 0) << "it hangs up without a word";
    rank.join();
    close(fd);
    close(listener);
}

TEST_F(Stranger, ASilentFalseRootIsGivenUp)
{
    rondo_address any{}, bound{};
    int listener;
    any.in4.sin_family = AF_INET;
    any.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(rondo_socket_listen(&any, 8, &listener, &bound), ncclSuccess);
    rondo_id parts{};
    parts.root = bound;
    ncclUniqueId id;
    rondo_id_write(&parts, &id);
    EXPECT_EQ(Join(id, {0}, {1}, AfterMs(200))[0], ncclTimeout);
    EXPECT_TRUE(Contains(rondo_error_last(), "did not answer in time")) << rondo_error_last();
    close(listener);
}

} // namespace
