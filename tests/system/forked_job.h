/*
 * forked_job.h - run a body on every rank of a job: as threads, as one thread with all ranks, or as processes with
 * either.
 *
 * The parent never touches the library: it forks, so that each job starts from a clean process, waits with a
 * limit, and reads the verdicts from shared memory. Built twice: with hostcuda's runtime (RONDO_TEST_CUDART,
 * streams and several devices) and without any runtime (calls are complete when they return).
 */
#ifndef RONDO_TESTS_FORKED_JOB_H
#define RONDO_TESTS_FORKED_JOB_H

#ifdef RONDO_TEST_CUDART
#include <cuda_runtime.h>
#endif
#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

struct LocalRank {
    int rank = -1;
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
};

/* What one thread of a job sees. */
class Context
{
  public:
    int ranks = 0;
    std::vector<LocalRank> local; /* the ranks this thread drives */

    /* Note a failure; the job goes on. The first ones of the job are printed by the parent. */
    void fail(const char *format, ...) __attribute__((format(printf, 2, 3)));

    /* Whether the call succeeded; notes a failure with the library's last error otherwise. */
    bool ok(ncclResult_t result, const char *what);

    /* Wait for the work of all local streams. */
    void synchronize();

    /* The job's id, for bodies that make their own communicators. */
    ncclUniqueId *id();

    /* A barrier of all threads of all processes of the job; not through the library. */
    void barrier();

    /* Shared with all processes of the job: 64 words, zero at the start. */
    uint64_t *shared = nullptr;

    struct Shared *job = nullptr;
};

struct Layout {
    int processes;
    bool one_thread; /* a process's ranks are driven by one thread, in groups */
    bool is_dealt_round =
        false; /* rank r is in process r mod processes; else contiguous, near-equal blocks */
    std::string name() const;
};

struct JobOptions {
    std::vector<std::string> environment; /* NAME=value, set in every process before the library is touched */
    int limit_seconds = 60;               /* only detects hangs */
    bool init_comms = true; /* false: the body makes its own communicators, from shared memory if need be */
    uint64_t *words_out = nullptr; /* receives Context::shared, 64 words */
};

/* Run body once on every thread of the job. Returns "" or what went wrong. */
std::string run_job(int ranks, Layout layout, const std::function<void(Context &)> &body,
                    const JobOptions &options = {});

#endif
