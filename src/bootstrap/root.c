/*
 * root.c - collecting the ranks of a job.
 *
 * A root is collecting until it knows the outcome. With a good one it closes its listener first, so that
 * whoever has been told may open the same port again at once, and then answers. With a bad one it stays for a
 * while to tell those who come later, too. Either way a rank closes its connection when it has its answer.
 */
#include "root.h"

#include "gate.h"
#include "link.h"
#include "loop.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
/* Choices: late and slow ranks are told more surely the longer a root stays. */
#define LINGER_NS (2 * SECOND_NS)    /* after a failure, for ranks still to come */
#define FAREWELL_NS (10 * SECOND_NS) /* for answers to be read */
#define BACKLOG 4096
#define TEXT_BYTES 900
enum state { COLLECTING, ANSWERED, FAILED };
/* What is known of a rank. */
enum { ABSENT, CAME, TOLD /* of a failure */ };

/* A rank that came. */
struct claim {
    struct rondo_link *link;
    struct rondo_report report;
};

struct root {
    struct rondo_loop_source source; /* first */
    struct rondo_gate gate;
    struct rondo_secret secret;
    struct root *next;
    bool is_fixed;
    enum state state;
    uint64_t deadline; /* of the state */
    uint64_t failed_ns;
    uint64_t alarm; /* when to say aloud who is missing; UINT64_MAX: not before a rank comes, or said */
    unsigned char session[RONDO_SESSION_BYTES];
    struct rondo_link *links; /* all that were let in; peer is the rank once it has reported, -1 before */
    struct claim *claims;     /* [ranks], from the first report on */
    unsigned char *presence;  /* [expected], ABSENT, CAME or TOLD */
    int ranks, came, first_rank;
    int expected; /* ranks to be told of a failure: the most that any report speaks of */
    int told;     /* ranks that were told of a failure, those that came again not counted anew */
    ncclResult_t code;
    char text[TEXT_BYTES];
};

static struct root *roots;

static uint64_t init_deadline(void)
{
    return rondo_clock_deadline((uint64_t)rondo_param_int(RONDO_PARAM_INIT_TIMEOUT));
}

static void remove_link(struct root *root, struct rondo_link *link)
{
    struct rondo_link **at = &root->links;

    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
}

static void free_root(struct root *root)
{
    struct root **at = &roots;

    while (*at != root)
        at = &(*at)->next;
    *at = root->next;
    rondo_gate_close(&root->gate);
    while (root->links) {
        struct rondo_link *link = root->links;

        remove_link(root, link);
        rondo_link_destroy(link);
    }
    free(root->claims);
    free(root->presence);
    rondo_auth_wipe(&root->secret, sizeof(root->secret));
    free(root);
}

/* --- answers --- */

static void send_answer(struct root *root, struct rondo_link *link, ncclResult_t code, const void *tail,
                        size_t bytes)
{
    unsigned char
        buffer[sizeof(struct rondo_answer) + RONDO_ROUNDS_MOST * sizeof(union rondo_address) + TEXT_BYTES];
    struct rondo_answer answer = {.code = code, .bytes = (uint32_t)bytes};

    memcpy(answer.session, root->session, sizeof(answer.session));
    memcpy(buffer, &answer, sizeof(answer));
    memcpy(buffer + sizeof(answer), tail, bytes);
    /* Without memory for an answer the link is all there is left to tell with. */
    if (rondo_link_send(link, RONDO_FRAME_ANSWER, 0, buffer, sizeof(answer) + bytes) != ncclSuccess) {
        remove_link(root, link);
        rondo_link_destroy(link);
    }
}

static void mark_told(struct root *root, int rank)
{
    root->told++;
    if (rank < root->expected)
        root->presence[rank] = TOLD;
}

static bool was_told(const struct root *root, int rank)
{
    return rank >= 0 && rank < root->expected && root->presence[rank] == TOLD;
}

static void tell_failure(struct root *root, struct rondo_link *link)
{
    send_answer(root, link, root->code, root->text, strlen(root->text));
}

