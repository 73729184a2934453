/* abi_c.c - the interface as C programs see it; ABI_FILL names this compilation. */
#include "abi_checks.h"
