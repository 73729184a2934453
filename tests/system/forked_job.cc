/* forked_job.cc - see forked_job.h. */
#include "forked_job.h"

#include <algorithm>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <time.h>
#include <unistd.h>

static const int kMessages = 8;

struct Shared {
    ncclUniqueId id;
    pthread_barrier_t barrier;
    int failures;
    char messages[kMessages][512];
    uint64_t words[64];
};

std::string Layout::name() const
{
    std::string how = one_thread ? "one thread" : "threads";
    if (processes <= 1)
        return how;
    return std::to_string(processes) +
           (is_dealt_round ? " processes, ranks dealt round, of " : " processes of ") + how;
}

void Context::fail(const char *format, ...)
{
    int slot = __atomic_fetch_add(&job->failures, 1, __ATOMIC_RELAXED);
    if (slot >= kMessages)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(job->messages[slot], sizeof(job->messages[slot]), format, arguments);
    va_end(arguments);
}

bool Context::ok(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess)
        return true;
    fail("%s: %s: %s", what, ncclGetErrorString(result), ncclGetLastError(nullptr));
    return false;
}

void Context::synchronize()
{
#ifdef RONDO_TEST_CUDART
    for (LocalRank &one : local) {
        cudaError_t error = cudaStreamSynchronize(one.stream);
        if (error != cudaSuccess)
            fail("cudaStreamSynchronize: %s", cudaGetErrorString(error));
    }
#endif
    for (LocalRank &one : local) {
        ncclResult_t state = ncclSuccess;
        if (one.comm && ok(ncclCommGetAsyncError(one.comm, &state), "ncclCommGetAsyncError"))
            ok(state, "asynchronous error");
    }
}

ncclUniqueId *Context::id()
{
    return &job->id;
}

void Context::barrier()
{
    pthread_barrier_wait(&job->barrier);
}

static void select_device(int device)
{
#ifdef RONDO_TEST_CUDART
    cudaSetDevice(device);
#else
    (void)device;
#endif
}

/* Make the communicators of a thread's ranks, run the body, and take them down again. */
static void run_thread(Context context, const std::function<void(Context &)> &body, bool init_comms)
{
    bool is_up = true;
    if (init_comms) {
        is_up = context.ok(ncclGroupStart(), "ncclGroupStart");
        for (LocalRank &one : context.local) {
            select_device(one.rank);
            is_up &= context.ok(ncclCommInitRank(&one.comm, context.ranks, context.job->id, one.rank),
                                "ncclCommInitRank");
        }
        is_up &= context.ok(ncclGroupEnd(), "ncclGroupEnd of init");
    }
#ifdef RONDO_TEST_CUDART
    for (LocalRank &one : context.local) {
        select_device(one.rank);
        if (cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking) != cudaSuccess)
            context.fail("cudaStreamCreateWithFlags on device %d", one.rank);
    }
#endif
    if (is_up)
        body(context);
    if (!init_comms || !is_up)
        return;
    context.ok(ncclGroupStart(), "ncclGroupStart");
    for (LocalRank &one : context.local)
        context.ok(ncclCommDestroy(one.comm), "ncclCommDestroy");
    context.ok(ncclGroupEnd(), "ncclGroupEnd of destroy");
}

static void run_process(Shared *job, int ranks, const std::vector<int> &mine, bool one_thread,
                        const std::function<void(Context &)> &body, bool init_comms)
{
    std::vector<std::thread> threads;
    size_t per_thread = one_thread ? mine.size() : 1;
    for (size_t start = 0; start < mine.size(); start += per_thread) {
        Context context;
        context.ranks = ranks;
        context.job = job;
        context.shared = job->words;
        for (size_t i = start; i < start + per_thread; i++) {
            LocalRank one;
            one.rank = mine[i];
            context.local.push_back(one);
        }
        threads.emplace_back([=, &body] { run_thread(context, body, init_comms); });
    }
    for (std::thread &thread : threads)
        thread.join();
}

