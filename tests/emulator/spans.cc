// The loops of one element type on the emulator; CMake compiles this once for each row of dtypes.def.
#define RONDO_KERNELS rondo_emulator
#define RONDO_PORT "port_emulator.h"
#include "kernels/spans_cpu.cc"
