/*
 * select.c - which build of the kernels this CPU runs.
 */
#include "base/log.h"
#include "base/param.h"
#include "device/lane.h"

#include <stddef.h>
#include <string.h>

#define RONDO_ISA(name, flags) \
    void rondo_##name##_kernel(struct rondo_lane *lane, const struct rondo_kernel_args *args);
#include "kernels/isas.def"
#undef RONDO_ISA

/* What the CPU must have for the flags of isas.def. */
static bool has_base(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

static const struct isa {
    const char *name;
    bool (*has)(void);
    rondo_cpu_kernel kernel;
} isas[] = {
#define RONDO_ISA(name, flags) {#name, has_##name, rondo_##name##_kernel},
#include "kernels/isas.def"
#undef RONDO_ISA
};

#define ISAS (sizeof(isas) / sizeof(isas[0]))

rondo_cpu_kernel rondo_cpu_kernel_select(const char **isa_out)
{
    const char *forced = rondo_param_string(RONDO_PARAM_CPU_ISA);
    const struct isa *best = &isas[0];
    const struct isa *asked = NULL;

    for (size_t i = 0; i < ISAS; i++) {
        if (isas[i].has())
            best = &isas[i];
        if (forced && strcmp(forced, isas[i].name) == 0)
            asked = &isas[i];
    }
    if (asked && asked->has())
        best = asked;
    else if (asked)
        rondo_log(RONDO_LOG_WARN, RONDO_LOG_ENV, "RONDO_CPU_ISA=%s: this CPU lacks it; using %s", forced,
                  best->name);
    else if (forced)
        rondo_log(RONDO_LOG_WARN, RONDO_LOG_ENV, "RONDO_CPU_ISA=%s: no such kernels in this build; using %s",
                  forced, best->name);
    *isa_out = best->name;
    return best->kernel;
}
