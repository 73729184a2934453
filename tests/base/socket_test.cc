// TCP connections over loopback.
#include "base/error.h"
#include "base/socket.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace
{

rondo_address Loopback(uint16_t port = 0)
{
    rondo_address address{};
    address.in4.sin_family = AF_INET;
    address.in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.in4.sin_port = htons(port);
    return address;
}

bool WaitFor(int fd, short events)
{
    pollfd entry{fd, events, 0};
    return poll(&entry, 1, 20000) == 1;
}

// How the attempt ends: 0, with *fd to close, or an errno value.
int Connect(const rondo_address &address, int *fd)
{
    int error = 0;
    EXPECT_EQ(rondo_socket_connect_start(&address, fd, &error), ncclSuccess) << rondo_error_last();
    if (error == 0) {
        EXPECT_TRUE(WaitFor(*fd, POLLOUT));
        error = rondo_socket_connect_finish(*fd);
    }
    if (error != 0)
        close(*fd);
    return error;
}

// A byte from one end to the other.
void ExpectConnected(int from, int to)
{
    char byte = 'x';
    EXPECT_EQ(send(from, &byte, 1, MSG_NOSIGNAL), 1);
    byte = 0;
    ASSERT_TRUE(WaitFor(to, POLLIN));
    EXPECT_EQ(recv(to, &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
}

class Socket : public testing::Test
{
  protected:
    void SetUp() override
    {
        rondo_address any = Loopback(), from;
        ASSERT_EQ(rondo_socket_listen(&any, 16, &listener_, &address_), ncclSuccess) << rondo_error_last();
        ASSERT_EQ(Connect(address_, &left_), 0);
        ASSERT_TRUE(WaitFor(listener_, POLLIN));
        ASSERT_EQ(rondo_socket_accept(listener_, &right_, &from), ncclSuccess);
    }
    void TearDown() override
    {
        for (int fd : {listener_, left_, right_})
            if (fd >= 0)
                close(fd);
    }

    int listener_ = -1, left_ = -1, right_ = -1;
    rondo_address address_{};
};

TEST_F(Socket, DescriptorsAreCloseOnExecAndNonBlocking)
{
    for (int fd : {listener_, left_, right_}) {
        EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
    }
}

TEST_F(Socket, BothWaysAreOpen)
{
    ExpectConnected(left_, right_);
    ExpectConnected(right_, left_);
}

TEST_F(Socket, ARefusalIsReported)
{
    int fd = -1;
    close(listener_);
    listener_ = -1;
    EXPECT_EQ(Connect(address_, &fd), ECONNREFUSED);
}

TEST_F(Socket, ATakenPortIsNamed)
{
    int fd = -1;
    rondo_address bound;
    char text[RONDO_ADDRESS_TEXT];
    EXPECT_EQ(rondo_socket_listen(&address_, 4, &fd, &bound), ncclSystemError);
    EXPECT_EQ(fd, -1);
    std::string message = rondo_error_last();
    EXPECT_NE(message.find(rondo_address_text(&address_, text)), std::string::npos) << message;
    EXPECT_NE(message.find("port in use"), std::string::npos) << message;
}

TEST_F(Socket, AcceptDoesNotWait)
{
    int fd = -1;
    rondo_address from;
    EXPECT_EQ(rondo_socket_accept(listener_, &fd, &from), ncclInProgress);
    EXPECT_EQ(fd, -1);
}

TEST(SocketSix, WorksOverIPv6)
{
    rondo_address any{}, address, from;
    int listener, left, right;
    any.in6.sin6_family = AF_INET6;
    any.in6.sin6_addr = in6addr_loopback;
    if (rondo_socket_listen(&any, 4, &listener, &address) != ncclSuccess)
        GTEST_SKIP() << "no IPv6 here: " << rondo_error_last();
    ASSERT_EQ(Connect(address, &left), 0);
    ASSERT_TRUE(WaitFor(listener, POLLIN));
    ASSERT_EQ(rondo_socket_accept(listener, &right, &from), ncclSuccess);
    ExpectConnected(left, right);
    for (int fd : {listener, left, right})
        close(fd);
}

TEST(SocketRefuses, AnUnknownFamily)
{
    rondo_address address{};
    int fd = -1, error = 0;
    EXPECT_EQ(rondo_socket_connect_start(&address, &fd, &error), ncclInvalidArgument);
    EXPECT_EQ(fd, -1);
}

} // namespace
