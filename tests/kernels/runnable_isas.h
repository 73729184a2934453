// runnable_isas.h - the builds of the kernels that this CPU can run, for tests that run every one of them.
#ifndef RONDO_TESTS_RUNNABLE_ISAS_H
#define RONDO_TESTS_RUNNABLE_ISAS_H

#include "kernels/spans_cpu.h"

#include "device/lane.h"

#include <vector>

struct Isa {
    const char *name;
    rondo_cpu_kernel kernel;
    std::vector<rondo_spans_table *> spans; // by ncclDataType_t
};

// Worst first; never empty.
const std::vector<Isa> &Isas();

#endif
