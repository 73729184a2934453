/* layout_ours.c - layouts as our headers with CUDART_VERSION 13000 have them. */
#include "struct_layout.h"

#include <cuda_runtime_api.h>

#define LAYOUT_TABLE layout_ours
#include "struct_layout.inc"
