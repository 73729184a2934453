/*
 * watch.c - the one thread a process keeps while it has communicators.
 *
 * It sleeps in epoll_wait on the descriptor service, on the peers' processes, and on an eventfd that ends it.
 * The end of a process is an edge: a descriptor stays readable for ever, and every communicator with a rank
 * there asks it itself.
 */
#include "watch.h"

#include "fault.h"
#include "retire.h"
#include "roster.h"
#include "stall.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "transport/descriptor_service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Choices, not measured. A process that waits for nothing wakes once a second; that also bounds how late a
 * beat is, which death.h's RONDO_SILENCE_NS relies on. */
#define IDLE_NS 1000000000ull /* between looks while nothing waits */
#define BROKEN_NS 20000000ull /* between looks that cannot be interrupted */
#define COMMAND_QUIT (1ull << 32)

enum source { SOURCE_COMMAND, SOURCE_SERVICE, SOURCE_DEATH };

/* A peer process, with the number of communicators that have ranks there. */
struct death {
    struct death *next;
    int fd;
    unsigned count;
};

static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER; /* start and stop, one at a time */
static unsigned users;
static struct rondo_thread thread;
static uint32_t service;
static int epoll_fd = -1;
static int command_fd = -1; /* an eventfd: 1 is a kick, COMMAND_QUIT ends the thread */
/* Atomic. Each is released by who sets it and acquired by all who look: the watch thread at is_ending, which
 * rondo_watch_stop() sets, callers at is_broken, which give_up() sets. */
static uint32_t is_ending; /* says the same as COMMAND_QUIT, and needs no descriptor */
static uint32_t is_broken; /* the descriptors are not ours any more */

static pthread_mutex_t death_lock = PTHREAD_MUTEX_INITIALIZER;
static struct death *deaths;

/* What the visits of one round share. */
struct round {
    uint64_t now;
    bool check_deaths;
    uint64_t delay; /* until the next look that anybody wants */
};

static void look(struct ncclComm *comm, void *argument)
{
    struct round *round = argument;
    uint64_t delay = rondo_stall_look(comm, round->now, round->check_deaths);

    if (delay != 0 && delay < round->delay)
        round->delay = delay;
}

static int milliseconds_until(uint64_t when)
{
    uint64_t now = rondo_clock_ns();

    return when <= now ? 0 : (int)((when - now) / 1000000 + 1);
}

/* Take what was written to the eventfd. */
static uint64_t read_commands(void)
{
    uint64_t commands = 0;

    return read(command_fd, &commands, sizeof(commands)) == (ssize_t)sizeof(commands) ? commands : 0;
}

static void write_command(uint64_t command)
{
    while (write(command_fd, &command, sizeof(command)) < 0 && errno == EINTR) {
    }
}

static void end_watched(struct ncclComm *comm, void *argument)
{
    const int *cause = argument;
    char name[RONDO_COMM_TEXT];

    if (rondo_fault_look(comm, rondo_clock_ns()))
        return; /* has an error, and its text will come */
    rondo_comm_end_all(
        comm, ncclSystemError, comm->rank,
        "%s: rank %d cannot watch its peers any more: epoll_wait on descriptor %d: %s; does the "
        "program close descriptors that it did not open?",
        rondo_comm_text(comm, name), comm->rank, epoll_fd, strerror(*cause));
}

/* Nobody would notice any more that a peer is gone. So all communicators end, also those whose init is not
 * done yet; then there is nothing left but to wait for the end. */
static void give_up(int cause)
{
    __atomic_store_n(&is_broken, 1, __ATOMIC_RELEASE); /* pairs with rondo_watch_start(), which refuses */
    while (!__atomic_load_n(&is_ending, __ATOMIC_ACQUIRE)) {
        rondo_roster_visit(end_watched, &cause);
        rondo_clock_sleep_ns(BROKEN_NS);
    }
}

/* Sleep until the next look is due or something happens. *must_look_out: look now. false: end. */
static bool sleep_until(uint64_t next_look, struct round *round, bool *must_look_out)
{
    struct epoll_event events[16];
    int count = epoll_wait(epoll_fd, events, 16, milliseconds_until(next_look));

    if (count < 0 && errno != EINTR) {
        give_up(errno);
        return false;
    }
    if (__atomic_load_n(&is_ending, __ATOMIC_ACQUIRE))
        return false;
    round->now = rondo_clock_ns();
    *must_look_out = round->now >= next_look;
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == SOURCE_SERVICE) {
            rondo_descriptor_service_poll();
            continue;
        }
        if (events[i].data.u32 == SOURCE_COMMAND && read_commands() >= COMMAND_QUIT)
            return false;
        if (events[i].data.u32 == SOURCE_DEATH)
            round->check_deaths = true;
        *must_look_out = true;
    }
    return true;
}

