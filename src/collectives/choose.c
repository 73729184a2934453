/* choose.c - the words of NCCL_ALGO and NCCL_PROTO, and the choice among what they leave. */
#include "collectives/choose.h"

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Rings take LL while no step moves more than this.
 *
 * NCCL_ALGO=Ring NCCL_PROTO=p bench_all_reduce 40 8 64 256 512 1024 2048 4096 8192 16384 with p of Simple, LL
 * and LL128 in turn, 12 times, 2 ranks on 2 CPUs with other work beside them. Medians of the medians, in us:
 *
 *     bytes     8    64   256   512  1024  2048  4096  8192 16384
 *     Simple  7.8  11.2  11.1  13.4  13.4  13.6  17.2  11.8  13.8
 *     LL      7.8  11.0  11.1  11.1  11.3  11.7  12.7  16.3  25.5
 *     LL128  11.3  11.6  17.9  15.4  13.0  12.1  12.7  17.1  16.8
 *
 * A step of two ranks moves half of the bytes. Between 4096 and 8192 LL begins to lose: hence 2048 a step.
 * That machine's noise is as large as most of the differences, so this is a weak measurement (all ran at nice
 * -15); for other operations and more ranks it is a choice. */
#define LL_STEP_BYTES 2048u

/* A variable and the names that its value may contain, in the order of the enumeration. */
struct vocabulary {
    const char *variable;
    unsigned bits;       /* for an operation */
    unsigned names, own; /* the first of them are Rondo's */
    const char *name[RONDO_CHOICE_ALGORITHM_BITS];
};

/* Names a vocabulary may have; each operation has a bit for each. */
#define NAMES_MAX RONDO_CHOICE_ALGORITHM_BITS

/* Those after the first RONDO_ALGORITHM_NUM are NCCL's and have no counterpart here yet. */
static const struct vocabulary algorithm_words = {
    "NCCL_ALGO",
    RONDO_CHOICE_ALGORITHM_BITS,
    8,
    RONDO_ALGORITHM_NUM,
    {"Ring", "Direct", "Tree", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"},
};

static const struct vocabulary protocol_words = {"NCCL_PROTO",
                                                 RONDO_CHOICE_PROTOCOL_BITS,
                                                 RONDO_PROTOCOL_NUM,
                                                 RONDO_PROTOCOL_NUM,
                                                 {"Simple", "LL", "LL128"}};

_Static_assert((RONDO_OP_SEND - 1) * RONDO_CHOICE_ALGORITHM_BITS <= 64, "collectives fit a word");
_Static_assert(sizeof(algorithm_words.name) / sizeof(algorithm_words.name[0]) <= RONDO_CHOICE_ALGORITHM_BITS,
               "an operation has a bit for each name");
_Static_assert(RONDO_PROTOCOL_NUM <= RONDO_CHOICE_PROTOCOL_BITS, "an operation has a bit for each protocol");
_Static_assert((RONDO_OP_NUM - 1) * RONDO_CHOICE_PROTOCOL_BITS <= 64, "operations fit a word");

/* A piece of a value. */
struct words {
    const char *at;
    size_t length;
};

static bool equals(struct words words, const char *name)
{
    return strlen(name) == words.length && strncasecmp(words.at, name, words.length) == 0;
}

/* Cut off what comes before the first mark; the rest follows it, or is empty. */
static struct words cut(struct words *rest, char mark)
{
    const char *found = rest->length > 0 ? memchr(rest->at, mark, rest->length) : NULL;
    struct words first = {rest->at, found ? (size_t)(found - rest->at) : rest->length};
    size_t used = first.length + (found ? 1 : 0);

    rest->at += used;
    rest->length -= used;
    return first;
}

/* Append to a text of `size`, as far as it fits. */
static void append(char *text, size_t size, const char *before, const char *word)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s%s", used > 0 ? before : "", word);
}

static void list_names(const struct vocabulary *vocabulary, uint64_t mask, char *text, size_t size)
{
    text[0] = '\0';
    for (unsigned i = 0; i < vocabulary->names; i++) {
        if (mask >> i & 1)
            append(text, size, ", ", vocabulary->name[i]);
    }
}

static ncclResult_t refuse_word(const struct vocabulary *vocabulary, const char *value, struct words word,
                                const char *what, const char *known)
{
    return rondo_fail(
        ncclInvalidUsage, "read %s=%.200s: '%.*s' is no %s; known are %s (blanks are not skipped)",
        vocabulary->variable, value, (int)(word.length < 64 ? word.length : 64), word.at, what, known);
}

