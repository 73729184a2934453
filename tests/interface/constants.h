/* constants.h - the rows of constants.def, as one nccl.h or another gives them. */
#ifndef RONDO_TESTS_CONSTANTS_H
#define RONDO_TESTS_CONSTANTS_H

struct constant {
    const char *name;
    long long value;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct constant constants_ours[];
extern const struct constant constants_reference[]; /* only where NVIDIA's header was found */
extern const int constants_count;
#ifdef __cplusplus
}
#endif
#endif