static void run(void *unused)
{
    uint64_t next_look = rondo_clock_ns() + IDLE_NS;
    bool must_look;

    (void)unused;
    for (;;) {
        struct round round = {.delay = IDLE_NS};

        if (!sleep_until(next_look, &round, &must_look))
            return;
        if (!must_look)
            continue;
        rondo_roster_visit(look, &round);
        rondo_mailbox_reap();
        next_look = round.now + round.delay;
    }
}

void rondo_watch_kick(void)
{
    if (__atomic_load_n(&is_broken, __ATOMIC_ACQUIRE))
        return;
    write_command(1);
}

static ncclResult_t add_source(int fd, enum source source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = source};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return rondo_fail(ncclSystemError, "watch descriptor %d with epoll: %s", fd, strerror(errno));
    return ncclSuccess;
}

static void close_descriptors(void)
{
    bool are_ours =
        !__atomic_load_n(&is_broken, __ATOMIC_ACQUIRE); /* else the numbers may be others' files */

    if (command_fd >= 0 && are_ours)
        close(command_fd);
    if (epoll_fd >= 0 && are_ours)
        close(epoll_fd);
    command_fd = epoll_fd = -1;
    __atomic_store_n(&is_broken, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&is_ending, 0, __ATOMIC_RELEASE);
}

static ncclResult_t open_watch(void)
{
    int service_fd;
    ncclResult_t rc = rondo_descriptor_service_start(&service, &service_fd);

    if (rc != ncclSuccess)
        return rc;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    command_fd = epoll_fd < 0 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (command_fd < 0) {
        rc = rondo_fail(ncclSystemError, "start the watch thread: epoll_create1 or eventfd: %s",
                        strerror(errno));
        goto stop_service;
    }
    rc = add_source(command_fd, SOURCE_COMMAND, EPOLLIN);
    if (rc == ncclSuccess)
        rc = add_source(service_fd, SOURCE_SERVICE, EPOLLIN);
    if (rc == ncclSuccess)
        rc = rondo_thread_start("rondo-watch", 0, run, NULL, &thread);
    if (rc == ncclSuccess)
        return ncclSuccess;

stop_service:
    close_descriptors();
    rondo_descriptor_service_stop();
    return rc;
}

ncclResult_t rondo_watch_start(uint32_t *service_out)
{
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&life_lock);
    if (users == 0)
        rc = open_watch();
    else if (__atomic_load_n(&is_broken, __ATOMIC_ACQUIRE))
        rc = rondo_fail(ncclSystemError,
                        "watch a new communicator: the descriptors of this process's watch thread were "
                        "closed; abort the communicators there are, then make new ones");
    if (rc == ncclSuccess) {
        users++;
        *service_out = service;
    }
    pthread_mutex_unlock(&life_lock);
    return rc;
}

void rondo_watch_stop(void)
{
    pthread_mutex_lock(&life_lock);
    if (--users == 0) {
        __atomic_store_n(&is_ending, 1, __ATOMIC_RELEASE); /* seen within a look if the eventfd is gone */
        write_command(COMMAND_QUIT);
        rondo_thread_join(&thread);
        close_descriptors();
        rondo_descriptor_service_stop();
    }
    pthread_mutex_unlock(&life_lock);
}

/* Where the entry of fd is linked, or where a new one goes; the lock is held. */
static struct death **find_death(int fd)
{
    struct death **link = &deaths;

    while (*link && (*link)->fd != fd)
        link = &(*link)->next;
    return link;
}

ncclResult_t rondo_watch_add(int death_fd)
{
    struct death **link;
    ncclResult_t rc = ncclSuccess;

    if (death_fd < 0)
        return ncclSuccess;
    pthread_mutex_lock(&death_lock);
    link = find_death(death_fd);
    if (!*link) {
        struct death *death = calloc(1, sizeof(*death));

        if (!death)
            rc = rondo_fail(ncclSystemError, "watch a peer's process: out of memory");
        else
            rc = add_source(death_fd, SOURCE_DEATH, EPOLLIN | EPOLLET);
        if (rc == ncclSuccess) {
            death->fd = death_fd;
            *link = death;
        } else {
            free(death);
        }
    }
    if (rc == ncclSuccess)
        (*link)->count++;
    pthread_mutex_unlock(&death_lock);
    return rc;
}

void rondo_watch_remove(int death_fd)
{
    struct death **link;

    if (death_fd < 0)
        return;
    pthread_mutex_lock(&death_lock);
    link = find_death(death_fd);
    if (*link && --(*link)->count == 0) {
        struct death *death = *link;

        *link = death->next;
        free(death);
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, death_fd, NULL);
    }
    pthread_mutex_unlock(&death_lock);
}