/* The failure was there before the rank. */
static void tell_late(struct root *root, struct rondo_link *link)
{
    char text[TEXT_BYTES];

    if (!was_told(root, link->peer))
        mark_told(root, link->peer);
    if (root->code != ncclTimeout) {
        tell_failure(root, link);
        return;
    }
    snprintf(text, sizeof(text), "%.*s; rank %d came %.1f s after these had given up", TEXT_BYTES - 80,
             root->text, link->peer, (double)(rondo_clock_ns() - root->failed_ns) / 1e9);
    send_answer(root, link, root->code, text, strlen(text));
}

/* A rank that comes to a fixed address from now on may as well be one of the next run, which tries until that
 * has a root. Nothing in its report tells the two apart. */
static void leave_fixed_address(struct root *root)
{
    if (root->is_fixed)
        rondo_gate_close(&root->gate);
}

/* The outcome is bad: tell all who came, and stay for those who will. */
__attribute__((format(printf, 3, 4))) static void fail_root(struct root *root, ncclResult_t code,
                                                            const char *format, ...)
{
    va_list arguments;
    struct rondo_link *link, *next;

    va_start(arguments, format);
    vsnprintf(root->text, sizeof(root->text), format, arguments);
    va_end(arguments);
    root->code = code;
    root->state = FAILED;
    root->failed_ns = rondo_clock_ns();
    root->deadline = root->failed_ns + LINGER_NS;
    if (!root->is_fixed &&
        code != ncclTimeout) /* late ranks shall hear the reason; the port is nobody else's */
        root->deadline = init_deadline();
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_BOOTSTRAP, "root: %s", root->text);
    for (link = root->links; link; link = next) {
        next = link->next;
        if (link->peer < 0)
            continue;
        mark_told(root, link->peer); /* two with one number are there at once, so they are two */
        tell_failure(root, link);
    }
}

static void answer_all(struct root *root)
{
    int rounds = rondo_rounds(root->ranks);
    union rondo_address addresses[RONDO_ROUNDS_MOST];

    rondo_gate_close(&root->gate);
    root->state = ANSWERED;
    root->deadline = rondo_clock_ns() + FAREWELL_NS;
    rondo_log(RONDO_LOG_INFO, RONDO_LOG_BOOTSTRAP, "root: all %d ranks came", root->ranks);
    for (int rank = 0; rank < root->ranks; rank++) {
        for (int round = 0; round < rounds; round++)
            addresses[round] =
                root->claims[(rank - (1 << round) % root->ranks + root->ranks) % root->ranks].report.listener;
        send_answer(root, root->claims[rank].link, ncclSuccess, addresses,
                    (size_t)rounds * sizeof(addresses[0]));
    }
}

/* --- reports --- */

/* There may be as many ranks as the report says. Without memory to remember them they are not waited for. */
static void expect_ranks(struct root *root, int ranks)
{
    unsigned char *larger;

    if (ranks <= root->expected || ranks > RONDO_RANKS_MOST)
        return;
    larger = realloc(root->presence, (size_t)ranks);
    if (!larger)
        return;
    memset(larger + root->expected, ABSENT, (size_t)(ranks - root->expected));
    root->presence = larger;
    root->expected = ranks;
}

/* The first report says how many ranks there are; the others must agree. */
static bool begin(struct root *root, const struct rondo_report *report)
{
    uint64_t limit;

    if (report->ranks < 1 || report->ranks > RONDO_RANKS_MOST) {
        fail_root(root, ncclInvalidUsage, "rank %d says there are %d ranks: 1 to %d are possible",
                  report->rank, report->ranks, RONDO_RANKS_MOST);
        return false;
    }
    root->claims = calloc((size_t)report->ranks, sizeof(*root->claims));
    if (!root->claims || root->expected < report->ranks) {
        fail_root(root, ncclSystemError, "the root has no memory for %d ranks", report->ranks);
        return false;
    }
    root->ranks = report->ranks;
    root->first_rank = report->rank;
    root->alarm = rondo_clock_deadline((uint64_t)rondo_param_int(RONDO_PARAM_STALL_SECONDS));
    limit = init_deadline();
    if (limit > root->deadline)
        root->deadline = limit;
    return true;
}

