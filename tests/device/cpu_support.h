// cpu_support.h - launching C++ functions on the CPU device, lines, and children that share them.
#ifndef RONDO_TESTS_CPU_SUPPORT_H
#define RONDO_TESTS_CPU_SUPPORT_H

#include "cpu/strand.h"
#include "device/cpu.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

inline const rondo_cpu_ops *Cpu()
{
    return rondo_cpu_instance();
}

inline const rondo_device_ops *Device()
{
    return &Cpu()->device;
}

// A launch whose every list runs one function. Outlives its stream's work.
class Launch
{
  public:
    using Body = std::function<void(rondo_lane *)>;

    Launch(unsigned blocks, Body body, unsigned roles = 1) : body_(std::move(body)), blocks_(blocks)
    {
        for (rondo_block &block : blocks_)
            block = {{0, 0}, {roles > 0 ? 1u : 0u, roles > 1 ? 1u : 0u}};
        args_.block = blocks_.data();
        args_.blocks = blocks;
        args_.page = &page_;
        args_.board = Device()->switchboard();
        args_.fault = &fault_;
        args_.works = 1;
        args_.work = reinterpret_cast<const rondo_work *>(this); // what Kernel() finds its launch by
        rondo_strand_set_kernel(Kernel);
    }
    Launch(const Launch &) = delete;

    ncclResult_t On(void *stream, int device = 0)
    {
        rondo_launch launch = Describe();
        return Device()->launch(device, stream, &launch);
    }

    rondo_launch Describe()
    {
        return {&args_, args_.blocks, Finished, this};
    }

    void Stop(uint64_t value = 1)
    {
        rondo_line_publish(&page_.stop, value, Device()->switchboard());
    }

    int finished() const
    {
        return finished_.load();
    }

    rondo_rank_page *page()
    {
        return &page_;
    }

    rondo_fault *fault()
    {
        return &fault_;
    }

    std::function<void()> on_finished;

  private:
    static void Kernel(rondo_lane *lane, const rondo_kernel_args *args)
    {
        reinterpret_cast<const Launch *>(args->work)->body_(lane);
    }

    static void Finished(void *owner)
    {
        Launch *self = static_cast<Launch *>(owner);
        if (self->on_finished)
            self->on_finished();
        self->finished_++;
    }

    Body body_;
    std::vector<rondo_block> blocks_;
    rondo_kernel_args args_ = {};
    rondo_rank_page page_ = {};
    rondo_fault fault_ = {};
    std::atomic<int> finished_{0};
};

// CPU time that this process takes in 300 ms, after a moment for everybody to fall asleep.
inline double SecondsWhenIdle()
{
    auto cpu_seconds = [] {
        rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    };
    usleep(100000);
    double before = cpu_seconds();
    usleep(300000);
    return cpu_seconds() - before;
}

// What a kernel does to wait: a first look, then the lane's wait.
inline bool LaneWait(rondo_lane *lane, rondo_line *line, uint64_t target)
{
    return rondo_line_read(line) - target < uint64_t{1} << 63 || lane->ops->wait(lane, line, target);
}

inline void Publish(rondo_line *line, uint64_t value)
{
    rondo_line_publish(line, value, Device()->switchboard());
}

// The same for words that carry their own flag, whose waiters are at the line.
inline bool LaneWaitFlag(rondo_lane *lane, rondo_line *line, const uint32_t *flag, uint32_t value)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED) == value || lane->ops->wait_flag(lane, line, flag, value);
}

inline void StoreFlag(rondo_line *line, uint32_t *flag, uint32_t value,
                      rondo_switchboard *board = Device()->switchboard())
{
    __atomic_store_n(flag, value, __ATOMIC_RELAXED);
    rondo_line_wake(line, board);
}

class Stream
{
  public:
    explicit Stream(unsigned flags = RONDO_STREAM_NON_BLOCKING, int device = 0)
    {
        if (Cpu()->stream_create_with_priority(device, flags, 0, &handle_) != ncclSuccess)
            abort();
    }
    Stream(const Stream &) = delete;
    ~Stream()
    {
        Device()->stream_destroy(handle_);
    }
    operator void *() const
    {
        return handle_;
    }

  private:
    void *handle_ = nullptr;
};

// Memory that children of this process share.
template <typename T> class Shared
{
  public:
    explicit Shared(size_t count = 1) : bytes_(count * sizeof(T))
    {
        at_ = static_cast<T *>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        if (at_ == MAP_FAILED)
            abort();
    }
    Shared(const Shared &) = delete;
    ~Shared()
    {
        munmap(at_, bytes_);
    }
    T *operator->()
    {
        return at_;
    }
    T &operator[](size_t i)
    {
        return at_[i];
    }

  private:
    size_t bytes_;
    T *at_;
};

// Whether a condition comes true within a limit that only a hang exceeds.
inline bool Eventually(const std::function<bool()> &condition)
{
    for (int i = 0; i < 20000; i++) {
        if (condition())
            return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

// Runs the body in a child made by fork and yields its answer, 255 if it did not end in order.
inline int InChild(const std::function<int()> &body)
{
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

// Descriptors over a Unix socket.
inline void SendFd(int socket, int fd)
{
    char byte = 'f', control[CMSG_SPACE(sizeof(int))] = {};
    iovec io = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    if (sendmsg(socket, &message, 0) != 1)
        abort();
}

inline int ReceiveFd(int socket)
{
    char byte, control[CMSG_SPACE(sizeof(int))] = {};
    iovec io = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &io;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    int fd = -1;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

// Two processes, neither of which has used the device before, run body(which, socket to the other); yields
// whether both answered 0. Must be called from a process that has not used the device either, or body must
// not use it there: so both are children.
inline bool InTwoChildren(const std::function<int(int which, int socket)> &body)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        abort();
    pid_t children[2];
    for (int which = 0; which < 2; which++) {
        children[which] = fork();
        if (children[which] == 0) {
            close(sockets[1 - which]);
            _exit(body(which, sockets[which]));
        }
    }
    close(sockets[0]);
    close(sockets[1]);
    bool good = true;
    for (pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

// Own doorbells to the other side, its doorbells mapped here.
inline rondo_switchboard *SwapBoards(int socket)
{
    int mine = -1;
    rondo_switchboard *theirs = nullptr;
    if (Device()->export_switchboard(&mine) != ncclSuccess)
        abort();
    SendFd(socket, mine);
    close(mine);
    int fd = ReceiveFd(socket);
    if (Device()->map_switchboard(fd, &theirs) != ncclSuccess)
        abort();
    close(fd);
    return theirs;
}

inline int ThreadCount()
{
    int count = 0;
    std::string line;
    FILE *file = fopen("/proc/self/status", "r");
    char text[256];
    while (file && fgets(text, sizeof(text), file))
        sscanf(text, "Threads: %d", &count);
    if (file)
        fclose(file);
    return count;
}

#endif
