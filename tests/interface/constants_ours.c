/* constants_ours.c - the rows of constants.def, by our nccl.h. */
#include "constants.h"

#include <nccl.h>
#include <stddef.h>

#define VALUE(expression) {#expression, (long long)(expression)},
const struct constant constants_ours[] = {
#include "constants.def"
};
const int constants_count = sizeof(constants_ours) / sizeof(constants_ours[0]);
