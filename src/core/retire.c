/* retire.c - mailboxes that wait for the last peer to be past them. */
#include "retire.h"

#include "base/log.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct retired {
    struct retired *next;
    const struct rondo_device_ops *ops;
    void *mailbox;
    uint64_t expected;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct retired *waiting;

/* Acquire: pairs with the release with which a peer departs; its last writes come before the memory is used
 * again. */
static bool is_free(const struct retired *retired)
{
    const struct rondo_rank_page *page = retired->mailbox;

    return __atomic_load_n(&page->departed, __ATOMIC_ACQUIRE) >= retired->expected;
}

void rondo_mailbox_reap(void)
{
    pthread_mutex_lock(&lock);
    for (struct retired **link = &waiting; *link;) {
        struct retired *retired = *link;

        if (!is_free(retired)) {
            link = &retired->next;
            continue;
        }
        *link = retired->next;
        (void)retired->ops->release(retired->mailbox);
        free(retired);
    }
    pthread_mutex_unlock(&lock);
}

void rondo_mailbox_retire(const struct rondo_device_ops *ops, void *mailbox, uint64_t expected)
{
    struct retired *retired = malloc(sizeof(*retired));

    if (!retired) { /* without a note of it the memory is safe, only never used again */
        rondo_log(RONDO_LOG_WARN, 0, "retire a mailbox at %p: out of memory; it stays until the process ends",
                  mailbox);
        return;
    }
    *retired = (struct retired){.ops = ops, .mailbox = mailbox, .expected = expected};
    pthread_mutex_lock(&lock);
    retired->next = waiting;
    waiting = retired;
    pthread_mutex_unlock(&lock);
    rondo_mailbox_reap();
}