static ncclResult_t parse_list(const struct vocabulary *vocabulary, const char *value, struct words list,
                               uint64_t *mask_out)
{
    bool inverts = list.length > 0 && list.at[0] == '^';
    uint64_t all = ((uint64_t)1 << vocabulary->names) - 1, own = ((uint64_t)1 << vocabulary->own) - 1,
             mask = 0;
    char known[128];

    if (inverts) {
        list.at++;
        list.length--;
    }
    do {
        struct words word = cut(&list, ',');
        unsigned i = 0;

        while (i < vocabulary->names && !equals(word, vocabulary->name[i]))
            i++;
        if (i == vocabulary->names) {
            list_names(vocabulary, own, known, sizeof(known));
            return word.length > 0
                       ? refuse_word(vocabulary, value, word, "name that it takes", known)
                       : rondo_fail(ncclInvalidUsage,
                                    "read %s=%.200s: there is a list, or a place in one, without a "
                                    "name; known are %s",
                                    vocabulary->variable, value, known);
        }
        mask |= (uint64_t)1 << i;
    } while (list.length > 0);
    *mask_out = inverts ? all & ~mask : mask;
    return ncclSuccess;
}

static ncclResult_t find_operation(const struct vocabulary *vocabulary, const char *value, struct words name,
                                   unsigned *operation_out)
{
    char known[160] = "";

    for (unsigned o = RONDO_OP_NONE + 1; o < RONDO_OP_NUM; o++) {
        if (equals(name, rondo_operation_name((enum rondo_operation)o))) {
            *operation_out = o;
            return ncclSuccess;
        }
        append(known, sizeof(known), ", ", rondo_operation_name((enum rondo_operation)o));
    }
    return refuse_word(vocabulary, value, name, "function", known);
}

/* Whether an operation has a choice at all; entries for all have. */
static bool has_bits(const struct vocabulary *vocabulary, unsigned operation)
{
    return operation == RONDO_OP_NONE || (operation - 1) * vocabulary->bits + vocabulary->bits <= 64;
}

/* Masks by operation. An entry without a function is the one at RONDO_OP_NONE. */
static ncclResult_t parse_entries(const struct vocabulary *vocabulary, const char *value,
                                  uint64_t mask[RONDO_OP_NUM], bool is_set[RONDO_OP_NUM])
{
    struct words rest = {value, strlen(value)};

    do {
        struct words entry = cut(&rest, ';');
        bool is_named = memchr(entry.at, ':', entry.length) != NULL;
        unsigned operation = RONDO_OP_NONE;
        uint64_t allowed = 0;
        ncclResult_t rc = ncclSuccess;

        if (is_named)
            rc = find_operation(vocabulary, value, cut(&entry, ':'), &operation);
        if (rc == ncclSuccess && !has_bits(vocabulary, operation))
            rc = rondo_fail(
                ncclInvalidUsage, "read %s=%.200s: %s is one message, and takes none of them; remove it",
                vocabulary->variable, value, rondo_operation_name((enum rondo_operation)operation));
        if (rc == ncclSuccess)
            rc = parse_list(vocabulary, value, entry, &allowed);
        if (rc != ncclSuccess)
            return rc;
        if (is_named || !is_set[operation])
            mask[operation] = allowed;
        is_set[operation] = true;
    } while (rest.length > 0);
    return ncclSuccess;
}

/* *named_out: 1 << operation for each that has an entry of its own. */
static ncclResult_t parse_value(const struct vocabulary *vocabulary, const char *value, uint64_t *masks_out,
                                uint32_t *named_out)
{
    uint64_t mask[RONDO_OP_NUM] = {0}, masks = 0;
    bool is_set[RONDO_OP_NUM] = {false};
    uint32_t named = 0;

    if (value) {
        ncclResult_t rc = parse_entries(vocabulary, value, mask, is_set);
        if (rc != ncclSuccess)
            return rc;
    }
    if (!is_set[RONDO_OP_NONE])
        mask[RONDO_OP_NONE] = ((uint64_t)1 << vocabulary->names) - 1;
    for (unsigned o = RONDO_OP_NONE + 1; o < RONDO_OP_NUM && has_bits(vocabulary, o); o++) {
        masks |= mask[is_set[o] ? o : RONDO_OP_NONE] << (o - 1) * vocabulary->bits;
        named |= (uint32_t)is_set[o] << o;
    }
    *masks_out = masks;
    *named_out = named;
    return ncclSuccess;
}

ncclResult_t rondo_choices_parse(const char *algorithms, const char *protocols,
                                 struct rondo_choices *choices_out)
{
    struct rondo_choices choices = {.algorithm_text = algorithms, .protocol_text = protocols};
    uint32_t unused;
    ncclResult_t rc = parse_value(&algorithm_words, algorithms, &choices.algorithms, &choices.named);

