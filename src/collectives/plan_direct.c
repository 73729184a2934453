/*
 * plan_direct.c - collectives between each rank and each other one: one work a channel, each with its range
 * of the data. Large ones read their peers' memory where it lies (device/pull.h has what goes when), small
 * ones write into their peers' slots (device/push.h).
 *
 * All ranks must decide alike, so the decision looks at the operation and at what they have agreed on.
 * Whether a rank's buffers can be mapped is its own affair: what would be read goes through its bounce area
 * then.
 */
#include "chunking.h"
#include "plan_parts.h"

#include "base/error.h"
#include "device/push.h"

/* A chunk is a vector of 16 elements at least, whatever the type. */
#define CHUNK_BYTES_MIN 128u

/*
 * Bytes of the larger of a rank's buffers, from which on going directly is faster. RONDO_DIRECT_BYTES=0, and
 * the same with a number no message has, OPERATION_perf --procs N -b 4K -e 4M -f 4 -n 20 -c 0 in turn,
 * medians of 5 (for 512 KiB -b 512K -e 512K, of 7), on 2 CPUs with other work beside them, took in us:
 *
 *                        2 processes, direct / other      4 processes, direct / other
 *                        256 KiB   512 KiB   1 MiB        256 KiB   512 KiB   1 MiB
 *     all-reduce         56/46     39/56     93/164       203/200   126/174   418/558
 *     all-gather         48/47     25/32     56/82        217/202   74/88     198/297
 *     reduce-scatter     51/102    26/36     66/376       196/188   75/86     339/374
 *     broadcast          23/21     25/31     61/83        177/137   51/106    277/833
 *     reduce             47/50     37/31     84/101       174/138   98/112    321/370
 *     all-to-all         36/48     29/33     67/200       186/174   78/124    282/401
 *     gather             37/40     14/19     31/228       113/131   26/34     44/70
 *     scatter            33/34     16/17     28/56        108/121   25/36     47/140
 *
 * Figures of one line vary by half from column to column; within a pair they were taken side by side.
 */
#define DIRECT_BYTES (512u * 1024u)
#define DIRECT_BYTES_REDUCE (1024u * 1024u)

/*
 * Bytes for one peer up to which one-shot works are faster. NCCL_ALGO=Direct NCCL_PROTO=LL and
 * NCCL_ALGO=^Direct in turn, OPERATION_perf --procs N -b 512 -e 4K -f 2 -n 30 -w 5 -c 0 (with blocks for all
 * ranks, N times those sizes), medians of 7, on 2 CPUs with other work beside them, took in us:
 *
 *                     2 processes, LL / other     4 processes, LL / other    8 processes, LL / other
 *                     1 KiB   2 KiB   4 KiB       1 KiB   2 KiB   4 KiB      1 KiB    2 KiB    4 KiB
 *     all-reduce      7/11    9/12    15/13       21/69   35/71   58/71      163/412  253/396  375/324
 *     all-gather      7/6     9/7     15/6        21/48   34/44   56/35      163/227  264/263  381/221
 *     reduce-scatter  7/6     9/7     15/6        22/35   37/46   57/36      139/230  223/254  301/165
 *     broadcast       2/2     3/2     5/2         4/4     9/8     18/5       14/16    26/24    80/25
 *     reduce          2/2     4/3     5/2         4/4     8/6     17/5       13/12    24/19    45/19
 *     all-to-all      6/6     9/6     15/6        24/32   35/31   57/33      115/350  276/353  387/353
 *     gather          2/2     3/2     5/2         4/4     14/5    15/5       10/13    18/13    47/10
 *     scatter         2/2     3/2     5/2         5/4     7/5     19/5       13/12    28/17    99/12
 *
 * Threads (-t N) compared alike. 2 KiB are two slots, for which only all-reduce always gains. At 1 KiB 2
 * processes gain nothing or lose a little; it was chosen for what 4 and 8 gain. The perf
 * programs call one operation after another, which hides the latency of those with a root; that they go
 * directly is a choice.
 */
#define ONESHOT_BYTES 1024u
#define ONESHOT_BYTES_ALL_REDUCE 2048u

