// emulated_kernel.h - today's kernels, compiled for the emulator.
#ifndef RONDO_TESTS_EMULATOR_EMULATED_KERNEL_H
#define RONDO_TESTS_EMULATOR_EMULATED_KERNEL_H

#include "machine.h"

#include "device/work.h"

// The calling lane's part of its block and role.
void RunEmulatedKernel(emulator::Lane &lane, const rondo_kernel_args *args);

#endif
