/*
 * memory_limit.c - memory limits of the machine and of the control groups a process is in.
 *
 * A process is in one group of each hierarchy. /proc/self/cgroup has the group's path inside the hierarchy,
 * and /proc/self/mountinfo where, and from which path on, the hierarchy is mounted. A limit may sit on the
 * group or any of its ancestors, so each is looked at up to the mount's root.
 */
#include "memory_limit.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hierarchy {
    bool is_v2;
    char mount[PATH_MAX];  /* where it is mounted */
    char inside[PATH_MAX]; /* which path of the hierarchy that is */
    char group[PATH_MAX];  /* ours, inside the hierarchy */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static FILE *open_below(const char *root, const char *path)
{
    char full[2 * PATH_MAX];

    snprintf(full, sizeof(full), "%s%s", root, path);
    return fopen(full, "re");
}

/* The number that a file starts with; false for no file, or "max". */
static bool read_number(const char *root, const char *folder, const char *file, uint64_t *number_out)
{
    char path[PATH_MAX + 64];
    unsigned long long number;
    bool has_number;
    FILE *stream;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    stream = open_below(root, path);
    if (!stream)
        return false;
    has_number = fscanf(stream, "%llu", &number) == 1;
    fclose(stream);
    if (has_number)
        *number_out = number;
    return has_number;
}

/* The number after the word key at the start of a line of file; 0 when there is none. */
static uint64_t read_keyed(const char *root, const char *path, const char *key)
{
    char line[256];
    size_t key_bytes = strlen(key);
    uint64_t number = 0;
    FILE *stream = open_below(root, path);

    if (!stream)
        return 0;
    while (fgets(line, sizeof(line), stream)) {
        if (strncmp(line, key, key_bytes) == 0 && (line[key_bytes] == ' ' || line[key_bytes] == ':')) {
            number = strtoull(line + key_bytes + 1, NULL, 10);
            break;
        }
    }
    fclose(stream);
    return number;
}

/* Whether a comma-separated list has word. */
static bool has_word(const char *list, const char *word)
{
    size_t bytes = strlen(word);

    for (;; list++) {
        if (strncmp(list, word, bytes) == 0 && (list[bytes] == ',' || list[bytes] == '\0'))
            return true;
        list = strchr(list, ',');
        if (!list)
            return false;
    }
}

/* Find where the hierarchy with the memory controller, v1 or v2, is mounted. */
static bool find_mount(const char *root, bool is_v2, struct hierarchy *found)
{
    char line[2 * PATH_MAX + 512];
    FILE *stream = open_below(root, "/proc/self/mountinfo");
    bool is_found = false;

    if (!stream)
        return false;
    while (!is_found && fgets(line, sizeof(line), stream)) {
        char type[32], options[512];
        char *tail = strstr(line, " - ");

        if (!tail || sscanf(tail, " - %31s %*s %511s", type, options) != 2)
            continue;
        if (is_v2 ? strcmp(type, "cgroup2") != 0
                  : strcmp(type, "cgroup") != 0 || !has_word(options, "memory"))
            continue;
        is_found = sscanf(line, "%*s %*s %*s %4095s %4095s", found->inside, found->mount) == 2;
    }
    fclose(stream);
    found->is_v2 = is_v2;
    return is_found;
}

/* Find our group's path in it: lines are "number:controllers:path", with no controllers for v2. */
static bool find_group(const char *root, struct hierarchy *found)
{
    char line[PATH_MAX + 256];
    FILE *stream = open_below(root, "/proc/self/cgroup");
    bool is_found = false;

    if (!stream)
        return false;
    while (!is_found && fgets(line, sizeof(line), stream)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (found->is_v2 ? controllers[1] != '\0' : !has_word(controllers + 1, "memory"))
            continue;
        is_found = strlen(path) < sizeof(found->group);
        if (is_found)
            strcpy(found->group, path);
    }
    fclose(stream);
    return is_found;
}

/* Lower *limit by what the group in folder allows. File cache that the kernel would drop counts as available.
 */
static void apply_group(const char *root, const char *folder, bool is_v2, struct rondo_memory_limit *limit)
{
    char stat[PATH_MAX + 64];
    uint64_t most, used;

    if (!read_number(root, folder, is_v2 ? "memory.max" : "memory.limit_in_bytes", &most) ||
        most >= INT64_MAX / 2)
        return;
    limit->total = least(limit->total, most);
    if (!read_number(root, folder, is_v2 ? "memory.current" : "memory.usage_in_bytes", &used))
        return;
    snprintf(stat, sizeof(stat), "%s/memory.stat", folder);
    used -= least(used, read_keyed(root, stat, is_v2 ? "inactive_file" : "total_inactive_file"));
    limit->available = least(limit->available, most - least(most, used));
}

static void apply_hierarchy(const char *root, bool is_v2, struct rondo_memory_limit *limit)
{
    struct hierarchy *found = calloc(1, sizeof(*found));
    char *folder = malloc(PATH_MAX);
    size_t mount_bytes, inside_bytes;
    const char *group;

    if (!found || !folder || !find_mount(root, is_v2, found) || !find_group(root, found))
        goto free_memory;
    /* The mount shows the hierarchy from `inside` on; inside "/" is all of it. In a container the group may
     * lie outside what is mounted: then the mount's own root is the container's group. */
    inside_bytes = strcmp(found->inside, "/") == 0 ? 0 : strlen(found->inside);
    group = strncmp(found->group, found->inside, inside_bytes) == 0 ? found->group + inside_bytes : "";
    mount_bytes = strlen(found->mount);
    if (mount_bytes + strlen(group) >= PATH_MAX)
        goto free_memory;
    strcpy(folder, found->mount);
    strcat(folder, strcmp(group, "/") == 0 ? "" : group);
    for (;;) {
        char *slash;

        apply_group(root, folder, is_v2, limit);
        slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < mount_bytes)
            break;
        *slash = '\0';
    }
free_memory:
    free(folder);
    free(found);
}

struct rondo_memory_limit rondo_memory_limit_read(const char *root)
{
    struct rondo_memory_limit limit = {
        .total = read_keyed(root, "/proc/meminfo", "MemTotal") * 1024,
        .available = read_keyed(root, "/proc/meminfo", "MemAvailable") * 1024,
    };

    if (limit.total == 0)
        limit.total = UINT64_MAX;
    if (limit.available == 0)
        limit.available = UINT64_MAX;
    apply_hierarchy(root, false, &limit);
    apply_hierarchy(root, true, &limit);
    if (limit.available > limit.total)
        limit.available = limit.total;
    if (limit.total == UINT64_MAX)
        limit.total = 0;
    if (limit.available == UINT64_MAX)
        limit.available = 0;
    return limit;
}
