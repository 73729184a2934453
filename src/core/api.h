/*
 * api.h - how an entry point of the library is written.
 *
 * The function is defined under its pnccl name, which is the strong symbol; the line after it adds the public
 * name as a weak symbol at the same address:
 *
 *     ncclResult_t pncclGroupStart(void)
 *     {
 *         ...
 *     }
 *     RONDO_TWIN(ncclGroupStart);
 *
 * Both are visible because nccl.h (or device_api.h) declares them inside a "visibility push(default)". The
 * library calls itself by pnccl names, so that a tool standing in front of ncclX sees the program's calls
 * alone; -Bsymbolic-functions binds them.
 *
 * An alias needs its target in the same file, so the line cannot be moved to a table elsewhere. Functions
 * that this version does not implement are in api_unsupported.c; implementing one means moving it out of
 * there. The list of all names is tests/interface/functions.txt, and a test compares it with what the library
 * exports.
 */
#ifndef RONDO_CORE_API_H
#define RONDO_CORE_API_H

#include "nccl.h"

#define RONDO_TWIN(name) extern __typeof__(p##name) name __attribute__((weak, alias("p" #name)))

#endif
