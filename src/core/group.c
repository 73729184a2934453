/*
 * group.c - what a thread has recorded, and running it.
 *
 * At the outermost end: first the jobs, one thread each because the ranks of one communicator wait for each
 * other in them (a sole job runs on the caller's thread); then the operations of all communicators. A failure
 * of any recorded call drops everything.
 */
#include "group.h"

#include "launch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "bootstrap/bootstrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct group {
    unsigned depth;
    ncclResult_t error;
    char *error_text; /* of the first failure, NULL when there was no memory for it */
    struct rondo_batch *batches;
    size_t batch_count, batch_room;
    struct rondo_job *jobs;
    size_t job_count, job_room;
};

static _Thread_local struct group group;

/* Make room for one more element of size bytes in *array. */
static ncclResult_t grow(void *array, size_t count, size_t *room, size_t bytes)
{
    void **items = array;
    size_t wanted = *room ? 2 * *room : 4;
    void *larger;

    if (count < *room)
        return ncclSuccess;
    larger = realloc(*items, wanted * bytes);
    if (!larger)
        return rondo_fail(ncclSystemError, "record call %zu of a group: out of memory", count + 1);
    *items = larger;
    *room = wanted;
    return ncclSuccess;
}

static struct rondo_batch *batch_of(struct ncclComm *comm)
{
    for (size_t i = group.batch_count; i-- > 0;) { /* the newest is the likeliest */
        if (group.batches[i].comm == comm)
            return &group.batches[i];
    }
    if (grow(&group.batches, group.batch_count, &group.batch_room, sizeof(*group.batches)) != ncclSuccess)
        return NULL;
    struct rondo_batch *batch = &group.batches[group.batch_count++];
    rondo_comm_get(comm);
    *batch = (struct rondo_batch){.comm = comm};
    return batch;
}

static ncclResult_t add_stream(struct rondo_batch *batch, void *stream)
{
    void **larger;

    for (size_t i = 0; i < batch->stream_count; i++) {
        if (batch->streams[i] == stream)
            return ncclSuccess;
    }
    larger = realloc(batch->streams, (batch->stream_count + 1) * sizeof(*larger));
    if (!larger)
        return rondo_fail(ncclSystemError, "record stream %zu of a group: out of memory",
                          batch->stream_count + 1);
    batch->streams = larger;
    batch->streams[batch->stream_count++] = stream;
    return ncclSuccess;
}

ncclResult_t rondo_group_add_task(struct ncclComm *comm, const struct rondo_task *task, void *stream)
{
    struct rondo_batch *batch = batch_of(comm);
    ncclResult_t rc;

    if (!batch)
        return ncclSystemError;
    rc = grow(&batch->tasks, batch->count, &batch->room, sizeof(*batch->tasks));
    if (rc == ncclSuccess)
        rc = add_stream(batch, stream);
    if (rc == ncclSuccess)
        batch->tasks[batch->count++] = *task;
    return rc;
}

ncclResult_t rondo_group_add_job(const struct rondo_job *job)
{
    ncclResult_t rc = grow(&group.jobs, group.job_count, &group.job_room, sizeof(*group.jobs));

    if (rc == ncclSuccess) {
        struct rondo_job *added = &group.jobs[group.job_count++];

        *added = *job;
        added->thread = rondo_thread_id();
    }
    return rc;
}

bool rondo_group_has_job(ncclComm_t handle)
{
    for (size_t i = 0; i < group.job_count; i++) {
        if (group.jobs[i].handle == handle)
            return true;
    }
    return false;
}

/* Jobs about one communicator run in the order of the calls. */
static void chain_jobs(struct group *running)
{
    for (size_t j = 1; j < running->job_count; j++) {
        for (size_t i = j; i-- > 0 && !running->jobs[j].is_chained;) {
            if (running->jobs[i].handle == running->jobs[j].handle) {
                running->jobs[i].next = &running->jobs[j];
                running->jobs[j].is_chained = true;
            }
        }
    }
}

static void run_job(void *argument)
{
    for (struct rondo_job *job = argument; job; job = job->next) {
        job->result = job->run(job);
        if (job->result != ncclSuccess)
            job->text = strdup(rondo_error_own());
        job->has_run = true;
    }
}

static void describe_failure(ncclResult_t code, struct rondo_group_failure *failure)
{
    failure->code = code;
    failure->deadline = rondo_clock_ns() + RONDO_NOTICE_NS;
    snprintf(failure->text, sizeof(failure->text), "%s", rondo_error_own());
}

static void cancel_job(struct rondo_job *job, const struct rondo_group_failure *failure)
{
    if (job->cancel && !job->is_cancelled)
        job->cancel(job, failure);
    job->is_cancelled = true;
}

/* Some jobs run, others could not be started. First the reason goes to the ranks that those would have
 * been waiting for or were waited for by; then what runs ends. */
