/* shm_cache.c - the processes and arenas mapped here, counted. */
#include "shm_cache.h"

#include "descriptor_client.h"
#include "reach.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A peer process. */
struct neighbour {
    struct neighbour *next;
    uint64_t process;
    unsigned users; /* arenas */
    struct rondo_switchboard *board;
    int death, life;
};

/* An arena of one of them. While is_ready is false one thread is attaching it, with the lock released. */
struct arena {
    struct rondo_reach reach; /* first: callers hold a pointer to it */
    struct arena *next;
    uint64_t process;
    int32_t device;
    bool is_ready;
    unsigned users;
    struct neighbour *neighbour;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct neighbour *neighbours;
static struct arena *arenas;

static struct arena *find_arena(uint64_t process, int32_t device)
{
    struct arena *arena = arenas;

    while (arena && !(arena->process == process && arena->device == device))
        arena = arena->next;
    return arena;
}

static void unlink_arena(struct arena *arena)
{
    struct arena **link = &arenas;

    while (*link != arena)
        link = &(*link)->next;
    *link = arena->next;
}

/* Wait for any change of the lists; false: the deadline has passed. */
static bool wait_changed(uint64_t deadline)
{
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                             .tv_nsec = (long)(deadline % 1000000000u)};

    if (deadline == UINT64_MAX)
        return pthread_cond_wait(&changed, &lock) == 0;
    return pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT;
}

/* The record of a process, made from fresh descriptors if it is the first arena of it; takes death and
 * life over then. */
static ncclResult_t get_neighbour(const struct rondo_device_ops *device, uint64_t process,
                                  struct rondo_descriptors *fresh, struct neighbour **neighbour_out)
{
    struct neighbour *neighbour = neighbours;
    ncclResult_t rc;

    while (neighbour && neighbour->process != process)
        neighbour = neighbour->next;
    if (!neighbour) {
        neighbour = calloc(1, sizeof(*neighbour));
        if (!neighbour)
            return rondo_fail(ncclSystemError, "remember a peer process: out of memory");
        rc = device->map_switchboard(fresh->board, &neighbour->board);
        if (rc != ncclSuccess) {
            free(neighbour);
            return rc;
        }
        neighbour->process = process;
        neighbour->death = fresh->death;
        neighbour->life = fresh->life;
        fresh->death = fresh->life = -1;
        neighbour->next = neighbours;
        neighbours = neighbour;
    }
    neighbour->users++;
    *neighbour_out = neighbour;
    return ncclSuccess;
}

static void put_neighbour(const struct rondo_device_ops *device, struct neighbour *neighbour)
{
    struct neighbour **link = &neighbours;

    if (--neighbour->users > 0)
        return;
    while (*link != neighbour)
        link = &(*link)->next;
    *link = neighbour->next;
    device->unmap_switchboard(neighbour->board);
    close(neighbour->death);
    close(neighbour->life);
    free(neighbour);
}

/* Fill an arena that is in the list and not ready. Called and returns with the lock held, released while it
 * talks to the peer. */
static ncclResult_t attach_arena(const struct rondo_device_ops *device, struct arena *arena,
                                 const struct rondo_peer *peer, uint64_t deadline)
{
    struct rondo_descriptors fresh;
    void *base = NULL;
    ncclResult_t rc;

    pthread_mutex_unlock(&lock);
    rc = rondo_descriptors_fetch(peer, arena->device, deadline, &fresh);
    if (rc != ncclSuccess) {
        pthread_mutex_lock(&lock);
        return rc;
    }
    rc = device->map_arena(fresh.arena, peer->mailbox.arena_bytes, &base);
    pthread_mutex_lock(&lock);
    if (rc == ncclSuccess) {
        rc = get_neighbour(device, arena->process, &fresh, &arena->neighbour);
        if (rc != ncclSuccess)
            device->unmap_arena(base, peer->mailbox.arena_bytes);
    }
    rondo_descriptors_close(&fresh);
    if (rc != ncclSuccess)
        return rc;
    arena->reach = (struct rondo_reach){
        .arena = base,
        .arena_bytes = peer->mailbox.arena_bytes,
        .board = arena->neighbour->board,
        .death = arena->neighbour->death,
        .life = arena->neighbour->life,
    };
    return ncclSuccess;
}

/* Wait until the arena is mapped (its record, one more user) or nobody is at it (NULL). */
static ncclResult_t wait_arena(const struct rondo_peer *peer, uint64_t deadline, struct arena **arena_out)
{
    struct arena *arena;

    while ((arena = find_arena(peer->process, peer->mailbox.device)) && !arena->is_ready) {
        if (!wait_changed(deadline))
            return rondo_fail(
                ncclTimeout,
                "map the memory of rank %d (process %d): another thread is at it and got no answer in time",
                peer->rank, peer->pid);
    }
    if (arena)
        arena->users++;
    *arena_out = arena;
    return ncclSuccess;
}

ncclResult_t rondo_shm_cache_get(const struct rondo_peer *peer, uint64_t deadline,
                                 struct rondo_reach **reach_out)
{
    const struct rondo_device_ops *device;
    struct arena *arena = NULL;
    ncclResult_t rc = rondo_device_select(&device);

    if (rc != ncclSuccess)
        return rc;
    pthread_mutex_lock(&lock);
    rc = wait_arena(peer, deadline, &arena);
    if (rc != ncclSuccess || arena)
        goto unlock;

    arena = calloc(1, sizeof(*arena));
    if (!arena) {
        rc = rondo_fail(ncclSystemError, "remember the memory of rank %d: out of memory", peer->rank);
        goto unlock;
    }
    arena->process = peer->process;
    arena->device = peer->mailbox.device;
    arena->users = 1;
    arena->next = arenas;
    arenas = arena;
    rc = attach_arena(device, arena, peer, deadline);
    if (rc == ncclSuccess) {
        arena->is_ready = true;
    } else {
        unlink_arena(arena);
        free(arena);
    }
    pthread_cond_broadcast(&changed);

unlock:
    pthread_mutex_unlock(&lock);
    if (rc == ncclSuccess)
        *reach_out = &arena->reach;
    return rc;
}

void rondo_shm_cache_put(struct rondo_reach *reach)
{
    struct arena *arena = (struct arena *)reach;
    const struct rondo_device_ops *device;

    if (!arena || rondo_device_select(&device) != ncclSuccess)
        return;
    pthread_mutex_lock(&lock);
    if (--arena->users == 0) {
        unlink_arena(arena);
        device->unmap_arena(arena->reach.arena, arena->reach.arena_bytes);
        put_neighbour(device, arena->neighbour);
        free(arena);
    }
    pthread_mutex_unlock(&lock);
}
