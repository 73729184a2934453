/* draft.c - collecting works, and sorting them into blocks and lists by counting. */
#include "draft.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* Few, so that what one small collective needs comes from malloc's quickest lists. */
#define ITEMS_MIN 2

struct rondo_draft_item {
    struct rondo_work work;
    bool is_message; /* or a copy; else a collective's */
    uint8_t list;    /* of its block */
    uint32_t key;    /* round, or channel */
};

static ncclResult_t add_item(struct rondo_draft *draft, const struct rondo_draft_item *item)
{
    if (draft->count == draft->capacity) {
        size_t capacity = draft->capacity ? 2 * draft->capacity : ITEMS_MIN;
        struct rondo_draft_item *items = realloc(draft->items, capacity * sizeof(*items));
        if (!items)
            return rondo_fail(ncclSystemError, "plan %zu works: out of memory", capacity);
        draft->items = items;
        draft->capacity = capacity;
    }
    draft->items[draft->count++] = *item;
    return ncclSuccess;
}

ncclResult_t rondo_draft_add_collective(struct rondo_draft *draft, unsigned list,
                                        const struct rondo_work *work)
{
    struct rondo_draft_item item = {.work = *work, .list = (uint8_t)list, .key = work->channel};

    return add_item(draft, &item);
}

ncclResult_t rondo_draft_add_message(struct rondo_draft *draft, enum rondo_role role, uint32_t round,
                                     const struct rondo_work *work)
{
    struct rondo_draft_item item = {.work = *work, .is_message = true, .list = (uint8_t)role, .key = round};

    draft->has_messages = true;
    return add_item(draft, &item);
}

void rondo_draft_fini(struct rondo_draft *draft)
{
    free(draft->items);
    *draft = (struct rondo_draft){0};
}

_Static_assert(sizeof(struct rondo_plan) % _Alignof(struct rondo_work) == 0 &&
                   sizeof(struct rondo_work) % _Alignof(struct rondo_block) == 0,
               "a plan, its works and its blocks can follow each other in memory");

/* Where the works of each channel, and of each direction and round, go: first a count, then the next free
 * index. */
struct places {
    uint32_t channels; /* used */
    uint32_t collectives[RONDO_ROLES][RONDO_CHANNELS_MAX];
    uint32_t *messages[RONDO_ROLES]; /* [ranks], by round; NULL without messages */
    uint32_t *rounds[RONDO_ROLES];   /* those in use, ascending */
    uint32_t used[RONDO_ROLES];      /* how many */
    uint32_t message_blocks;
    uint32_t *memory;
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static ncclResult_t count_items(const struct rondo_draft *draft, uint32_t ranks, struct places *places)
{
    if (draft->has_messages) {
        places->memory = calloc((size_t)ranks * 2 * RONDO_ROLES, sizeof(uint32_t));
        if (!places->memory)
            return rondo_fail(ncclSystemError, "plan point to point among %u ranks: out of memory", ranks);
        for (int role = 0; role < RONDO_ROLES; role++) {
            places->messages[role] = places->memory + (size_t)ranks * (size_t)(2 * role);
            places->rounds[role] = places->messages[role] + ranks;
        }
    }
    for (size_t i = 0; i < draft->count; i++) {
        const struct rondo_draft_item *item = &draft->items[i];
        if (item->is_message) {
            places->messages[item->list][item->key]++;
        } else {
            places->collectives[item->list][item->key]++;
            places->channels = larger(places->channels, item->key + 1);
        }
    }
    return ncclSuccess;
}

/* Deal the rounds in use to the blocks that point to point may have. */
static void deal_rounds(const struct rondo_draft *draft, const struct rondo_plan_context *context,
                        struct places *places)
{
    uint32_t most = RONDO_NOTES / 2 - places->channels; /* each block has its notes in the rank page */