/* Whether the report fits the others; tells everybody when not. */
static bool check_report(struct root *root, const struct rondo_report *report)
{
    char here[RONDO_ADDRESS_TEXT], there[RONDO_ADDRESS_TEXT], text[TEXT_BYTES];
    const struct rondo_report *first = root->ranks > 0 ? &root->claims[root->first_rank].report : NULL;

    if (!rondo_reports_agree(report, first, text, sizeof(text))) {
        fail_root(root, ncclInvalidUsage, "%s", text);
        return false;
    }
    if (!first)
        return begin(root, report);
    if (root->presence[report->rank]) {
        fail_root(root, ncclInvalidUsage, "rank %d of %d is claimed twice, by %s and by %s", report->rank,
                  root->ranks, rondo_address_text(&root->claims[report->rank].report.listener, here),
                  rondo_address_text(&report->listener, there));
        return false;
    }
    return true;
}

/* The answer must come before the rank that waits least gives up. */
static void heed_patience(struct root *root, uint32_t patience_ms)
{
    uint64_t patience, margin, limit;

    if (patience_ms == UINT32_MAX)
        return;
    patience = patience_ms * UINT64_C(1000000);
    margin = patience / 4 < SECOND_NS ? patience / 4 : SECOND_NS;
    limit = rondo_clock_ns() + patience - margin;
    if (limit < root->deadline)
        root->deadline = limit;
}

/* A rank cannot start: nobody need wait for it. */
static void take_failure(struct root *root, const struct rondo_report *report, const char *reason)
{
    bool is_code =
        report->code > ncclSuccess && report->code < ncclNumResults && report->code != ncclInProgress;

    fail_root(root, is_code ? (ncclResult_t)report->code : ncclInternalError, "rank %d failed: %.*s",
              report->rank, (int)report->bytes, reason);
}

static void take_report(struct root *root, struct rondo_link *link, const struct rondo_report *report,
                        const char *reason)
{
    link->peer = report->rank < 0 ? RONDO_RANKS_MOST : report->rank; /* reported: it is told things */
    expect_ranks(root, report->ranks);
    if (root->state == FAILED) {
        tell_late(root, link);
        return;
    }
    if (!check_report(root, report))
        return;
    if (report->code != ncclSuccess) {
        take_failure(root, report, reason);
        return;
    }
    root->claims[report->rank] = (struct claim){.link = link, .report = *report};
    root->presence[report->rank] = CAME;
    root->came++;
    heed_patience(root, report->patience_ms);
    if (root->came == root->ranks)
        answer_all(root);
}

/* Whether there is nobody left to tell. */
static bool is_over(const struct root *root, uint64_t now)
{
    if (root->state == COLLECTING)
        return now >= root->deadline && root->ranks == 0;
    if (now >= root->deadline)
        return true;
    if (root->links)
        return false;
    return root->state == ANSWERED || root->gate.handle.fd < 0 ||
           (root->expected > 0 && root->told >= root->expected);
}

/* A tick decides whether a root is over; call after any change. */
static void reschedule(struct root *root)
{
    uint64_t now = rondo_clock_ns();
    uint64_t next = rondo_gate_tick(&root->gate, now);

    if (root->deadline < next)
        next = root->deadline;
    if (root->state == COLLECTING && root->alarm < next)
        next = root->alarm;
    root->source.wake = is_over(root, now) ? 0 : next;
}

/* --- the links --- */

static bool on_frame(struct rondo_link *link, const struct rondo_frame *head, void *data)
{
    struct root *root = link->owner;
    struct rondo_report report;
    bool is_report =
        link->peer < 0 && head->kind == RONDO_FRAME_REPORT && rondo_report_read(data, head->bytes, &report);

    if (is_report)
        take_report(root, link, &report, (const char *)data + sizeof(report));
    free(data);
    reschedule(root);
    return is_report;
}

