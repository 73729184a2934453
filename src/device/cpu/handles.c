/* handles.c - the values that callers hold for streams and events. */
#include "cpu/handles.h"

#include <stdint.h>
#include <stdlib.h>

/* A handle: bits 0..1 the kind, 4..31 the place, 32..62 the use, from 1. */
#define PLACE_LIMIT ((uint32_t)1 << 28)

struct place {
    void *object; /* NULL: free */
    uint32_t use;
    uint32_t next_free; /* place + 1 */
    enum rondo_handle_kind kind;
};

static struct place *places;
static uint32_t count, room;
static uint32_t first_free; /* place + 1; 0: none */

static struct place *grow(void)
{
    if (count == room) {
        uint32_t wanted = room ? 2 * room : 256;
        struct place *moved = wanted <= PLACE_LIMIT ? realloc(places, wanted * sizeof(*moved)) : NULL;
        if (!moved)
            return NULL;
        places = moved;
        room = wanted;
    }
    places[count] = (struct place){0};
    return &places[count++];
}

void *rondo_handle_make(enum rondo_handle_kind kind, void *object)
{
    struct place *place;

    if (first_free != 0) {
        place = &places[first_free - 1];
        first_free = place->next_free;
    } else {
        place = grow();
        if (!place)
            return NULL;
    }
    place->object = object;
    place->kind = kind;
    place->use = place->use % INT32_MAX + 1;
    return (void *)(uintptr_t)((uint64_t)place->use << 32 | (uint64_t)(place - places) << 4 | (uint64_t)kind);
}

void *rondo_handle_find(enum rondo_handle_kind kind, const void *handle)
{
    uint64_t value = (uint64_t)(uintptr_t)handle;
    uint64_t at = (value & UINT32_MAX) >> 4;

    if ((value & 15) != (uint64_t)kind || at >= count)
        return NULL;
    return places[at].use == value >> 32 && places[at].kind == kind ? places[at].object : NULL;
}

void rondo_handle_free(const void *handle)
{
    uint64_t at = ((uint64_t)(uintptr_t)handle & UINT32_MAX) >> 4;

    places[at].object = NULL;
    places[at].next_free = first_free;
    first_free = (uint32_t)at + 1;
}