    if (rc == ncclSuccess)
        rc = parse_value(&protocol_words, protocols, &choices.protocols, &unused);
    if (rc == ncclSuccess)
        *choices_out = choices;
    return rc;
}

/* Append why each of the names in a mask is impossible, where there is a reason to give. */
static void list_obstacles(const struct vocabulary *vocabulary, uint64_t mask, const char *const obstacles[],
                           char *text, size_t size)
{
    text[0] = '\0';
    for (unsigned i = 0; i < vocabulary->names; i++) {
        if ((mask >> i & 1) && obstacles[i]) {
            append(text, size, "; ", vocabulary->name[i]);
            append(text, size, ": ", obstacles[i]);
        }
    }
}

/* What a variable leaves of what is possible for an operation. obstacles: for each name why it is impossible,
 * if it is; NULL: it is not, or the reader can do nothing about it. */
static ncclResult_t allow(const struct vocabulary *vocabulary, uint64_t masks, const char *value,
                          enum rondo_operation operation, uint64_t possible,
                          const char *const obstacles[NAMES_MAX], uint64_t *allowed_out)
{
    uint64_t wanted = masks >> (operation - 1) * vocabulary->bits, allowed = wanted & possible;
    char names[128], why[512];

    if (allowed == 0) {
        list_names(vocabulary, possible, names, sizeof(names));
        list_obstacles(vocabulary, wanted, obstacles, why, sizeof(why));
        return rondo_fail(
            ncclInvalidUsage,
            "choose how to do %s: %s=%.200s allows none of what is possible here: %s%s%s%s; allow one "
            "of them, or unset the variable",
            rondo_operation_name(operation), vocabulary->variable, value ? value : "", names,
            why[0] ? " (" : "", why, why[0] ? ")" : "");
    }
    *allowed_out = allowed;
    return ncclSuccess;
}

/* Bytes of a step round a ring, when it needs but one a rank; or of a tree. */
static uint64_t step_bytes(enum rondo_operation operation, enum rondo_algorithm algorithm, uint64_t bytes,
                           uint32_t ranks)
{
    bool is_rooted = rondo_operation_facts(operation)->root != RONDO_ROOT_NONE;

    return is_rooted || algorithm == RONDO_ALGORITHM_TREE ? bytes : bytes / ranks + (bytes % ranks != 0);
}

static enum rondo_protocol choose_protocol(uint64_t allowed, enum rondo_operation operation,
                                           enum rondo_algorithm algorithm, uint64_t bytes, uint32_t ranks)
{
    static const enum rondo_protocol small[] = {RONDO_PROTOCOL_LL, RONDO_PROTOCOL_LL128,
                                                RONDO_PROTOCOL_SIMPLE};
    static const enum rondo_protocol large[] = {RONDO_PROTOCOL_SIMPLE, RONDO_PROTOCOL_LL128,
                                                RONDO_PROTOCOL_LL};
    bool is_small = rondo_operation_facts(operation)->travel == RONDO_TRAVEL_RING &&
                    step_bytes(operation, algorithm, bytes, ranks) <= LL_STEP_BYTES;
    const enum rondo_protocol *by_preference = is_small ? small : large;

    while (!(allowed >> *by_preference & 1))
        by_preference++;
    return *by_preference;
}

/* Protocols that go directly and are at least that. */
static uint64_t direct_protocols(struct rondo_direct_uses direct, enum rondo_direct_use least)
{
    const uint64_t flagged = (uint64_t)1 << RONDO_PROTOCOL_LL | (uint64_t)1 << RONDO_PROTOCOL_LL128;

    return (direct.pulled >= least ? (uint64_t)1 << RONDO_PROTOCOL_SIMPLE : 0) |
           (direct.oneshot >= least ? flagged : 0);
}

/* Trees are never the default, although on one host their chain was faster for most of the small sizes:
 * NCCL_ALGO=a all_reduce_perf --procs n -b 8 -e 32K -f 4 -n 30 -c 0 with a of Ring and Tree in turn, 6 times
 * (3 ranks: 5), on 2 CPUs with much other work beside them. Least of the times, in us:
 *
 *     bytes          8     32    128    512   2048   8192  32768
 *     3 ranks ring  15     25     56    169     44     34     56
 *             tree  19     19     16     17     23     18     32
 *     4 ranks ring  22     39     65     55     54     64     64
 *             tree  30     28     28     29     37     32     59
 *     8 ranks ring  73     80    352    298    357    357    236
 *             tree  95     85     88     87    112    103    151
 *
 * Medians were up to ten times that, and of 8 ranks did not agree from one such run to the next on who is
 * faster. A ring has more messages than a chain by the number of ranks, which costs where ranks share CPUs;
 * where each has its own nothing was measured. */