static std::vector<int> ranks_of(int process, int processes, int ranks, bool is_dealt_round)
{
    std::vector<int> mine;
    for (int rank = 0; rank < ranks; rank++)
        if (is_dealt_round ? rank % processes == process
                           : rank >= ranks * process / processes && rank < ranks * (process + 1) / processes)
            mine.push_back(rank);
    return mine;
}

/* Wait for every child; kill all of them when the limit passes. */
static std::string collect(std::vector<pid_t> children, int limit_seconds)
{
    std::string verdict;
    struct timespec nap = {0, 2000000};
    for (long naps = 0; !children.empty(); naps++) {
        for (size_t i = 0; i < children.size(); i++) {
            int status;
            if (waitpid(children[i], &status, WNOHANG) != children[i])
                continue;
            if (WIFSIGNALED(status))
                verdict += "a process ended by signal " + std::to_string(WTERMSIG(status)) + "; ";
            else if (WEXITSTATUS(status) != 0)
                verdict += "a process exited with status " + std::to_string(WEXITSTATUS(status)) + "; ";
            children.erase(children.begin() + (long)i--);
        }
        if (naps * 2 > limit_seconds * 1000L) {
            verdict += "still running after " + std::to_string(limit_seconds) + " s; ";
            for (pid_t child : children)
                kill(child, SIGKILL);
            naps = 0;
        }
        nanosleep(&nap, nullptr);
    }
    return verdict;
}

static Shared *make_shared(int threads)
{
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return nullptr;
    Shared *job = static_cast<Shared *>(memory);
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&job->barrier, &attributes, (unsigned)threads);
    return job;
}

/* What a forked process does. The first one makes the id; a pipe carries it to the others. */
static void child_main(Shared *job, int ranks, int processes, int index, Layout layout, const int id_pipe[2],
                       const JobOptions &options, const std::function<void(Context &)> &body)
{
    bool init_comms = options.init_comms;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const std::string &pair : options.environment) {
        size_t equals = pair.find('=');
        setenv(pair.substr(0, equals).c_str(), pair.substr(equals + 1).c_str(), 1);
    }
    if (init_comms && index == 0) {
        if (ncclGetUniqueId(&job->id) != ncclSuccess) {
            fprintf(stderr, "ncclGetUniqueId: %s\n", ncclGetLastError(nullptr));
            _exit(3);
        }
        for (int i = 1; i < processes; i++)
            if (write(id_pipe[1], "i", 1) != 1)
                _exit(3);
    }
    char byte;
    if (init_comms && index > 0 && read(id_pipe[0], &byte, 1) != 1)
        _exit(3);
    run_process(job, ranks, ranks_of(index, processes, ranks, layout.is_dealt_round), layout.one_thread, body,
                init_comms);
    exit(0); /* not _exit: the library's own exit path is part of what runs */
}

std::string run_job(int ranks, Layout layout, const std::function<void(Context &)> &body,
                    const JobOptions &options)
{
    int processes = std::min(std::max(layout.processes, 1), ranks);
    int threads = layout.one_thread ? processes : ranks;
    Shared *job = make_shared(threads);
    int id_pipe[2];
    if (!job || pipe(id_pipe) != 0)
        return "no shared memory or pipe";
    std::vector<pid_t> children;
    fflush(nullptr);
    for (int index = 0; index < processes; index++) {
        pid_t pid = fork();
        if (pid == 0)
            child_main(job, ranks, processes, index, layout, id_pipe, options, body);
        children.push_back(pid);
    }
    close(id_pipe[0]);
    close(id_pipe[1]);
    std::string verdict = collect(children, options.limit_seconds);
    for (int i = 0; i < std::min(job->failures, kMessages); i++)
        verdict += std::string(job->messages[i]) + "; ";
    if (job->failures > kMessages)
        verdict += "and " + std::to_string(job->failures - kMessages) + " more; ";
    if (options.words_out)
        memcpy(options.words_out, job->words, sizeof(job->words));
    munmap(job, sizeof(*job));
    return verdict;
}
