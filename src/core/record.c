/*
 * record.c - what ranks say of their operations, and finding out where they disagree.
 *
 * A record is written while others read: number goes to 0 first and is set last. Every access is atomic. The
 * writer's are releases, so that no field is seen before the 0; the reader's are acquires, so that the second
 * look at number comes last.
 */
#include "record.h"

#include "redop.h"

#include "device/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void store_record(struct rondo_record *to, const struct rondo_record *record)
{
    uint32_t kinds;

    memcpy(&kinds, &record->kind, sizeof(kinds)); /* kind, dtype, redop and the unused byte at once */
    __atomic_store_n(&to->number, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&to->fingerprint, record->fingerprint, __ATOMIC_RELEASE);
    __atomic_store_n(&to->count, record->count, __ATOMIC_RELEASE);
    __atomic_store_n((uint32_t *)(void *)&to->kind, kinds, __ATOMIC_RELEASE);
    __atomic_store_n(&to->root, record->root, __ATOMIC_RELEASE);
    __atomic_store_n(&to->history, record->history, __ATOMIC_RELEASE);
    __atomic_store_n(&to->number, record->number, __ATOMIC_RELEASE);
}

/* Reads a whole record, or false. */
static bool load_record(const struct rondo_record *from, struct rondo_record *record_out)
{
    struct rondo_record record;
    uint32_t kinds;

    record.number = __atomic_load_n(&from->number, __ATOMIC_ACQUIRE);
    record.fingerprint = __atomic_load_n(&from->fingerprint, __ATOMIC_ACQUIRE);
    record.count = __atomic_load_n(&from->count, __ATOMIC_ACQUIRE);
    kinds = __atomic_load_n((const uint32_t *)(const void *)&from->kind, __ATOMIC_ACQUIRE);
    record.root = __atomic_load_n(&from->root, __ATOMIC_ACQUIRE);
    record.history = __atomic_load_n(&from->history, __ATOMIC_ACQUIRE);
    memcpy(&record.kind, &kinds, sizeof(kinds));
    if (record.number == 0 || __atomic_load_n(&from->number, __ATOMIC_RELAXED) != record.number)
        return false;
    *record_out = record;
    return true;
}

/* Collectives of nothing do nothing, whatever else their arguments are: they agree with each other. */
static bool agree(const struct rondo_record *a, const struct rondo_record *b)
{
    return a->fingerprint == b->fingerprint || (a->count == 0 && b->count == 0);
}

static bool have_one_history(const struct rondo_record *a, const struct rondo_record *b)
{
    return a->history == b->history;
}

/* The multiplication is a bijection: once two histories differ, equal operations leave them different. */
static uint64_t extend(uint64_t history, const struct rondo_record *record)
{
    return (history ^ (record->count == 0 ? 1 : record->fingerprint)) * 0x9e3779b97f4a7c15u;
}

void rondo_record_write(struct ncclComm *comm, const struct rondo_task *task)
{
    struct rondo_record record = {
        .number = task->number,
        .fingerprint = rondo_fingerprint(task),
        .count = task->count,
        .kind = (uint8_t)task->operation,
        .dtype = (uint8_t)task->dtype,
        .redop = task->public_redop > 255 ? 255 : (uint8_t)task->public_redop,
        .root = task->root,
    };

    if (rondo_operation_is_message(task->operation)) {
        store_record(&comm->page->pairs[comm->pairs++ % RONDO_RECORDS], &record);
        return;
    }
    comm->history = record.history = extend(comm->history, &record);
    store_record(&comm->page->records[task->number % RONDO_RECORDS], &record);
    __atomic_store_n(&comm->page->enqueued, task->number, __ATOMIC_RELEASE); /* after its record */
}

bool rondo_record_read(const struct rondo_rank_page *page, uint64_t number, struct rondo_record *record_out)
{
    return load_record(&page->records[number % RONDO_RECORDS], record_out) && record_out->number == number;
}