static void stop_jobs(struct group *running, ncclResult_t rc)
{
    struct rondo_group_failure failure;

    describe_failure(rc, &failure);
    for (size_t j = 0; j < running->job_count; j++) {
        if (!running->jobs[j].is_started && !running->jobs[j].is_chained)
            cancel_job(&running->jobs[j], &failure);
    }
    for (size_t j = 0; j < running->job_count; j++) {
        if (running->jobs[j].stop && !running->jobs[j].is_cancelled)
            running->jobs[j].stop(&running->jobs[j]);
    }
    rondo_error_restate(rc, failure.text); /* what was recorded meanwhile only follows from it */
}

/* Run all jobs at once and wait for them; the caller's thread runs the first. */
static ncclResult_t run_jobs_at_once(struct group *running, struct rondo_thread *threads)
{
    size_t started = 0;
    ncclResult_t rc = ncclSuccess;

    for (size_t j = 1; j < running->job_count && rc == ncclSuccess; j++) {
        if (running->jobs[j].is_chained)
            continue;
        rc = rondo_thread_start("rondo-job", 0, run_job, &running->jobs[j], &threads[started]);
        running->jobs[j].is_started = rc == ncclSuccess;
        if (rc == ncclSuccess)
            started++;
    }
    if (rc == ncclSuccess)
        run_job(&running->jobs[0]);
    else
        stop_jobs(running, rc);
    for (size_t i = 0; i < started; i++)
        rondo_thread_join(&threads[i]);
    return rc;
}

/* The first failure, in the order of the calls. */
static ncclResult_t run_jobs(struct group *running)
{
    struct rondo_thread *threads;
    ncclResult_t rc;

    if (running->job_count == 0)
        return ncclSuccess;
    threads = malloc(running->job_count * sizeof(*threads));
    if (!threads)
        return rondo_fail(ncclSystemError, "run %zu jobs of a group: out of memory", running->job_count);
    chain_jobs(running);
    rc = run_jobs_at_once(running, threads);
    free(threads);
    for (size_t i = 0; i < running->job_count && rc == ncclSuccess; i++) {
        rc = running->jobs[i].result;
        if (rc != ncclSuccess && running->jobs[i].text)
            rondo_error_restate(rc, running->jobs[i].text);
    }
    return rc;
}

/* A communicator cannot be closed in the group that has operations for it. */
static ncclResult_t check_jobs(const struct group *running)
{
    for (size_t j = 0; j < running->job_count; j++) {
        for (size_t b = 0; b < running->batch_count; b++) {
            if (running->batches[b].comm == running->jobs[j].handle)
                return rondo_fail(ncclInvalidUsage,
                                  "end a group: it both uses and destroys rank %d's communicator; end the "
                                  "group before destroying",
                                  running->batches[b].comm->rank);
        }
    }
    return ncclSuccess;
}

static void free_group(struct group *done)
{
    for (size_t b = 0; b < done->batch_count; b++) {
        free(done->batches[b].tasks);
        free(done->batches[b].streams);
        rondo_comm_put(done->batches[b].comm);
    }
    for (size_t j = 0; j < done->job_count; j++) {
        free(done->jobs[j].argument);
        free(done->jobs[j].text);
    }
    free(done->batches);
    free(done->jobs);
    free(done->error_text);
}

/* Undo what a failed group has done, and see to it that the ranks elsewhere hear of it. */
static void undo_jobs(struct group *failed, ncclResult_t rc)
{
    struct rondo_group_failure failure;
    uint64_t deadline;

    describe_failure(rc, &failure);
    for (size_t j = 0; j < failed->job_count; j++)
        cancel_job(&failed->jobs[j], &failure);
    deadline = rondo_clock_ns() + RONDO_SETTLE_NS;
    for (size_t j = 0; j < failed->job_count; j++) {
        if (failed->jobs[j].settle)
            failed->jobs[j].settle(&failed->jobs[j], deadline);
    }
    if (failed->job_count > 0)
        rondo_error_restate(rc, failure.text);
}

static ncclResult_t run_group(void)
{
    struct group running = group; /* so that what runs may itself open groups */
    ncclResult_t rc = running.error;

    group = (struct group){0};
    if (rc == ncclSuccess)
        rc = check_jobs(&running);
    else if (running.error_text)
        rc = rondo_fail(rc, "%s", running.error_text);
    if (rc == ncclSuccess)
        rc = run_jobs(&running);
    if (rc == ncclSuccess && running.batch_count > 0)
        rc = rondo_launch_batches(running.batches, running.batch_count);
    if (rc != ncclSuccess)
        undo_jobs(&running, rc);
    free_group(&running);
    return rc;
}

void rondo_group_open(void)
{
    group.depth++;
}

ncclResult_t rondo_group_close(ncclResult_t rc)
{
    bool is_sole = group.depth == 1;

    if (rc != ncclSuccess && group.error == ncclSuccess) {
        group.error = rc;
        group.error_text = is_sole ? NULL : strdup(rondo_error_own());
    }
    if (--group.depth > 0)
        return rc;
    ncclResult_t outcome = run_group();
    return rc != ncclSuccess ? rc : outcome;
}

ncclResult_t rondo_group_end(void)
{
    if (group.depth == 0)
        return rondo_fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart on this thread");
    return rondo_group_close(ncclSuccess);
}