static void on_opened(struct rondo_link *link)
{
    (void)link; /* its report follows */
}

static void on_closed(struct rondo_link *link, enum rondo_link_end end, int detail)
{
    struct root *root = link->owner;
    char text[RONDO_LINK_END_TEXT], who[RONDO_ADDRESS_TEXT];

    remove_link(root, link);
    if (root->state == COLLECTING && link->peer >= 0) {
        int rank = link->peer;

        link->peer = -1;
        fail_root(root, ncclRemoteError, "rank %d (%s) went away before all %d ranks had come: %s", rank,
                  rondo_address_text(&root->claims[rank].report.listener, who), root->ranks,
                  rondo_link_end_text(end, detail, text));
        mark_told(root, rank); /* it will not come again */
    }
    rondo_link_destroy(link);
    reschedule(root);
}

static const struct rondo_link_ops link_ops = {.opened = on_opened, .frame = on_frame, .closed = on_closed};

/* A rank that was told of the failure and is here again: turned away, it tries until its run has a root. */
static bool is_of_next_run(const struct root *root, int rank)
{
    return root->is_fixed && root->state == FAILED && was_told(root, rank);
}

static bool admit(void *owner, struct rondo_link *link, const struct rondo_entry *entry)
{
    struct root *root = owner;

    if (entry->purpose != RONDO_PURPOSE_ROOT || is_of_next_run(root, entry->from))
        return false;
    link->ops = &link_ops;
    link->owner = root;
    link->next = root->links;
    root->links = link;
    return true;
}

static void on_gate_changed(void *owner)
{
    struct root *root = owner;

    if (root->state == COLLECTING && rondo_gate_is_starved(&root->gate))
        fail_root(root, ncclSystemError,
                  "the root, in the process %s, cannot accept more connections than those of %d ranks, and "
                  "each needs one: %s",
                  root->is_fixed ? "of rank 0" : "that made the unique id", root->came,
                  rondo_error_system(root->gate.starved));
    reschedule(root);
}

static const struct rondo_gate_ops gate_ops = {.admit = admit, .changed = on_gate_changed};

/* --- life --- */

static void end_root(struct root *root)
{
    rondo_loop_detach(&root->source);
    free_root(root);
}

static void give_up_waiting(struct root *root)
{
    char missing[512];
    int count = rondo_ranks_missing(root->presence, root->ranks, missing, sizeof(missing));

    leave_fixed_address(root);
    fail_root(root, root->gate.starved ? ncclSystemError : ncclTimeout,
              "%s %s missing: %d of %d ranks came in time%s%s", count == 1 ? "rank" : "ranks", missing,
              root->came, root->ranks,
              root->gate.starved ? "; the root could not accept all connections: " : "",
              root->gate.starved ? rondo_error_system(root->gate.starved) : "");
}

/* Whoever waits hears nothing until time is up: say early, and aloud, for whom. */
static void raise_alarm(struct root *root)
{
    char missing[512];
    int count = rondo_ranks_missing(root->presence, root->ranks, missing, sizeof(missing));

    root->alarm = UINT64_MAX;
    rondo_log(RONDO_LOG_ALARM, RONDO_LOG_BOOTSTRAP,
              "%s %s of %d %s not called ncclCommInitRank %d s after the first; a thread that makes several "
              "ranks must put the calls between ncclGroupStart and ncclGroupEnd",
              count == 1 ? "rank" : "ranks", missing, root->ranks, count == 1 ? "has" : "have",
              (int)rondo_param_int(RONDO_PARAM_STALL_SECONDS));
}

static void on_tick(struct rondo_loop_source *source, uint64_t now)
{
    struct root *root = (struct root *)source;

    if (is_over(root, now)) {
        end_root(root);
        return;
    }
    if (root->state == COLLECTING && now >= root->deadline)
        give_up_waiting(root);
    if (root->state == COLLECTING && now >= root->alarm)
        raise_alarm(root);
    reschedule(root);
}

static void on_abandon(struct rondo_loop_source *source)
{
    free_root((struct root *)source);
}

