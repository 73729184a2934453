/*
 * log.c - NCCL_DEBUG's lines.
 *
 * What the environment asks for is one word (level and subsystems) and one descriptor, read by the first
 * line. Every line is built on the stack and written by one write(), without a lock: lines of different
 * threads and processes never mix.
 *
 * NCCL writes to stdout by default. This library never does, because programs whose stdout is data (pipes,
 * JSON) link it: the default here is stderr, and NCCL_DEBUG_FILE=/dev/stdout restores the other.
 */
#include "base/log.h"

#include "base/host.h"
#include "base/param.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LINE_BYTES 1400 /* an error's text, and the prefix */

#define WORD_IS_READ (UINT32_C(1) << 31)
#define WORD_LEVEL_SHIFT 24
#define WORD_SUBSYSTEMS UINT32_C(0xffffff)

static const char *const level_names[] = {
    [RONDO_LOG_NONE] = "NONE", [RONDO_LOG_VERSION] = "VERSION", [RONDO_LOG_WARN] = "WARN",
    [RONDO_LOG_INFO] = "INFO", [RONDO_LOG_ABORT] = "ABORT",     [RONDO_LOG_TRACE] = "TRACE",
};

/* NCCL's names; those without a bit are accepted and have no lines here. */
static const struct {
    const char *name;
    uint32_t bits;
} subsystem_names[] = {
    {"INIT", RONDO_LOG_INIT},
    {"COLL", RONDO_LOG_COLL},
    {"P2P", RONDO_LOG_P2P},
    {"SHM", RONDO_LOG_SHM},
    {"NET", RONDO_LOG_NET},
    {"GRAPH", RONDO_LOG_GRAPH},
    {"TUNING", RONDO_LOG_TUNING},
    {"ENV", RONDO_LOG_ENV},
    {"ALLOC", RONDO_LOG_ALLOC},
    {"CALL", RONDO_LOG_CALL},
    {"PROXY", RONDO_LOG_PROXY},
    {"BOOTSTRAP", RONDO_LOG_BOOTSTRAP},
    {"REG", RONDO_LOG_REG},
    {"DESTROY", RONDO_LOG_DESTROY},
    {"ALLOC_HOST", 0},
    {"NVLS", 0},
    {"PROFILE", 0},
    {"RAS", 0},
    {"ALL", WORD_SUBSYSTEMS},
};

static pthread_mutex_t config_lock = PTHREAD_MUTEX_INITIALIZER; /* whoever reads the environment */
static uint32_t config_word; /* released after config_fd; acquired by wanted_word() */
static int config_fd = STDERR_FILENO;
static int file_fd = -1;         /* once opened this number stays ours: later files are moved onto it */
static char file_path[PATH_MAX]; /* what file_fd is */

static void lock_config(void)
{
    pthread_mutex_lock(&config_lock);
}

static void unlock_config(void)
{
    pthread_mutex_unlock(&config_lock);
}

/* A child forked while another thread reads the environment must not inherit a lock that nobody will
 * release. 101 as in error.c. */
__attribute__((constructor(101))) static void guard_fork(void)
{
    pthread_atfork(lock_config, unlock_config, unlock_config);
}

/* A line about the log itself. It cannot go through the log. */
static void complain(const char *variable, const char *value, const char *what)
{
    char line[LINE_BYTES];
    int bytes = snprintf(line, sizeof(line), "%s:%d NCCL WARN %s=\"%.256s\": %s\n", rondo_host_name(),
                         getpid(), variable, value, what);

    if (bytes >= (int)sizeof(line))
        bytes = sizeof(line) - 1;
    if (write(STDERR_FILENO, line, (size_t)bytes) < 0)
        return; /* stderr is closed: nobody left to tell */
}

static uint32_t read_level(void)
{
    const char *name = rondo_param_name(RONDO_PARAM_DEBUG);
    const char *value = getenv(name);

    if (!value || !*value)
        return RONDO_LOG_NONE;
    for (uint32_t level = RONDO_LOG_NONE; level <= RONDO_LOG_TRACE; level++)
        if (strcasecmp(value, level_names[level]) == 0)
            return level;
    complain(name, value, "ignored: VERSION, WARN, INFO, ABORT or TRACE are accepted");
    return RONDO_LOG_NONE;
}

static uint32_t read_subsystems(void)
{
    const char *next = getenv(rondo_param_name(RONDO_PARAM_DEBUG_SUBSYS));
    uint32_t bits = 0;
    int is_inverted;

    if (!next || !*next)
        return RONDO_LOG_INIT | RONDO_LOG_BOOTSTRAP | RONDO_LOG_ENV;
    is_inverted = *next == '^';
    next += is_inverted;
    while (*next) {
        size_t bytes = strcspn(next, ",");

        for (size_t i = 0; i < sizeof(subsystem_names) / sizeof(subsystem_names[0]); i++)
            if (strlen(subsystem_names[i].name) == bytes &&
                strncasecmp(next, subsystem_names[i].name, bytes) == 0)
                bits |= subsystem_names[i].bits;
        next += bytes;
        next += *next == ',';
    }
    return (is_inverted ? ~bits : bits) & WORD_SUBSYSTEMS;
}