/* Beyond this many ranks one-shot works are not the default: twice what was measured, and slots that have
 * been in use take 32 KiB for each pair of ranks. A choice. */
#define ONESHOT_RANKS 16u

static enum rondo_work_kind kind_of(enum rondo_operation operation)
{
    switch (operation) {
    case RONDO_OP_ALL_REDUCE:
        return RONDO_WORK_DIRECT_ALL_REDUCE;
    case RONDO_OP_ALL_GATHER:
        return RONDO_WORK_DIRECT_ALL_GATHER;
    case RONDO_OP_REDUCE_SCATTER:
        return RONDO_WORK_DIRECT_REDUCE_SCATTER;
    case RONDO_OP_BROADCAST:
        return RONDO_WORK_DIRECT_BROADCAST;
    case RONDO_OP_REDUCE:
        return RONDO_WORK_DIRECT_REDUCE;
    case RONDO_OP_ALL_TO_ALL:
        return RONDO_WORK_DIRECT_ALL_TO_ALL;
    case RONDO_OP_GATHER:
        return RONDO_WORK_DIRECT_GATHER;
    case RONDO_OP_SCATTER:
        return RONDO_WORK_DIRECT_SCATTER;
    default:
        return RONDO_WORK_NUM;
    }
}

/* Results of a narrow type that are rounded once differ from those rounded at every step, as chains make
 * them, but for the least and the greatest, which are never rounded. When results must not depend on how a
 * buffer is cut into calls, all sizes take one way. */
static bool must_be_chain(const struct rondo_plan_context *context, const struct rondo_task *task)
{
    return context->is_deterministic && !context->is_precise &&
           rondo_operation_facts(task->operation)->reduces && task->redop != RONDO_REDOP_MIN &&
           task->redop != RONDO_REDOP_MAX &&
           rondo_dtype_wide_bytes(task->dtype) != rondo_dtype_bytes(task->dtype);
}

static enum rondo_direct_use use_pulled(const struct rondo_plan_context *context,
                                        const struct rondo_task *task)
{
    uint64_t measured = task->operation == RONDO_OP_REDUCE ? DIRECT_BYTES_REDUCE : DIRECT_BYTES;
    uint64_t least = context->direct_bytes == UINT64_MAX ? measured : context->direct_bytes;

    if (rondo_layout_piece_bytes(context->layout) / context->layout->ranks < CHUNK_BYTES_MIN)
        return RONDO_DIRECT_IMPOSSIBLE;
    return rondo_plan_moved_bytes(context, task) >= least ? RONDO_DIRECT_FASTER : RONDO_DIRECT_POSSIBLE;
}

static enum rondo_direct_use use_oneshot(const struct rondo_plan_context *context,
                                         const struct rondo_task *task)
{
    uint64_t most = task->operation == RONDO_OP_ALL_REDUCE ? ONESHOT_BYTES_ALL_REDUCE : ONESHOT_BYTES;
    bool is_small = task->count * rondo_dtype_bytes(task->dtype) <= most;

    return is_small && context->layout->ranks <= ONESHOT_RANKS ? RONDO_DIRECT_FASTER : RONDO_DIRECT_POSSIBLE;
}

struct rondo_direct_uses rondo_plan_direct_uses(const struct rondo_plan_context *context,
                                                const struct rondo_task *task)
{
    struct rondo_direct_uses uses = {.pulled = RONDO_DIRECT_IMPOSSIBLE, .oneshot = RONDO_DIRECT_IMPOSSIBLE};

    if (!context->has_windows) {
        uses.obstacle = "some ranks cannot map each other's memory";
        return uses;
    }
    if (kind_of(task->operation) == RONDO_WORK_NUM) {
        uses.obstacle = "it cannot do this operation";
        return uses;
    }
    if (must_be_chain(context, task)) {
        uses.obstacle =
            "RONDO_DETERMINISTIC is set, and results of a narrow type that are rounded once differ from a "
            "ring's; RONDO_PRECISE=1 makes them the same";
        return uses;
    }
    uses.pulled = use_pulled(context, task);
    uses.oneshot = use_oneshot(context, task);
    if (uses.pulled == RONDO_DIRECT_IMPOSSIBLE)
        uses.obstacle = "NCCL_BUFFSIZE is too small to give each rank 128 bytes";
    return uses;
}

