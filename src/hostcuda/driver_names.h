/*
 * driver_names.h - names and texts of the driver's error numbers, which are the runtime's numbers.
 */
#ifndef RONDO_HOSTCUDA_DRIVER_NAMES_H
#define RONDO_HOSTCUDA_DRIVER_NAMES_H

/* "CUDA_ERROR_INVALID_VALUE" and a sentence; NULL when the number is no error's. Static text. */
const char *rondo_driver_error_name(int error);
const char *rondo_driver_error_text(int error);

#endif
