/* roster.c - which communicators are alive: a hash table of handles under one lock. */
#include "roster.h"

#include "base/error.h"

#include <stdlib.h>

#define BUCKETS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* a state or a count that somebody waits for */
static struct ncclComm *buckets[BUCKETS];
static unsigned members;
static uint32_t was_used; /* a communicator has been made in this process or the one it was forked from */
static uint32_t is_child; /* forked after that */

static void lock_roster(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_roster(void)
{
    pthread_mutex_unlock(&lock);
}

static void enter_child(void)
{
    pthread_mutex_unlock(&lock);
    if (was_used)
        is_child = 1;
}

/* At exit: what this process was part of is told that it leaves, and does not take it for a crash. */
__attribute__((destructor)) static void say_goodbye(void)
{
    if (is_child || pthread_mutex_trylock(&lock) != 0)
        return;
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (struct ncclComm *comm = buckets[b]; comm; comm = comm->next) {
            uint64_t expected = RONDO_GOODBYE_NONE;

            if (comm->state == RONDO_COMM_READY || comm->state == RONDO_COMM_CLOSING)
                __atomic_compare_exchange_n(&comm->page->goodbye, &expected, RONDO_GOODBYE_EXITED, false,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED);
        }
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void guard_fork(void)
{
    pthread_atfork(lock_roster, unlock_roster, enter_child);
}

ncclResult_t rondo_roster_check_process(const char *function)
{
    if (is_child)
        return rondo_fail(ncclInvalidUsage,
                          "%s in a child of fork(): its parent had made communicators, whose memory and "
                          "threads are not the child's; "
                          "call exec() first, or fork before the first communicator",
                          function);
    return ncclSuccess;
}

static unsigned bucket_of(const void *handle)
{
    return (unsigned)(((uintptr_t)handle >> 7) * 0x9e3779b1u >> 8) % BUCKETS;
}

/* The live communicator that handle is, NULL if none; the lock is held. */
static struct ncclComm *find_comm(ncclComm_t handle)
{
    struct ncclComm *comm = buckets[bucket_of(handle)];

    while (comm && comm != handle)
        comm = comm->next;
    return comm;
}

void rondo_roster_add(struct ncclComm *comm)
{
    unsigned bucket = bucket_of(comm);

    rondo_comm_get(comm);
    pthread_mutex_lock(&lock);
    was_used = 1;
    comm->next = buckets[bucket];
    buckets[bucket] = comm;
    members++;
    pthread_mutex_unlock(&lock);
}

/* Why a handle cannot be used; the lock is held. */
static ncclResult_t refuse_handle(ncclComm_t handle, const char *function, const struct ncclComm *comm)
{
    if (!handle)
        return rondo_fail(ncclInvalidArgument, "%s: the communicator is NULL", function);
    if (!comm)
        return rondo_fail(ncclInvalidArgument,
                          "%s: %p is no communicator of this process (never made, or destroyed)", function,
                          (void *)handle);
    if (comm->state == RONDO_COMM_PENDING || comm->state == RONDO_COMM_INIT)
        return rondo_fail(ncclInvalidArgument, "%s: rank %d's communicator is still being made", function,
                          comm->rank);
    return rondo_fail(ncclInvalidArgument, "%s: rank %d's communicator is being destroyed", function,
                      comm->rank);
}

/* Find a communicator that is in use; the lock is held. */
static ncclResult_t find_ready(ncclComm_t handle, const char *function, struct ncclComm **comm_out)
{
    struct ncclComm *comm = find_comm(handle);

    if (!comm || comm->state != RONDO_COMM_READY)
        return refuse_handle(handle, function, comm);
    *comm_out = comm;
    return ncclSuccess;
}

ncclResult_t rondo_roster_enter(ncclComm_t handle, const char *function, struct ncclComm **comm_out)
{
    ncclResult_t rc = rondo_roster_check_process(function);

    if (rc != ncclSuccess)
        return rc;
    pthread_mutex_lock(&lock);
    rc = find_ready(handle, function, comm_out);
    if (rc == ncclSuccess)
        (*comm_out)->active++;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* The lock is held. */
static void leave_locked(struct ncclComm *comm)
{
    if (--comm->active == 0 && comm->state != RONDO_COMM_READY)
        pthread_cond_broadcast(&changed);
}

void rondo_roster_leave(struct ncclComm *comm)
{
    pthread_mutex_lock(&lock);
    leave_locked(comm);
    pthread_mutex_unlock(&lock);
}

static void set_state(struct ncclComm *comm, enum rondo_comm_state state)
{
    comm->state = state;
    pthread_cond_broadcast(&changed);
}

bool rondo_roster_begin_init(struct ncclComm *comm)
{
    bool is_wanted;

    pthread_mutex_lock(&lock);
    is_wanted = __atomic_load_n(&comm->init_stop, __ATOMIC_RELAXED) == 0;
    if (is_wanted)
        set_state(comm, RONDO_COMM_INIT);
    pthread_mutex_unlock(&lock);
    return is_wanted;
}

void rondo_roster_ready(struct ncclComm *comm)
{
    pthread_mutex_lock(&lock);
    set_state(comm, RONDO_COMM_READY);
    pthread_mutex_unlock(&lock);
}

bool rondo_roster_is_being_made(ncclComm_t handle)
{
    pthread_mutex_lock(&lock);
    struct ncclComm *comm = find_comm(handle);
    bool is_being_made = comm && (comm->state == RONDO_COMM_PENDING || comm->state == RONDO_COMM_INIT);
    pthread_mutex_unlock(&lock);
    return is_being_made;
}

void rondo_roster_stop_init(ncclComm_t handle)
{
    pthread_mutex_lock(&lock);
    struct ncclComm *comm = find_comm(handle);
    if (comm)
        __atomic_store_n(&comm->init_stop, RONDO_INIT_CANCELLED,
                         __ATOMIC_RELEASE); /* polled by the init's waits */
    pthread_mutex_unlock(&lock);
}

ncclResult_t rondo_roster_begin_close(ncclComm_t handle, const char *function, struct ncclComm **comm_out)
{
    ncclResult_t rc = rondo_roster_check_process(function);

    if (rc != ncclSuccess)
        return rc;
    pthread_mutex_lock(&lock);
    rc = find_ready(handle, function, comm_out);
    if (rc == ncclSuccess) {
        set_state(*comm_out, RONDO_COMM_CLOSING);
        rondo_comm_get(*comm_out);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

void rondo_roster_reopen(struct ncclComm *comm)
{
    pthread_mutex_lock(&lock);
    set_state(comm, RONDO_COMM_READY);
    pthread_mutex_unlock(&lock);
    rondo_comm_put(comm);
}

/* End an init and wait for that. true: it succeeded in the same moment; false: it is gone. The lock is held.
 */
static bool outlast_init(struct ncclComm *comm)
{
    __atomic_store_n(&comm->init_stop, RONDO_INIT_ABORTED, __ATOMIC_RELEASE); /* polled by the init's waits */
    if (comm->state == RONDO_COMM_PENDING)
        return false; /* begin_init() will see the word; who recorded the init frees it */
    while (find_comm(comm) && comm->state == RONDO_COMM_INIT)
        pthread_cond_wait(&changed, &lock);
    return find_comm(comm) && comm->state == RONDO_COMM_READY;
}

ncclResult_t rondo_roster_begin_abort(ncclComm_t handle, struct ncclComm **comm_out)
{
    ncclResult_t rc = rondo_roster_check_process("ncclCommAbort");

    if (rc != ncclSuccess)
        return rc;
    pthread_mutex_lock(&lock);
    struct ncclComm *comm = find_comm(handle);
    *comm_out = NULL;
    if (!comm) {
        rc = refuse_handle(handle, "ncclCommAbort", comm);
        pthread_mutex_unlock(&lock);
        return rc;
    }
    rondo_comm_get(comm); /* so that its address is nobody else's while this waits */
    bool is_made =
        comm->state == RONDO_COMM_PENDING || comm->state == RONDO_COMM_INIT ? outlast_init(comm) : true;
    while (is_made && find_comm(comm) && comm->state != RONDO_COMM_READY) { /* another thread closes it */
        if (comm->state == RONDO_COMM_CLOSING)
            rondo_comm_stop(comm, RONDO_STOP_ABORT);
        pthread_cond_wait(&changed, &lock);
    }
    if (is_made && find_comm(comm)) {
        set_state(comm, RONDO_COMM_CLOSING);
        *comm_out = comm;
    }
    pthread_mutex_unlock(&lock);
    if (!*comm_out)
        rondo_comm_put(comm);
    return ncclSuccess;
}

void rondo_roster_begin_dying(struct ncclComm *comm)
{
    pthread_mutex_lock(&lock);
    set_state(comm, RONDO_COMM_DYING);
    while (comm->active > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void rondo_roster_remove(struct ncclComm *comm)
{
    struct ncclComm **link = &buckets[bucket_of(comm)];

    pthread_mutex_lock(&lock);
    while (*link && *link != comm)
        link = &(*link)->next;
    if (*link) {
        *link = comm->next;
        members--;
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    rondo_comm_put(comm);
}

void rondo_roster_visit(void (*visit)(struct ncclComm *comm, void *argument), void *argument)
{
    struct ncclComm **found;
    unsigned count = 0;

    pthread_mutex_lock(&lock);
    found = members ? malloc(members * sizeof(*found)) : NULL;
    for (unsigned b = 0; found && b < BUCKETS; b++) {
        for (struct ncclComm *comm = buckets[b]; comm; comm = comm->next) {
            if (comm->state == RONDO_COMM_READY || comm->state == RONDO_COMM_CLOSING) {
                comm->active++;
                found[count++] = comm;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < count; i++) {
        visit(found[i], argument);
        rondo_roster_leave(found[i]);
    }
    free(found);
}