bool rondo_record_read_pair(const struct rondo_rank_page *page, enum rondo_operation operation, int peer,
                            uint64_t number, struct rondo_record *record_out)
{
    for (int i = 0; i < RONDO_RECORDS; i++) {
        struct rondo_record record;

        if (load_record(&page->pairs[i], &record) && record.kind == operation && record.root == peer &&
            record.number == number) {
            *record_out = record;
            return true;
        }
    }
    return false;
}

const char *rondo_record_text(const struct rondo_record *record, char out[RONDO_RECORD_TEXT])
{
    const struct rondo_facts *facts = rondo_operation_facts(record->kind);
    char tail[48] = "";
    size_t used = 0;

    if (facts->reduces)
        used = (size_t)snprintf(tail, sizeof(tail), ", %s", rondo_redop_name((ncclRedOp_t)record->redop));
    if (facts->root != RONDO_ROOT_NONE)
        snprintf(tail + used, sizeof(tail) - used, ", %s %d",
                 facts->root == RONDO_ROOT_PEER ? "peer" : "root", record->root);
    snprintf(out, RONDO_RECORD_TEXT, "%s(count %llu, %s%s)", facts->name, (unsigned long long)record->count,
             rondo_dtype_name(record->dtype), tail);
    return out;
}

/* "rank 1" or "ranks 0, 2 and 9 more": those of the ranks that have `mark`. Appends at *used. */
static void append_ranks(const int *marks, int ranks, int mark, char *text, size_t bytes, size_t *used)
{
    enum { NAMED = 8 };
    int count = 0, named = 0;

    for (int r = 0; r < ranks; r++)
        count += marks[r] == mark;
    *used += (size_t)snprintf(text + *used, bytes - *used, count == 1 ? "rank" : "ranks");
    for (int r = 0; r < ranks && named < NAMED; r++) {
        if (marks[r] == mark && *used < bytes)
            *used += (size_t)snprintf(text + *used, bytes - *used, "%s %d", named++ ? "," : "", r);
    }
    if (count > NAMED && *used < bytes)
        *used += (size_t)snprintf(text + *used, bytes - *used, " and %d more", count - NAMED);
    if (*used >= bytes)
        *used = bytes - 1;
}

/* One group of equal records: "ranks 0, 2 called AllReduce(...)". */
static void append_group(const struct ncclComm *comm, uint64_t number, const int *marks, int mark, char *text,
                         size_t bytes, size_t *used)
{
    struct rondo_record record;
    char call[RONDO_RECORD_TEXT] = "something it has since forgotten";

    if (rondo_record_read(comm->members[mark].page, number, &record))
        rondo_record_text(&record, call);
    append_ranks(marks, comm->ranks, mark, text, bytes, used);
    *used += (size_t)snprintf(text + *used, bytes - *used, " called %s", call);
    if (*used >= bytes)
        *used = bytes - 1;
}

/* marks[r]: the lowest rank whose record equals r's, -1 without a record. Returns the mark that most ranks
 * have, -1 for none. */
static int group_records(const struct ncclComm *comm, uint64_t number,
                         bool (*are_equal)(const struct rondo_record *a, const struct rondo_record *b),
                         int *marks)
{
    int largest = -1, largest_size = 0;

    for (int r = 0; r < comm->ranks; r++) {
        struct rondo_record mine, other;
        int size = 0;

        marks[r] = -1;
        if (!comm->members[r].page || !rondo_record_read(comm->members[r].page, number, &mine))
            continue;
        marks[r] = r;
        for (int q = 0; q < r; q++) {
            if (marks[q] == q && rondo_record_read(comm->members[q].page, number, &other) &&
                are_equal(&other, &mine))
                marks[r] = q;
        }
        for (int q = 0; q <= r; q++)
            size += marks[q] == marks[r];
        if (size > largest_size) {
            largest_size = size;
            largest = marks[r];
        }
    }
    return largest;
}

