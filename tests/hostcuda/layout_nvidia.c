/* layout_nvidia.c - layouts as the CUDA 13 toolkit's headers, where it is installed have them. */
#include "struct_layout.h"

#include <cuda_runtime_api.h>

#define LAYOUT_TABLE layout_nvidia
#include "struct_layout.inc"