static ncclResult_t choose_algorithm(const struct rondo_choices *choices, enum rondo_operation operation,
                                     struct rondo_direct_uses direct, const char *no_tree,
                                     enum rondo_algorithm *algorithm_out)
{
    static const char other[] = "not in Rondo";
    const uint64_t by_ring = (uint64_t)1 << RONDO_ALGORITHM_RING;
    const uint64_t by_direct = (uint64_t)1 << RONDO_ALGORITHM_DIRECT;
    const uint64_t by_tree = (uint64_t)1 << RONDO_ALGORITHM_TREE;
    uint64_t directly = direct_protocols(direct, RONDO_DIRECT_POSSIBLE);
    uint64_t possible = by_ring | (directly ? by_direct : 0) | (no_tree ? 0 : by_tree);
    const char *const obstacles[NAMES_MAX] = {NULL,  direct.obstacle, no_tree, other,
                                              other, other,           other,   other};
    uint64_t protocols = choices->protocols >> (operation - 1) * protocol_words.bits, allowed = by_ring;
    bool is_bound = rondo_operation_facts(operation)->travel == RONDO_TRAVEL_RING ||
                    (choices->named >> operation & 1); /* others can always be messages */
    ncclResult_t rc = ncclSuccess;

    if (is_bound)
        rc = allow(&algorithm_words, choices->algorithms, choices->algorithm_text, operation, possible,
                   obstacles, &allowed);
    else if (!rondo_operation_is_message(operation))
        allowed = choices->algorithms >> (operation - 1) * algorithm_words.bits & possible;
    if (rc != ncclSuccess)
        return rc;
    /* What can go either way does not go where its protocol is forbidden. */
    bool is_better = (protocols & direct_protocols(direct, RONDO_DIRECT_FASTER)) != 0;
    bool is_wanted = is_better || ((protocols & directly) && !(allowed & by_ring));
    if (((allowed & by_direct) && is_wanted) || allowed == by_direct)
        *algorithm_out = RONDO_ALGORITHM_DIRECT;
    else if ((allowed & (by_ring | by_tree)) == by_tree)
        *algorithm_out = RONDO_ALGORITHM_TREE;
    else
        *algorithm_out = RONDO_ALGORITHM_RING;
    return ncclSuccess;
}

/* The one that is faster; where none is, that for large messages first. */
static enum rondo_protocol choose_direct_protocol(uint64_t allowed, struct rondo_direct_uses direct)
{
    uint64_t better = allowed & direct_protocols(direct, RONDO_DIRECT_FASTER);
    enum rondo_protocol protocol = RONDO_PROTOCOL_SIMPLE;

    while (!((better ? better : allowed) >> protocol & 1))
        protocol++;
    return protocol;
}

ncclResult_t rondo_choose(const struct rondo_choices *choices, enum rondo_operation operation, uint64_t bytes,
                          uint32_t ranks, struct rondo_direct_uses direct, const char *no_tree,
                          struct rondo_choice *choice_out)
{
    const char *const obstacles[NAMES_MAX] = {[RONDO_PROTOCOL_SIMPLE] = direct.obstacle};
    uint64_t protocols = ((uint64_t)1 << RONDO_PROTOCOL_NUM) - 1;
    struct rondo_choice choice;
    ncclResult_t rc = choose_algorithm(choices, operation, direct, no_tree, &choice.algorithm);

    if (rc != ncclSuccess)
        return rc;
    if (choice.algorithm == RONDO_ALGORITHM_DIRECT)
        protocols = direct_protocols(direct, RONDO_DIRECT_POSSIBLE);
    rc = allow(&protocol_words, choices->protocols, choices->protocol_text, operation, protocols, obstacles,
               &protocols);
    if (rc != ncclSuccess)
        return rc;
    choice.protocol = choice.algorithm == RONDO_ALGORITHM_DIRECT
                          ? choose_direct_protocol(protocols, direct)
                          : choose_protocol(protocols, operation, choice.algorithm, bytes, ranks);
    *choice_out = choice;
    return ncclSuccess;
}

const char *rondo_algorithm_name(enum rondo_algorithm algorithm)
{
    return algorithm_words.name[algorithm];
}

const char *rondo_protocol_name(enum rondo_protocol protocol)
{
    return protocol_words.name[protocol];
}
