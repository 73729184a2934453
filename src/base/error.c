/* error.c - the last error text, of the process and of each thread. */
#include "base/error.h"

#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define TEXT_BYTES 1024

typedef void sink_function(ncclResult_t code, const char *file, int line, const char *text);

static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static char text[TEXT_BYTES];
static _Thread_local char own_text[TEXT_BYTES];
static sink_function *forward;

static void lock_text(void)
{
    pthread_mutex_lock(&text_lock);
}

static void unlock_text(void)
{
    pthread_mutex_unlock(&text_lock);
}

/* A child forked while another thread reports must not inherit a lock that nobody will release. 101 is
 * before all others: fork() takes the locks in the reverse order, and those of other files may be held by
 * who reports. */
__attribute__((constructor(101))) static void guard_fork(void)
{
    pthread_atfork(lock_text, unlock_text, unlock_text);
}

ncclResult_t rondo_error_record(ncclResult_t code, const char *file, int line, const char *format, ...)
{
    int saved = errno;
    char message[TEXT_BYTES];
    va_list arguments;
    sink_function *sink = __atomic_load_n(&forward, __ATOMIC_ACQUIRE); /* pairs with rondo_error_forward() */

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    strcpy(own_text, message); /* same size */
    lock_text();
    strcpy(text, message); /* same size */
    unlock_text();
    if (sink) /* the other instance writes the log line */
        sink(code, file, line, message);
    else if (rondo_log_enabled(RONDO_LOG_WARN, 0))
        rondo_log(RONDO_LOG_WARN, 0, "%s (%s:%d)", message,
                  strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line);
    errno = saved;
    return code;
}

const char *rondo_error_last(void)
{
    static _Thread_local char copy[TEXT_BYTES];

    lock_text();
    strcpy(copy, text); /* same size */
    unlock_text();
    return copy;
}

const char *rondo_error_own(void)
{
    return own_text;
}

ncclResult_t rondo_error_restate(ncclResult_t code, const char *told)
{
    if (told != own_text)
        snprintf(own_text, sizeof(own_text), "%s", told);
    return strcmp(rondo_error_last(), told) == 0 ? code : rondo_fail(code, "%s", told);
}

void rondo_error_forward(sink_function *sink)
{
    __atomic_store_n(&forward, sink, __ATOMIC_RELEASE); /* pairs with rondo_error_record() */
}

const char *rondo_error_system(int error)
{
    static _Thread_local char meaning[160];
    int saved = errno;
    struct rlimit limit = {0};

    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        snprintf(meaning, sizeof(meaning), "too many open files: RLIMIT_NOFILE is %llu, raise it (ulimit -n)",
                 (unsigned long long)limit.rlim_cur);
    else if (error == ENFILE)
        snprintf(meaning, sizeof(meaning), "too many open files on this host: raise fs.file-max");
    else if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(meaning, sizeof(meaning), "file too large: RLIMIT_FSIZE is %llu bytes, raise it (ulimit -f)",
                 (unsigned long long)limit.rlim_cur);
    else
        snprintf(meaning, sizeof(meaning), "%s", strerror(error));
    errno = saved;
    return meaning;
}