    if (!draft->has_messages)
        return;
    for (int role = 0; role < RONDO_ROLES; role++) {
        for (uint32_t round = 0; round < context->layout->ranks; round++) {
            if (places->messages[role][round] > 0)
                places->rounds[role][places->used[role]++] = round;
        }
    }
    if (context->max_pair_blocks < most)
        most = larger(context->max_pair_blocks, 1);
    places->message_blocks = larger(places->used[RONDO_ROLE_SENDS], places->used[RONDO_ROLE_RECEIVES]);
    if (places->message_blocks > most)
        places->message_blocks = most;
}

/* Turn counts into first indices, list after list, and write the lists' extents. */
static void place_lists(struct places *places, struct rondo_block *blocks)
{
    uint32_t next = 0;

    for (uint32_t channel = 0; channel < places->channels; channel++) {
        for (int role = 0; role < RONDO_ROLES; role++) {
            uint32_t works = places->collectives[role][channel];
            blocks[channel].first[role] = next;
            blocks[channel].works[role] = works;
            places->collectives[role][channel] = next;
            next += works;
        }
    }
    for (uint32_t i = 0; i < places->message_blocks; i++) {
        struct rondo_block *block = &blocks[places->channels + i];
        for (int role = 0; role < RONDO_ROLES; role++) {
            block->first[role] = next;
            for (uint32_t k = i; k < places->used[role]; k += places->message_blocks) {
                uint32_t *place = &places->messages[role][places->rounds[role][k]];
                uint32_t works = *place;
                *place = next;
                next += works;
            }
            block->works[role] = next - block->first[role];
        }
    }
}

static ncclResult_t create_plan(const struct rondo_plan_context *context, uint32_t blocks, size_t works,
                                struct rondo_plan **plan_out)
{
    size_t blocks_bytes = blocks * sizeof(struct rondo_block),
           works_bytes = works * sizeof(struct rondo_work);
    /* Not calloc, which glibc does not serve from a thread's own lists. */
    unsigned char *memory = malloc(sizeof(struct rondo_plan) + works_bytes + blocks_bytes);
    struct rondo_plan *plan = (struct rondo_plan *)(void *)memory;

    if (!plan)
        return rondo_fail(ncclSystemError, "make a plan of %u blocks and %zu works: out of memory", blocks,
                          works);
    *plan = (struct rondo_plan){0};
    plan->works = (struct rondo_work *)(void *)(memory + sizeof(*plan));
    plan->blocks = (struct rondo_block *)(void *)(memory + sizeof(*plan) + works_bytes);
    plan->args = (struct rondo_kernel_args){
        .rank = context->rank,
        .ranks = (int32_t)context->layout->ranks,
        .blocks = blocks,
        .works = (uint32_t)works,
        .block = plan->blocks,
        .work = plan->works,
        .order = context->order,
        .position = context->position,
        .fault = &plan->fault,
    };
    *plan_out = plan;
    return ncclSuccess;
}

ncclResult_t rondo_draft_finish(const struct rondo_draft *draft, const struct rondo_plan_context *context,
                                struct rondo_plan **plan_out)
{
    struct places places = {0};
    struct rondo_plan *plan = NULL;
    ncclResult_t rc;

    if (draft->count > UINT32_MAX)
        return rondo_fail(ncclInvalidUsage,
                          "plan one group of %zu operations: at most %u fit a launch; use several groups",
                          draft->count, UINT32_MAX);
    rc = count_items(draft, context->layout->ranks, &places);
    if (rc != ncclSuccess)
        return rc;
    deal_rounds(draft, context, &places);
    rc = create_plan(context, places.channels + places.message_blocks, draft->count, &plan);
    if (rc == ncclSuccess) {
        place_lists(&places, plan->blocks);
        for (size_t i = 0; i < draft->count; i++) {
            const struct rondo_draft_item *item = &draft->items[i];
            uint32_t *place = item->is_message ? &places.messages[item->list][item->key]
                                               : &places.collectives[item->list][item->key];
            plan->works[(*place)++] = item->work;
        }
        *plan_out = plan;
    }
    free(places.memory);
    return rc;
}

void rondo_plan_destroy(struct rondo_plan *plan)
{
    free(plan); /* and its works and blocks, which lie behind it */
}
