/*
 * processes_local.c - --procs: fork the processes, watch over them, end with them.
 *
 * The sockets between them exist before the first fork, so nobody has to find anybody. The parent touches
 * neither CUDA nor NCCL: it waits for signals, of which a child's end is one.
 */
#include "processes.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_S 3 /* from the first failure to SIGTERM, and from that to SIGKILL */

struct family {
    int size;
    pid_t *pids; /* 0 once gone */
    int alive;
    int exit_status;
    int stage; /* what the children have got: 0 nothing, 1 a failed sibling, 2 SIGTERM, 3 SIGKILL */
    time_t stage_end;
};

static time_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void signal_all(const struct family *family, int number)
{
    for (int i = 0; i < family->size; i++)
        if (family->pids[i] > 0)
            kill(family->pids[i], number);
}

static void reap(struct family *family)
{
    int state;

    for (int i = 0; i < family->size; i++) {
        int status;

        if (family->pids[i] <= 0 || waitpid(family->pids[i], &state, WNOHANG) != family->pids[i])
            continue;
        family->pids[i] = 0;
        family->alive--;
        status = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
        if (status == 0)
            continue;
        if (WIFSIGNALED(state) && family->stage < 2)
            fprintf(stderr, "rank %d of %d was ended by signal %d (%s)\n", i, family->size, WTERMSIG(state),
                    strsignal(WTERMSIG(state)));
        if (family->exit_status == 0)
            family->exit_status = status;
        if (family->stage == 0) {
            family->stage = 1;
            family->stage_end = now_s() + GRACE_S;
        }
    }
}

static void escalate(struct family *family)
{
    if (family->stage == 0 || now_s() < family->stage_end)
        return;
    family->stage++;
    family->stage_end = now_s() + GRACE_S;
    signal_all(family, family->stage == 2 ? SIGTERM : SIGKILL);
}

/* Until all are gone. A signal to the parent goes on to the children, and starts the clock on them. */
static void watch_over(struct family *family, const sigset_t *signals)
{
    const struct timespec tick = {.tv_nsec = 200 * 1000 * 1000};

    while (family->alive > 0) {
        int number = sigtimedwait(signals, NULL, &tick);

        if (number > 0 && number != SIGCHLD) {
            signal_all(family, number);
            if (family->exit_status == 0)
                family->exit_status = 128 + number;
            if (family->stage < 2) {
                family->stage = 2;
                family->stage_end = now_s() + GRACE_S;
            }
        }
        reap(family);
        escalate(family);
    }
}

/* The child's part right after fork. links[r] is the pair between rank 0 and rank r. */
static bool become_rank(int rank, int size, int (*links)[2], pid_t parent, struct perf_identity *identity)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it was gone before the line above */
        _exit(1);
    *identity = (struct perf_identity){.launcher = "procs", .rank = rank, .size = size, .local_size = size};
    snprintf(identity->job, sizeof(identity->job), "procs/%d", (int)parent);
    identity->links = calloc((size_t)size, sizeof(int));
    if (!identity->links)
        return false;
    for (int r = 1; r < size; r++) {
        close(links[r][rank != 0 ? 0 : 1]);
        if (rank == 0)
            identity->links[r] = links[r][0];
        else if (r == rank)
            identity->links[0] = links[r][1];
        else
            close(links[r][1]);
    }
    return true;
}

static bool open_links(int size, int (*links)[2])
{
    for (int r = 1; r < size; r++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, links[r]) != 0) {
            fprintf(stderr,
                    "make the sockets between %d processes: %s; raise the limit on open files (ulimit -n)\n",
                    size, strerror(errno));
            return false;
        }
    }
    return true;
}

static void block_signals(sigset_t *signals, sigset_t *before)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

    sigemptyset(signals);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(signals, numbers[i]);
    sigprocmask(SIG_BLOCK, signals, before);
}

/* true in a child. */
static bool fork_all(struct family *family, int (*links)[2], const sigset_t *before,
                     struct perf_identity *identity)
{
    pid_t parent = getpid();

    fflush(NULL);
    for (int rank = 0; rank < family->size; rank++) {
        pid_t pid = fork();

        if (pid == 0) {
            sigprocmask(SIG_SETMASK, before, NULL);
            if (!become_rank(rank, family->size, links, parent, identity))
                _exit(PERF_INTERNAL);
            return true;
        }
        if (pid < 0) {
            fprintf(stderr, "fork process %d of %d: %s\n", rank, family->size, strerror(errno));
            family->exit_status = PERF_INTERNAL;
            signal_all(family, SIGKILL);
            return false;
        }
        family->pids[rank] = pid;
        family->alive++;
    }
    return false;
}

bool perf_launch_local(int procs, struct perf_identity *identity_out, int *exit_status_out)
{
    struct family family = {.size = procs, .pids = calloc((size_t)procs, sizeof(pid_t))};
    int(*links)[2] = calloc((size_t)procs, sizeof(*links));
    sigset_t signals, before;
    bool is_child = false;

    *exit_status_out = PERF_INTERNAL;
    if (family.pids && links && open_links(procs, links)) {
        block_signals(&signals, &before);
        is_child = fork_all(&family, links, &before, identity_out);
        if (!is_child) {
            for (int r = 1; r < procs; r++) {
                close(links[r][0]);
                close(links[r][1]);
            }
            watch_over(&family, &signals);
            *exit_status_out = family.exit_status;
        }
    }
    free(links);
    free(family.pids);
    return is_child;
}
