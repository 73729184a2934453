/* killed_test.cc - kill -9 of every rank in mid operation leaves nothing behind, and a neighbour's job does
 * not notice. */
#include "forked_job.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <set>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What could outlive a process: names in /dev/shm and /tmp, and abstract Unix sockets of this network
 * namespace. */
static std::set<std::string> leftovers()
{
    std::set<std::string> names;
    for (const char *folder : {"/dev/shm", "/tmp"}) {
        DIR *directory = opendir(folder);
        while (struct dirent *entry = directory ? readdir(directory) : nullptr)
            if (entry->d_name[0] != '.')
                names.insert(std::string(folder) + "/" + entry->d_name);
        if (directory)
            closedir(directory);
    }
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);)
        if (line.find("@rondo") != std::string::npos)
            names.insert(line.substr(line.find('@')));
    return names;
}

/* Ranks are killed one after another, so that the later ones may learn of the death of the earlier ones. */
enum class After { kErrorExit, kErrorWaitForTheEnd };

/* A rank that reduces until it is killed; it writes a byte after its first operation. */
static void run_until_killed(int rank, int ranks, const ncclUniqueId &id, int ready, After after)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static float data[1 << 20];
    ncclComm_t comm;
    if (ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess)
        _exit(1);
    for (bool is_first = true;; is_first = false) {
        if (ncclAllReduce(data, data, sizeof(data) / sizeof(*data), ncclFloat32, ncclMax, comm, nullptr) !=
            ncclSuccess) {
            while (!is_first && after == After::kErrorWaitForTheEnd)
                pause();
            _exit(2);
        }
        if (is_first && write(ready, "r", 1) != 1)
            _exit(3);
    }
}

struct Doomed {
    std::vector<pid_t> ranks;
};

static Doomed start_job(int ranks, After after)
{
    Doomed job;
    int ready[2], ids[2];
    char byte;
    EXPECT_EQ(pipe(ready) | pipe(ids), 0);
    for (int rank = 0; rank < ranks; rank++) {
        pid_t pid = fork();
        if (pid == 0) {
            ncclUniqueId id;
            bool has_id = rank == 0 ? ncclGetUniqueId(&id) == ncclSuccess
                                    : read(ids[0], &id, sizeof(id)) == (ssize_t)sizeof(id);
            for (int other = 1; rank == 0 && other < ranks; other++)
                has_id &= write(ids[1], &id, sizeof(id)) == (ssize_t)sizeof(id);
            if (has_id)
                run_until_killed(rank, ranks, id, ready[1], after);
            _exit(4);
        }
        job.ranks.push_back(pid);
    }
    close(ready[1]);
    for (int rank = 0; rank < ranks; rank++)
        EXPECT_EQ(read(ready[0], &byte, 1), 1) << "a rank ended early";
    for (int fd : {ready[0], ids[0], ids[1]})
        close(fd);
    return job;
}

static void kill_job(const Doomed &job)
{
    for (pid_t pid : job.ranks)
        kill(pid, SIGKILL);
    for (pid_t pid : job.ranks) {
        int status;
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    }
}

TEST(Killed, NothingIsLeftAndNeighboursGoOn)
{
    /* So that other programs' sockets and files are not taken for ours. */
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0)
        GTEST_SKIP() << "needs the right to make a network namespace";
    ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0) << strerror(errno);
    for (const char *folder : {"/dev/shm", "/tmp"})
        ASSERT_EQ(mount("none", folder, "tmpfs", 0, nullptr), 0) << folder << ": " << strerror(errno);
    ASSERT_EQ(system("ip link set lo up 2>/dev/null || ifconfig lo up"), 0)
        << "bring up lo: apt install iproute2";
    Doomed neighbour = start_job(2, After::kErrorExit);
    std::set<std::string> before = leftovers();
    for (int round = 0; round < 50; round++) {
        Doomed job = start_job(3, After::kErrorWaitForTheEnd);
        struct timespec nap = {0, (long)(round % 10) * 500000};
        nanosleep(&nap, nullptr);
        kill_job(job);
    }
    EXPECT_EQ(leftovers(), before);
    for (pid_t pid : neighbour.ranks) /* still reducing: an error would have ended it */
        EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), 0);
    for (pid_t pid : neighbour.ranks) {
        kill(pid, SIGKILL);
        EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
    }
}