bool rondo_record_is_complete(const struct ncclComm *comm, uint64_t number)
{
    for (int r = 0; r < comm->ranks; r++) {
        if (__atomic_load_n(&comm->members[r].page->enqueued, __ATOMIC_ACQUIRE) < number)
            return false;
    }
    return true;
}

bool rondo_record_disagree(const struct ncclComm *comm, uint64_t number, char *text_out, size_t bytes,
                           int *culprit_out)
{
    char name[RONDO_COMM_TEXT];
    size_t used;
    int culprit = -1;
    int *marks = malloc((size_t)comm->ranks * sizeof(*marks));

    if (!marks)
        return false;
    int largest = group_records(comm, number, agree, marks);
    used = (size_t)snprintf(text_out, bytes,
                            "the ranks of %s disagree about operation %llu: ", rondo_comm_text(comm, name),
                            (unsigned long long)number);
    for (int r = 0; r < comm->ranks; r++) {
        if (marks[r] != r || r == largest)
            continue;
        if (culprit < 0)
            culprit = r;
        append_group(comm, number, marks, r, text_out, bytes, &used);
        used += (size_t)snprintf(text_out + used, bytes - used, ", ");
        if (used >= bytes)
            used = bytes - 1;
    }
    if (culprit >= 0) {
        append_group(comm, number, marks, largest, text_out, bytes, &used);
        *culprit_out = culprit;
    }
    free(marks);
    return culprit >= 0;
}

bool rondo_record_disagree_before(const struct ncclComm *comm, uint64_t number, char *text_out, size_t bytes,
                                  int *culprit_out)
{
    char name[RONDO_COMM_TEXT];
    size_t used;
    int odd = 0;
    int *marks = malloc((size_t)comm->ranks * sizeof(*marks));

    if (!marks)
        return false;
    int largest = group_records(comm, number, have_one_history, marks);
    while (odd < comm->ranks && (marks[odd] < 0 || marks[odd] == largest))
        odd++;
    bool differs = odd < comm->ranks;
    if (differs) {
        used = (size_t)snprintf(text_out, bytes, "the ranks of %s have not called the same operations: ",
                                rondo_comm_text(comm, name));
        append_ranks(marks, comm->ranks, odd, text_out, bytes, &used);
        used += (size_t)snprintf(text_out + used, bytes - used, " called others than ");
        used = used < bytes ? used : bytes - 1;
        append_ranks(marks, comm->ranks, largest, text_out, bytes, &used);
        snprintf(text_out + used, bytes - used,
                 ", somewhere before operation %llu; the records of that have been overwritten since",
                 (unsigned long long)number);
        *culprit_out = odd;
    }
    free(marks);
    return differs;
}

bool rondo_record_disagree_pair(const struct ncclComm *comm, int from, int to, uint64_t number,
                                char *text_out, size_t bytes, int *culprit_out)
{
    struct rondo_record send, recv;
    char name[RONDO_COMM_TEXT];

    if (!rondo_record_read_pair(comm->members[from].page, RONDO_OP_SEND, to, number, &send) ||
        !rondo_record_read_pair(comm->members[to].page, RONDO_OP_RECV, from, number, &recv) ||
        send.fingerprint == recv.fingerprint)
        return false;
    snprintf(text_out, bytes,
             "message %llu from rank %d to rank %d of %s: rank %d sends %llu bytes (count %llu, %s), rank %d "
             "receives %llu bytes "
             "(count %llu, %s)",
             (unsigned long long)number, from, to, rondo_comm_text(comm, name), from,
             (unsigned long long)(send.count * rondo_dtype_bytes(send.dtype)), (unsigned long long)send.count,
             rondo_dtype_name(send.dtype), to,
             (unsigned long long)(recv.count * rondo_dtype_bytes(recv.dtype)), (unsigned long long)recv.count,
             rondo_dtype_name(recv.dtype));
    *culprit_out = to;
    return true;
}
