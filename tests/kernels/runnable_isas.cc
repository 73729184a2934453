#include "runnable_isas.h"

#include <string>

#define ROW(name, suffix) extern rondo_spans_table RONDO_SPANS_NAME(rondo_##name, suffix);
#define DTYPES(name)                                                                                        \
    ROW(name, i8)                                                                                           \
    ROW(name, u8) ROW(name, i32) ROW(name, u32) ROW(name, i64) ROW(name, u64) ROW(name, f16) ROW(name, f32) \
        ROW(name, f64) ROW(name, bf16) ROW(name, f8e4m3) ROW(name, f8e5m2)
#define TABLE(name, suffix) &RONDO_SPANS_NAME(rondo_##name, suffix)
#define TABLES(name)                                                                               \
    TABLE(name, i8), TABLE(name, u8), TABLE(name, i32), TABLE(name, u32), TABLE(name, i64),        \
        TABLE(name, u64), TABLE(name, f16), TABLE(name, f32), TABLE(name, f64), TABLE(name, bf16), \
        TABLE(name, f8e4m3), TABLE(name, f8e5m2)

extern "C" {
#define RONDO_ISA(name, flags)                                                         \
    void rondo_##name##_kernel(struct rondo_lane *, const struct rondo_kernel_args *); \
    DTYPES(name)
#include "kernels/isas.def"
#undef RONDO_ISA
}

static bool CanRun(const std::string &name)
{
#if defined(__x86_64__)
    if (name == "avx2")
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
    if (name == "avx512")
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
    return name == "base";
}

const std::vector<Isa> &Isas()
{
    static const std::vector<Isa> isas = [] {
        std::vector<Isa> all = {
#define RONDO_ISA(name, flags) {#name, rondo_##name##_kernel, {TABLES(name)}},
#include "kernels/isas.def"
#undef RONDO_ISA
        };
        std::vector<Isa> able;
        for (const Isa &isa : all)
            if (CanRun(isa.name))
                able.push_back(isa);
        return able;
    }();
    return isas;
}
