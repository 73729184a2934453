/*
 * struct_layout.h - facts of struct layouts, from two sets of headers that cannot be included together.
 */
#ifndef RONDO_TESTS_STRUCT_LAYOUT_H
#define RONDO_TESTS_STRUCT_LAYOUT_H

#include <stddef.h>

struct layout_fact {
    const char *name;
    size_t offset; /* or the size of a whole type */
    size_t bytes;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct layout_fact layout_ours[], layout_nvidia[];
#ifdef __cplusplus
}
#endif
#endif