/* The newest root of this process at address, NULL if there is none. */
static struct root *find_root(const union rondo_address *address)
{
    struct root *root = roots;

    while (root && memcmp(&root->gate.address, address, sizeof(*address)) != 0)
        root = root->next;
    return root;
}

/* A failed root of this process that lingers at a fixed address must not keep the next run from it. */
static void end_failed_root(const union rondo_address *address)
{
    struct root *root = find_root(address);

    if (root && root->is_fixed && root->state == FAILED)
        end_root(root);
}

static ncclResult_t start_locked(struct root *root, const union rondo_address *address,
                                 union rondo_address *address_out)
{
    ncclResult_t rc;

    if (root->is_fixed)
        end_failed_root(address);
    rc = rondo_gate_open(&root->gate, address, BACKLOG, &root->secret, &gate_ops, root);
    if (rc != ncclSuccess)
        return rc;
    root->next = roots;
    roots = root;
    *address_out = root->gate.address;
    rc = rondo_loop_attach(&root->source);
    if (rc != ncclSuccess)
        goto close_gate;
    rc = rondo_gate_serve(&root->gate);
    if (rc == ncclSuccess)
        return ncclSuccess;
    rondo_loop_detach(&root->source);
close_gate:
    rondo_gate_close(&root->gate);
    roots = root->next;
    return rc;
}

ncclResult_t rondo_root_start(const union rondo_address *address, const struct rondo_secret *secret,
                              bool is_fixed, union rondo_address *address_out)
{
    struct root *root = calloc(1, sizeof(*root));
    ncclResult_t rc;

    if (!root)
        return rondo_fail(ncclSystemError, "start a root: out of memory");
    root->source.tick = on_tick;
    root->source.abandon = on_abandon;
    root->secret = *secret;
    root->is_fixed = is_fixed;
    root->deadline = init_deadline();
    root->alarm = UINT64_MAX;
    root->source.wake = root->deadline;
    rc = rondo_random_bytes(root->session, sizeof(root->session));
    if (rc == ncclSuccess) {
        rondo_loop_lock();
        rc = start_locked(root, address, address_out);
        rondo_loop_unlock_settled();
    }
    if (rc != ncclSuccess) {
        rondo_auth_wipe(&root->secret, sizeof(root->secret));
        free(root);
    }
    return rc;
}

void rondo_root_give_up(const union rondo_address *address)
{
    struct root *root;

    rondo_loop_lock();
    root = find_root(address);
    if (root && root->is_fixed && root->state == COLLECTING) {
        leave_fixed_address(root);
        fail_root(root, ncclRemoteError, "rank 0 gave up before all ranks had come");
        reschedule(root);
        rondo_loop_wake();
    }
    rondo_loop_unlock();
}

bool rondo_root_hear(const union rondo_address *address, const struct rondo_report *report,
                     const char *reason)
{
    struct root *root;
    bool is_there;

    rondo_loop_lock();
    root = find_root(address);
    is_there = root && root->gate.handle.fd >= 0; /* else it has left: it is of another run */
    if (is_there) {
        expect_ranks(root, report->ranks);
        if (root->state == COLLECTING && check_report(root, report))
            take_failure(root, report, reason);
        if (!was_told(root, report->rank))
            mark_told(root, report->rank);
        reschedule(root);
        rondo_loop_wake();
    }
    rondo_loop_unlock();
    return is_there;
}

bool rondo_root_has_starved(const union rondo_address *address, ncclResult_t *code_out, const char **text_out)
{
    const struct root *root = find_root(address);

    if (!root || root->state != FAILED || root->gate.starved == 0)
        return false;
    *code_out = root->code;
    *text_out = root->text;
    return true;
}

bool rondo_root_has_news(const union rondo_address *address)
{
    const struct root *root;
    bool has_news;

    rondo_loop_lock();
    root = find_root(address);
    has_news = root && root->state == FAILED && root->code != ncclTimeout;
    rondo_loop_unlock();
    return has_news;
}