/* Elements of a slot that holds a piece for one reader. */
static uint64_t choose_slot_chunk(const struct rondo_plan_context *context, const struct rondo_work *work)
{
    enum rondo_protocol protocol = (enum rondo_protocol)work->protocol;
    ncclDataType_t dtype = (ncclDataType_t)work->dtype;
    uint64_t element_bytes = rondo_dtype_bytes(dtype);
    uint64_t wire_bytes = rondo_push_is_wide(work->redop) ? rondo_dtype_wide_bytes(dtype) : element_bytes;
    uint64_t slot_bytes = rondo_layout_slot_bytes(context->layout, RONDO_CONNECTION_DIRECT, protocol);

    return rondo_chunking_even(work->count, element_bytes, wire_bytes,
                               rondo_protocol_capacity(protocol, slot_bytes));
}

/* Elements of a piece that is read where it lies. */
static uint64_t choose_pulled_chunk(const struct rondo_plan_context *context, const struct rondo_work *work)
{
    uint64_t ranks = context->layout->ranks, piece = rondo_layout_piece_bytes(context->layout);
    uint64_t count = work->count, element_bytes = rondo_dtype_bytes((ncclDataType_t)work->dtype);
    enum rondo_pull_shape shape = rondo_pull_shape_of((enum rondo_work_kind)work->kind);
    uint64_t most = shape == RONDO_PULL_PLAIN ? piece : piece / ranks;

    if (shape == RONDO_PULL_PARTS)
        count = count / ranks + (count % ranks != 0);
    return rondo_chunking_even(count, element_bytes, element_bytes, most);
}

/* Which of this rank's buffers the others cannot read where they lie, of those that they would read. */
static uint32_t find_bounced(const struct rondo_plan_context *context, const struct rondo_task *task)
{
    const struct rondo_facts *facts = rondo_operation_facts(task->operation);
    uint64_t block = task->count * rondo_dtype_bytes(task->dtype), ranks = context->layout->ranks;
    bool is_read = facts->send == RONDO_USERS_ALL || task->root == context->rank;
    bool has_results = task->operation == RONDO_OP_ALL_REDUCE;
    /* Not what the interface allows, and without a result to speak of, but perf programs call it: others must
     * not read what this rank writes meanwhile. */
    bool is_overwritten = task->operation == RONDO_OP_ALL_TO_ALL && task->send == task->recv;
    uint32_t flags = 0;

    if (is_overwritten || (is_read && !context->is_mapped(context->owner, task->send,
                                                          block * (facts->send_blocks ? ranks : 1))))
        flags |= RONDO_WORK_BOUNCE_SEND;
    if (has_results && !context->is_mapped(context->owner, task->recv, block))
        flags |= RONDO_WORK_BOUNCE_RECV;
    return flags;
}

static ncclResult_t add_work(const struct rondo_plan_context *context, struct rondo_work *work,
                             struct rondo_draft *draft)
{
    enum rondo_protocol protocol = (enum rondo_protocol)work->protocol;
    const struct rondo_direct *direct = context->direct(context->owner, work->channel, protocol);

    if (!direct)
        return ncclSystemError; /* its text is recorded */
    work->peers = direct->peers;
    work->sources = direct->sources;
    work->bounce = direct->bounce;
    work->bounce_bytes = direct->bounce_bytes;
    work->chunk = protocol == RONDO_PROTOCOL_SIMPLE ? choose_pulled_chunk(context, work)
                                                    : choose_slot_chunk(context, work);
    return rondo_draft_add_collective(draft, 0, work);
}

ncclResult_t rondo_plan_direct(const struct rondo_plan_context *context, const struct rondo_task *task,
                               enum rondo_protocol protocol, struct rondo_draft *draft)
{
    struct rondo_work work = rondo_plan_work(task, kind_of(task->operation), protocol);

    if (protocol == RONDO_PROTOCOL_SIMPLE)
        work.flags |= (uint8_t)find_bounced(context, task);
    return rondo_plan_channels(context, task, &work, add_work, draft);
}