/* Replace %h by the host and %p by the process; false when the result does not fit. */
static bool expand_path(const char *pattern, char *out, size_t bytes)
{
    size_t used = 0;

    for (; *pattern; pattern++) {
        int more;

        if (pattern[0] == '%' && pattern[1] == 'h')
            more = snprintf(out + used, bytes - used, "%s", rondo_host_name()), pattern++;
        else if (pattern[0] == '%' && pattern[1] == 'p')
            more = snprintf(out + used, bytes - used, "%d", getpid()), pattern++;
        else
            more = snprintf(out + used, bytes - used, "%c", *pattern),
            pattern += pattern[0] == '%' && pattern[1] == '%';
        if ((size_t)more >= bytes - used)
            return false;
        used += (size_t)more;
    }
    return true;
}

/* The descriptor of a file by that path; stderr, after one complaint, when it cannot be written. */
static int open_file(const char *path)
{
    const char *name = rondo_param_name(RONDO_PARAM_DEBUG_FILE);
    /* O_NONBLOCK: a FIFO without a reader must be an error, not a hang. */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);

    if (fd < 0) {
        char what[128];

        snprintf(what, sizeof(what), "%s; lines go to stderr instead", strerror(errno));
        complain(name, path, what);
        return STDERR_FILENO;
    }
    if (file_fd < 0) {
        file_fd = fd;
    } else {
        dup3(fd, file_fd,
             O_CLOEXEC); /* in one step, so that a line being written goes to one file or the other */
        close(fd);
    }
    return file_fd;
}

static int read_sink(void)
{
    const char *pattern = getenv(rondo_param_name(RONDO_PARAM_DEBUG_FILE));
    char path[PATH_MAX];
    int fd;

    if (!pattern || !*pattern || strcmp(pattern, "/dev/stderr") == 0)
        return STDERR_FILENO;
    if (strcmp(pattern, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (!expand_path(pattern, path, sizeof(path))) {
        complain(rondo_param_name(RONDO_PARAM_DEBUG_FILE), pattern,
                 "too long a path; lines go to stderr instead");
        return STDERR_FILENO;
    }
    if (file_fd >= 0 && strcmp(path, file_path) == 0)
        return file_fd;
    fd = open_file(path);
    strcpy(file_path, fd == STDERR_FILENO ? "" : path);
    return fd;
}

/* Level and subsystems, read from the environment when no line has done so yet. */
static uint32_t wanted_word(void)
{
    uint32_t word = __atomic_load_n(&config_word, __ATOMIC_ACQUIRE);

    if (word & WORD_IS_READ)
        return word;
    lock_config();
    word = __atomic_load_n(&config_word, __ATOMIC_ACQUIRE);
    if (!(word & WORD_IS_READ)) {
        uint32_t level = read_level();

        word = WORD_IS_READ | level << WORD_LEVEL_SHIFT | read_subsystems();
        /* Without a level there is no file: only alarms are written then. */
        __atomic_store_n(&config_fd, level != RONDO_LOG_NONE ? read_sink() : STDERR_FILENO, __ATOMIC_RELAXED);
        __atomic_store_n(&config_word, word, __ATOMIC_RELEASE);
    }
    unlock_config();
    return word;
}

bool rondo_log_enabled(enum rondo_log_level level, unsigned subsystems)
{
    int saved = errno;
    uint32_t word = wanted_word();

    errno = saved;
    if (level > (word & ~WORD_IS_READ) >> WORD_LEVEL_SHIFT)
        return false;
    return level <= RONDO_LOG_WARN || (word & WORD_SUBSYSTEMS & subsystems) != 0;
}

void rondo_log(enum rondo_log_level level, unsigned subsystems, const char *format, ...)
{
    int saved = errno;
    char line[LINE_BYTES];
    va_list arguments;
    int prefix = 0, text;
    size_t bytes;

    if (!rondo_log_enabled(level, subsystems))
        return;
    if (level != RONDO_LOG_VERSION)
        prefix = snprintf(line, sizeof(line), "%s:%d:%d NCCL %s ", rondo_host_name(), getpid(), gettid(),
                          level_names[level == RONDO_LOG_ALARM ? RONDO_LOG_WARN : level]);
    va_start(arguments, format);
    text = vsnprintf(line + prefix, sizeof(line) - 1 - (size_t)prefix, format, arguments);
    va_end(arguments);
    if (text < 0)
        return; /* a format that cannot be printed */
    bytes = strlen(line);
    for (size_t i = 0; i < bytes; i++) /* quoted bytes of strangers must not look like lines of ours */
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    line[bytes++] = '\n';
    while (write(__atomic_load_n(&config_fd, __ATOMIC_RELAXED), line, bytes) < 0 && errno == EINTR)
        ; /* any other failure loses the line: there is nobody to tell */
    errno = saved;
}

void rondo_log_reset(void)
{
    __atomic_store_n(&config_word, 0, __ATOMIC_RELEASE);
}
