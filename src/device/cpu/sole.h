/*
 * sole.h - the CPU device for a process without a CUDA runtime: calls are complete when they return.
 */
#ifndef RONDO_CPU_SOLE_H
#define RONDO_CPU_SOLE_H

#include "device/device.h"

/* The table of rondo_cpu_instance() with is_synchronous set, and streams other than NULL refused: there is
 * nobody who could have made one. */
const struct rondo_device_ops *rondo_cpu_sole_instance(void);

#endif
