/* constants_reference.c - the rows of constants.def, by NVIDIA's nccl.h, included by its full path. */
#include "constants.h"

#include RONDO_REFERENCE_HEADER
#include <stddef.h>

#define VALUE(expression) {#expression, (long long)(expression)},
const struct constant constants_reference[] = {
#include "constants.def"
};
